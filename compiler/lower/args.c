/* Sorts the arguments of a call and reports wrong ones. */
#include "elaborate.h"

void args_push(Lower *l, Args *a, Datum value, Span span)
{
  vec_push(l->arena, &a->at, (ArgValue){value, NULL, span, span});
}

/* Reports a keyword argument that the callee does not have. */
Datum wrong_key(Lower *l, const char *callee, const ArgValue *arg, const char *const *names,
                uint32_t n, const char *signature)
{
  fail(l, E205, arg->key_span, "%s has no argument `%s`", callee, arg->key);
  if (foreign_help(l, arena_printf(l->arena, "%s=", arg->key))) return d_of(D_error);
  const char *near = diag_nearest(arg->key, names, n);
  if (near)
    diag_help(l->c, "did you mean `%s`? `%s`", near, signature);
  else
    diag_help(l->c, "`%s`", signature);
  return d_of(D_error);
}

bool args_lack_list(Lower *l, const char *name, const Args *args)
{
  uint32_t tensors = 0;
  while (tensors < args->at.n && !args->at.at[tensors].key &&
         d_is_tensor(args->at.at[tensors].value))
    tensors++;
  if (!tensors) return false;
  Text call = text_new(l->arena);
  for (uint32_t i = 0; i < args->at.n; i++) {
    const ArgValue *arg = &args->at.at[i];
    const char *text = source_text(l, arg->span);
    text_printf(&call, "%s%s%s%s%s%s", i ? ", " : "", i ? "" : "[", arg->key ? arg->key : "",
                arg->key ? "=" : "", text, i + 1 == tensors ? "]" : "");
  }
  fail(l, E209, args->span, "%s needs a list of tensors, got %s", name,
       d_kind_text(l, args->at.at[0].value));
  diag_help(l->c, "write `%s(%s)`", name, call.at);
  return true;
}

/* Sorts a keyword argument into its slot: `f(dim=1)`. */
static bool sort_key(Lower *l, const Callee *f, const ArgValue *arg, const ArgValue **slot)
{
  uint32_t k = 0;
  if (!count_work(l, f->n / BYTES_PER_WORK, arg->key_span)) return false;
  while (k < f->n && strcmp(f->argument(f->of, k), arg->key) != 0) k++;
  if (k < f->n && slot[k]) {
    fail(l, E205, arg->key_span, "%s gets `%s` twice", f->name, arg->key);
    return diag_help(l->c, "`%s`", f->text(l, f->name, f->of));
  }
  if (k < f->n) return slot[k] = arg, true;
  const char **names = arena_array(l->arena, const char *, f->n);
  for (k = 0; k < f->n; k++) names[k] = f->argument(f->of, k);
  wrong_key(l, f->name, arg, names, f->n, f->text(l, f->name, f->of));
  return false;
}

bool args_sort(Lower *l, const Callee *f, const Args *args, const ArgValue **slot)
{
  bool good = true;
  uint32_t position = 0;
  for (uint32_t i = 0; i < args->at.n; i++) {
    const ArgValue *arg = &args->at.at[i];
    if (d_is(arg->value, D_error)) good = false;
    if (arg->key) {
      good = sort_key(l, f, arg, slot) && good;
    } else if (position < f->n) {
      slot[position++] = arg;
    } else {
      fail(l, E205, arg->span, "%s takes at most %u argument%s, got %u", f->name, f->n,
           f->n == 1 ? "" : "s", args->at.n);
      return diag_help(l->c, "`%s`", f->text(l, f->name, f->of));
    }
  }
  for (uint32_t i = 0; good && i < f->n; i++) {
    if (slot[i] || f->optional(f->of, i)) continue;
    fail(l, E205, args->span, "%s needs the argument `%s`", f->name, f->argument(f->of, i));
    good = diag_help(l->c, "`%s`", f->text(l, f->name, f->of));
  }
  return good;
}
