/* Lowers `params(bf16, masters=false)` and `moments(bf16)` or `moments(u8)` in `precision`: the
 * types in which the optimizers keep weights and moments, and how updates round to them. */
#include "model.h"

/* Reads `rounding="stochastic"`. Only weights have a kahan residue. */
static bool want_rounding(Lower *l, const ArgValue *a, bool weights, Rounding *out)
{
  static const char *const words[] = {
      [ROUND_stochastic] = "stochastic", [ROUND_nearest] = "nearest", [ROUND_kahan] = "kahan"};
  const char *word;
  if (!want_str(l, a->value, a->span, "`rounding`", &word)) return false;
  for (Rounding i = 0; i <= (weights ? ROUND_kahan : ROUND_nearest); i++)
    if (strcmp(word, words[i]) == 0) return *out = i, true;
  return refuse(l, E209, a->span, "`rounding` of %s is \"stochastic\"%s, got \"%s\"",
                weights ? "params" : "moments",
                weights ? ", \"kahan\" or \"nearest\"" : " or \"nearest\"", word);
}

/* Checks the settings of `params` against each other. */
static bool masters_fit(Lower *l, const Args *args, DType type, bool masters,
                        const ArgValue *rounds)
{
  if (masters && rounds) {
    fail(l, E605, rounds->span, "`rounding` needs `masters=false`: f32 masters are not rounded");
    return diag_help(l->c, "write `params(bf16, masters=false, rounding=..)`");
  }
  if (masters || type == AMPC_BF16) return true;
  fail(l, E605, args->at.at[0].span, "weights without f32 masters are bf16, got %s",
       ir_dtype_name(type));
  return diag_help(l->c, "write `params(bf16, masters=false)`");
}

static const ArgValue *named(const Args *args, const char *key)
{
  for (uint32_t i = 1; i < args->at.n; i++)
    if (args->at.at[i].key && strcmp(args->at.at[i].key, key) == 0) return &args->at.at[i];
  return NULL;
}

/* Applies `params(bf16)`: the type in which weights are stored, unless `store`, `.to(d)` or the
 * Parameter itself has a type. With masters=false all weights are bf16 and have no f32 masters. */
void clause_params(Lower *l, const Args *args)
{
  DType type;
  bool masters = true;
  const ArgValue *of = named(args, "masters"), *rounds = named(args, "rounding");
  if (!args->at.n || args->at.at[0].key || args->at.n != 1u + !!of + !!rounds) {
    fail(l, E205, args->span,
         "`params` takes the type that weights are stored in, and `masters` and `rounding`");
    diag_help(l->c, "write `params(bf16)` or `params(bf16, masters=false)`; to select parameters, "
                    "write `store(bf16, \"pattern\")` in `model`");
    return;
  }
  if (!want_store(l, args->at.at[0].value, args->at.at[0].span, &type)) return;
  if (of && !want_bool(l, of->value, of->span, "`masters`", &masters)) return;
  if (!masters_fit(l, args, type, masters, rounds)) return;
  l->g->rounds = ROUND_stochastic;
  if (rounds && !want_rounding(l, rounds, true, &l->g->rounds)) return;
  l->store = type;
  l->g->weights = masters ? AMPC_F32 : type;
}

/* Applies `moments(bf16)`: the type in which optimizers keep their moments. u8 stands for codes. */
void clause_moments(Lower *l, const Args *args)
{
  DType type;
  const ArgValue *rounds = named(args, "rounding");
  if (!args->at.n || args->at.at[0].key || args->at.n != 1u + !!rounds) {
    fail(l, E205, args->span, "`moments` takes the type of the moments, and `rounding`");
    diag_help(l->c, "write `moments(bf16)`");
    return;
  }
  const ArgValue *given = &args->at.at[0];
  if (given->value.kind == D_word) { /* such as int8, which `store` knows */
    fail(l, E209, given->span, "moments are f32, bf16 or u8, got %s", given->value.as.text);
    return;
  }
  if (!want_dtype(l, given->value, given->span, "the type of moments", &type)) return;
  if (type != AMPC_F32 && type != AMPC_BF16 && type != AMPC_U8) {
    fail(l, E209, given->span, "moments are f32, bf16 or u8, got %s", ir_dtype_name(type));
    return;
  }
  if (rounds && type != AMPC_BF16) {
    fail(l, E605, rounds->span, "`rounding` needs `moments(bf16)`: %s",
         type == AMPC_F32 ? "f32 moments are not rounded" : "8-bit moments round to nearest");
    return;
  }
  l->g->moment_rounds = ROUND_stochastic;
  if (rounds && !want_rounding(l, rounds, false, &l->g->moment_rounds)) return;
  l->g->moment_type = type;
}

bool store_fits(Lower *l, DType store, Span span)
{
  if (l->g->weights == AMPC_F32 || store == l->g->weights) return true;
  fail(l, E605, span,
       "this parameter is stored in %s, but `params(%s, masters=false)` stores all "
       "parameters in %s",
       ir_dtype_name(store), ir_dtype_name(l->g->weights), ir_dtype_name(l->g->weights));
  return diag_help(l->c, "store it in %s, or remove `masters=false`", ir_dtype_name(l->g->weights));
}
