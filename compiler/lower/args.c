/* Arguments of a call, and what to say about a wrong one. */
#include "elaborate.h"

void args_push(Lower *l, Args *a, Datum value, Span span)
{
  vec_push(l->arena, &a->at, (ArgValue){value, NULL, span, span});
}

/* "Conv2d(in_channels, out_channels, kernel_size, stride=1)", for the help of a message.
 * Defaults are shown in the words of the source. */
const char *signature_text(Lower *l, const char *name, const ParamList *params)
{
  Text t;
  text_init(&t, l->arena);
  text_printf(&t, "%s(", name);
  for (uint32_t i = 0; i < params->n; i++) {
    text_printf(&t, "%s%s", i ? ", " : "", params->at[i].name.text);
    if (params->at[i].value) text_printf(&t, "=%s", source_text(l, params->at[i].value->span));
  }
  text_puts(&t, ")");
  return t.at;
}

/* A keyword argument that the callee does not have. */
Datum wrong_key(Lower *l, const char *callee, const ArgValue *arg, const char *const *names,
                uint32_t n, const char *signature)
{
  fail(l, E205, arg->key_span, "%s has no argument `%s`", callee, arg->key);
  const char *near = diag_nearest(arg->key, names, n);
  if (near)
    diag_help(l->c, "did you mean `%s`? `%s`", near, signature);
  else
    diag_help(l->c, "`%s`", signature);
  return d_of(D_error);
}

bool args_bind(Lower *l, const Args *args, const Signature *sig, const ArgValue **given)
{
  for (uint32_t i = 0; i < args->at.n; i++) {
    const ArgValue *arg = &args->at.at[i];
    uint32_t k = arg->key ? 0 : i;
    while (arg->key && k < sig->n && strcmp(sig->names[k], arg->key) != 0) k++;
    if (k == sig->n && arg->key)
      return wrong_key(l, sig->callee, arg, sig->names, sig->n, sig->text), false;
    if (k >= sig->n)
      fail(l, E205, arg->span, "%s takes at most %u arguments", sig->callee, sig->n);
    else if (given[k])
      fail(l, E205, arg->span, "%s gets `%s` twice", sig->callee, sig->names[k]);
    if (k >= sig->n || given[k]) return diag_help(l->c, "`%s`", sig->text);
    given[k] = arg;
  }
  for (uint32_t k = 0; k < sig->required; k++) {
    if (given[k]) continue;
    fail(l, E205, args->span, "%s needs the argument `%s`", sig->callee, sig->names[k]);
    return diag_help(l->c, "`%s`", sig->text);
  }
  return true;
}
