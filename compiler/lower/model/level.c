/* Levels: `precision O2`, as in NVIDIA's Apex. O0 is another name for f32, and O1 for f16. O2 and
 * O3 cast no ops. The whole model runs in f16: its weights are cast where they are read, the
 * arguments of its call are cast to f16, and its results are cast to f32. Inside and outside of the
 * model, ops compute in the types of their operands. O2 keeps the weights of batch norm in f32 and
 * has a loss scale; O3 does not.
 *
 * Masters, gradients and running statistics are f32 at all levels. docs/precision.md lists the
 * other differences from Apex. */
#include "model.h"

const Level levels[LEVEL_COUNT] = {
    {"O0", REGION_f32, REGION_f32, 0},
    {"O1", REGION_f16, REGION_f16, 1},
    {"O2", REGION_f16, REGION_off, 2},
    {"O3", REGION_f16, REGION_off, 3},
};

const Level *level_by_name(const char *name)
{
  for (int i = 0; i < LEVEL_COUNT; i++)
    if (strcmp(levels[i].name, name) == 0) return &levels[i];
  return NULL;
}

static bool casts_models(const Lower *l)
{
  return l->level && l->level->region == REGION_off;
}

DType level_store(const Lower *l, const ParamSlot *p)
{
  bool norm = p->owner && p->owner->class->file->builtin &&
              strncmp(p->owner->class->name, "BatchNorm", 9) == 0;
  if (casts_models(l) && l->store == AMPC_F32 && (l->level->number == 3 || !norm)) return AMPC_F16;
  return l->store;
}

static Datum cast_floats(Lower *l, Datum d, DType to, Span span)
{
  if (d.kind == D_list) {
    DatumVec items = {0};
    for (uint32_t i = 0; i < d.n; i++)
      vec_push(l->arena, &items, cast_floats(l, d.as.list[i], to, span));
    Datum list = d_list_of(l, &items);
    list.tuple = d.tuple;
    return list;
  }
  if (d.kind != D_tensor || !dtype_is_float(tensor_dtype(l, d))) return d;
  Value x = d.as.tensor;
  if (ir_node(l->g, x)->weak) return d;
  return d_tensor(ir_cast_asked(l->c, &l->at, x, to));
}

bool level_enter(Lower *l, const Instance *m, Args *args)
{
  if (!casts_models(l) || l->inside || !m->path || !l->run) return false;
  l->at.span = diag_user_span(l->c, args->span);
  l->at.why = WHY_region;
  for (uint32_t i = 0; i < args->at.n; i++)
    args->at.at[i].value = cast_floats(l, args->at.at[i].value, AMPC_F16, args->at.at[i].span);
  l->at.why = WHY_none;
  return true;
}

Datum level_leave(Lower *l, Datum result, Span span)
{
  l->at.span = diag_user_span(l->c, span);
  l->at.why = WHY_region;
  result = cast_floats(l, result, AMPC_F32, span);
  l->at.why = WHY_none;
  return result;
}
