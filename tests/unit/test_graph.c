/* The graph without a front end: signatures, promotion, shape rules; and the passes precision,
 * gradient and simplify on graphs built by hand. tests/passes has texts of whole graphs. */
#include "check.h"
#include "compiler/driver.h"
#include "compiler/graph/optimizers.h"
#include "compiler/passes/passes.h"

typedef struct Job { /* a graph with one train block of batch 4 in one region */
  Compile *c;
  Graph *g;
  Cursor at;
} Job;

static Job job_begin(RegionKind kind)
{
  static const Options options = {.input = "-", .target = "cpu", .error_limit = 20};
  Job j = {.c = compile_create(&options)};
  j.g = ir_create(j.c);
  vec_push(j.c->arena, &j.g->regions, (Region){.kind = kind, .label = "precision x"});
  vec_push(j.c->arena, &j.g->blocks, (BlockInfo){.kind = AMPC_TRAIN, .name = "train", .batch = 4});
  for (int i = 0; i < 2; i++) {
    Optimizer o = {.name = i ? "other" : "opt", .kind = OPT_SGD};
    vec_push(j.c->arena, &o.groups, (ParamGroup){0});
    vec_push(j.c->arena, &j.g->optimizers, o);
  }
  j.at.region = 1;
  return j;
}

static void job_end(Job *j)
{
  compile_destroy(j->c);
}

static Value param(Job *j, const char *path, uint8_t rank, int64_t d0, int64_t d1)
{
  Parameter p = {.path = path, .model = "net", .of = -1, .rank = rank, .dim = {d0, d1}};
  vec_push(j->c->arena, &j->g->params, p);
  return ir_append(j->c, &j->at, OP_param, NULL, 0, ATTRS({"index", {.i = j->g->params.n - 1}}));
}

static Value source(Job *j, DType type, uint8_t rank, int64_t d0, int64_t d1)
{
  ampc_source s = {.dtype = type, .rank = rank, .dim = {d0, d1}, .path = "file"};
  vec_push(j->c->arena, &j->g->sources, s);
  return ir_append(j->c, &j->at, OP_source, NULL, 0, ATTRS({"index", {.i = j->g->sources.n - 1}}));
}

static Value minimize(Job *j, Value loss, int64_t optimizer)
{
  uint32_t n = optimizer_row(OPT_SGD)->n_settings;
  Value in[1 + MAX_SIGNATURE] = {loss};
  for (uint32_t i = 0; i < n; i++) in[1 + i] = ir_number(j->c, &j->at, 0.1);
  return ir_append(j->c, &j->at, OP_minimize, in, 1 + n, ATTRS({"optimizer", {.i = optimizer}}));
}

static Value output(Job *j, Value x)
{
  vec_push(j->c->arena, &j->g->outputs, (Output){.name = "y", .value = x});
  Value v = ir_append(j->c, &j->at, OP_output, &x, 1, ATTRS({"index", {.i = j->g->outputs.n - 1}}));
  j->g->outputs.at[j->g->outputs.n - 1].value = v;
  return v;
}

static Value reduce_all(Job *j, OpKind op, Value x)
{
  return ir_append(j->c, &j->at, op, &x, 1, NULL);
}

static bool type_graph(Job *j)
{
  j->g->facts = IR_SHAPED;
  if (!pass_precision(j->c)) return false;
  j->g->facts |= IR_TYPED;
  ir_check(j->c, "precision");
  return true;
}

static bool differentiate(Job *j)
{
  if (!type_graph(j) || !pass_gradient(j->c)) return false;
  j->g->facts |= IR_DIFFED;
  ir_check(j->c, "gradient");
  return true;
}

static void simplify(Job *j)
{
  MUST(pass_simplify(j->c));
  ir_check(j->c, "simplify");
}

static uint32_t count(const Job *j, OpKind op)
{
  uint32_t n = 0;
  for (uint32_t i = 1; i < j->g->nodes.n; i++) n += j->g->nodes.at[i].op == op;
  return n;
}

static const Node *find(const Job *j, OpKind op)
{
  for (uint32_t i = 1; i < j->g->nodes.n; i++) {
    if (j->g->nodes.at[i].op == op) return &j->g->nodes.at[i];
  }
  return NULL;
}

static const Node *result(const Job *j, uint32_t output_index)
{
  return &j->g->nodes.at[ir_node(j->g, j->g->outputs.at[output_index].value)->in[0].id];
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Checks rows of optimizers.def: the arguments, and the conditions of moments and flags. */
static void test_optimizers(void)
{
  OptimizerKind kind;
  CHECK(optimizer_lookup("AdamW", &kind) && kind == OPT_AdamW && !optimizer_lookup("adam", &kind));
  const OptimizerInfo *sgd = optimizer_row(OPT_SGD), *adamw = optimizer_row(OPT_AdamW);
  CHECK(sgd->n_settings == 8 && sgd->n_arguments == 9 && sgd->argument[7].flag);
  CHECK(sgd->moments == 1 && sgd->keep[0].nonzero == 1 << 1 && !sgd->keep[0].zero);
  CHECK(sgd->needs[0].nonzero == 1 << 1 && sgd->needs[0].zero == 1 << 2);
  CHECK(adamw->n_settings == 9 && adamw->n_arguments == 9 && adamw->moments == 7);
  CHECK(!strcmp(adamw->argument[1].name, "betas") && adamw->argument[1].n == 2);
  CHECK(!strcmp(adamw->argument[5].name, "clamp") && adamw->argument[5].n == 2);
  CHECK(adamw->argument[5].optional && adamw->argument[6].whole && !adamw->argument[0].optional);
  CHECK(!adamw->keep[0].flags && adamw->keep[2].flags == 1);
  ParamGroup plain = {0}, nesterov = {.flags = 1};
  Optimizer o = {.kind = OPT_SGD}, w = {.kind = OPT_AdamW};
  CHECK(optimizer_holds(&o, &nesterov, "nesterov", 8) &&
        !optimizer_holds(&o, &plain, "nesterov", 8));
  CHECK(optimizer_holds(&w, &plain, "decoupled", 9) &&
        !optimizer_holds(&o, &plain, "decoupled", 9));
}

static void test_signatures(void)
{
  OpKind op;
  CHECK(op_lookup("softmax", &op) && op == OP_softmax);
  CHECK(!op_lookup("reshape", &op)); /* internal */
  CHECK(!op_lookup("softmaxx", &op));
  const OpSignature *sig = &op_row(OP_clamp)->signature;
  CHECK(sig->n_inputs == 1 && sig->n_attrs == 2 && sig->internal);
  CHECK(!strcmp(sig->attr[1].name, "max") && sig->attr[0].value.f < -1e300);
  sig = &op_row(OP_layer_norm)->signature;
  CHECK(sig->internal && sig->input[1].optional && !sig->input[0].optional);
  CHECK(sig->attr[0].kind == ATTR_axis && sig->attr[0].value.i == -1);
  CHECK(op_row(OP_cat)->signature.input[0].variadic && op_row(OP_reshape)->signature.n_attrs == 7);
  CHECK(op_row(OP_matmul)->signature.attr[0].name == NULL &&
        op_row(OP_softmax)->signature.attr[0].required);
  CHECK((op_row(OP_metric)->traits & T_effect) && (op_row(OP_grad_norm)->traits & T_effect) &&
        !(op_row(OP_output)->traits & T_effect));
}

static void test_promotion(void)
{
  CHECK(dtype_promote(AMPC_F16, AMPC_BF16) == AMPC_F32);
  CHECK(dtype_promote(AMPC_I64, AMPC_F16) == AMPC_F16);
  CHECK(dtype_promote(AMPC_BOOL, AMPC_U8) == AMPC_U8);
  Job j = job_begin(REGION_off);
  Value half = source(&j, AMPC_F16, 1, 3, 0), whole = source(&j, AMPC_I32, 1, 3, 0);
  Value bits = source(&j, AMPC_BOOL, 1, 3, 0);
  Value scalar = reduce_all(&j, OP_sum, source(&j, AMPC_F32, 1, 3, 0));
  Value number = ir_number(j.c, &j.at, 2.5), integer = ir_integer(j.c, &j.at, 2);
  struct {
    OpKind op;
    Value a, b;
    DType type;
  } cases[] = {{OP_mul, half, number, AMPC_F16},    {OP_mul, half, scalar, AMPC_F16},
               {OP_mul, whole, number, AMPC_F32},   {OP_mul, whole, scalar, AMPC_F32},
               {OP_mul, whole, integer, AMPC_I32},  {OP_div, whole, integer, AMPC_F32},
               {OP_mul, bits, integer, AMPC_I64},   {OP_mul, half, whole, AMPC_F16},
               {OP_mul, number, integer, AMPC_F32}, {OP_lt, half, whole, AMPC_BOOL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Value v = ir_binary(j.c, &j.at, cases[i].op, cases[i].a, cases[i].b);
    MUST(v.id);
    CHECK_MSG(ir_node(j.g, v)->dtype == cases[i].type, "case %zu", i);
  }
  CHECK(ir_node(j.g, ir_binary(j.c, &j.at, OP_add, number, integer))->weak);
  CHECK(!ir_node(j.g, ir_binary(j.c, &j.at, OP_add, number, scalar))->weak);
  CHECK(ir_node(j.g, ir_unary(j.c, &j.at, OP_exp, whole))->dtype == AMPC_F32);
  CHECK(ir_node(j.g, reduce_all(&j, OP_sum, bits))->dtype == AMPC_I64);
  job_end(&j);
}

/* ---- shapes ---- */

static bool has_type(Job *j, Value v, const char *type)
{
  const char *got = v.id ? ir_type_text(j->c, ir_node(j->g, v)) : "nothing";
  if (strcmp(got, type) == 0) return true;
  fprintf(stderr, "got %s, wanted %s\n", got, type);
  return false;
}

static void test_shapes(void)
{
  Job j = job_begin(REGION_f32);
  Value x = source(&j, AMPC_F32, 2, 5, 6), w = param(&j, "w", 2, 6, 3);
  Value v = param(&j, "v", 1, 6, 0), lw = param(&j, "lw", 2, 7, 6), row = param(&j, "r", 1, 5, 0);
  CHECK(has_type(&j, x, "f32[4, 5, 6]"));
  CHECK(has_type(&j, ir_binary(j.c, &j.at, OP_matmul, x, w), "f32[4, 5, 3]"));
  CHECK(has_type(&j, ir_binary(j.c, &j.at, OP_matmul, x, v), "f32[4, 5]"));
  CHECK(has_type(&j, ir_binary(j.c, &j.at, OP_matmul, row, x), "f32[4, 6]"));
  CHECK(has_type(&j, ir_binary(j.c, &j.at, OP_matmul, v, v), "f32[]"));
  CHECK(has_type(&j, ir_append(j.c, &j.at, OP_linear, (Value[]){x, lw}, 2, NULL), "f32[4, 5, 7]"));
  const NamedAttr *mean = ATTRS({"dim", {.i = 6}}, {"keepdim", {.i = 1}});
  const NamedAttr *arg = ATTRS({"dim", {.i = -1}});
  CHECK(has_type(&j, ir_append(j.c, &j.at, OP_mean, &x, 1, mean), "f32[4, 1, 1]"));
  CHECK(has_type(&j, ir_append(j.c, &j.at, OP_argmax, &x, 1, arg), "i64[4, 5]"));
  const NamedAttr *cut =
      ATTRS({"dim", {.i = 1}}, {"start", {.i = 0}}, {"stop", {.i = 5}}, {"step", {.i = 2}});
  const NamedAttr *joined = ATTRS({"dim", {.i = 1}});
  CHECK(has_type(&j, ir_append(j.c, &j.at, OP_slice, &x, 1, cut), "f32[4, 3, 6]"));
  CHECK(has_type(&j, ir_append(j.c, &j.at, OP_cat, (Value[]){x, x}, 2, joined), "f32[4, 10, 6]"));
  CHECK(has_type(&j, ir_reshape(j.c, &j.at, x, (int64_t[]){20, 6}, 2), "f32[20, 6]"));
  CHECK(has_type(&j, ir_reduce(j.c, &j.at, OP_sum, x, 5, false), "f32[5]"));
  CHECK(has_type(&j, ir_reduce(j.c, &j.at, OP_sum, x, 5, true), "f32[1, 5, 1]"));
  CHECK(diag_error_count(j.c) == 0);
  job_end(&j);
}

static void test_mistakes(void)
{
  Job j = job_begin(REGION_f32);
  Value x = source(&j, AMPC_F32, 2, 5, 6), w = param(&j, "w", 2, 7, 3), none = {0};
  Value label = source(&j, AMPC_I64, 0, 0, 0);
  const NamedAttr *axis = ATTRS({"dim", {.i = 1}}),
                  *shape = ir_shape_attrs(j.c, (int64_t[]){7, 7}, 2);
  struct {
    OpKind op;
    Value in[3];
    uint32_t n;
    const NamedAttr *attrs;
  } wrong[] = {{OP_matmul, {x, w}, 2, NULL},
               {OP_linear, {x, w}, 2, NULL},
               {OP_add, {x, w}, 2, NULL},
               {OP_softmax, {label}, 1, ATTRS({"dim", {.i = 0}})},
               {OP_matmul, {x, label}, 2, NULL},
               {OP_cat, {x, w}, 2, axis},
               {OP_where, {x, x, x}, 3, NULL},
               {OP_cross_entropy_rows, {x, x}, 2, ATTRS({"dim", {.i = 2}})},
               {OP_minimize, {x}, 1, ATTRS({"optimizer", {.i = 0}})},
               {OP_reshape, {x}, 1, shape},
               {OP_mean, {label}, 1, NULL}};
  uint32_t n = sizeof wrong / sizeof *wrong;
  for (uint32_t i = 0; i < n; i++) {
    Cursor at = j.at;
    at.span = (Span){0, 0};
    CHECK(!ir_append(j.c, &at, wrong[i].op, wrong[i].in, wrong[i].n, wrong[i].attrs).id);
    CHECK_MSG(diag_error_count(j.c) == i + 1, "case %u", i);
  }
  CHECK(!ir_binary(j.c, &j.at, OP_add, none, x).id); /* no message: `none` is an error */
  CHECK(diag_error_count(j.c) == n);
  job_end(&j);
}

/* ---- precision ---- */

/* Returns the loss of two layers with a layer norm between them and cross entropy. */
static Value small_model(Job *j)
{
  Value x = source(j, AMPC_F32, 1, 6, 0), label = source(j, AMPC_I64, 0, 0, 0);
  Value w1 = param(j, "fc1.weight", 2, 8, 6), b1 = param(j, "fc1.bias", 1, 8, 0);
  Value w2 = param(j, "fc2.weight", 2, 3, 8), g = param(j, "norm.weight", 1, 8, 0);
  Value h = ir_append(j->c, &j->at, OP_linear, (Value[]){x, w1, b1}, 3, NULL);
  h = ir_unary(j->c, &j->at, OP_relu, h);
  h = ir_append(j->c, &j->at, OP_layer_norm, (Value[]){h, g}, 2, NULL);
  h = ir_append(j->c, &j->at, OP_linear, (Value[]){h, w2}, 2, NULL);
  const NamedAttr *axis = ATTRS({"dim", {.i = 1}});
  Value rows = ir_append(j->c, &j->at, OP_cross_entropy_rows, (Value[]){h, label}, 2, axis);
  return reduce_all(j, OP_mean, rows);
}

static void test_autocast(void)
{
  Job j = job_begin(REGION_bf16);
  output(&j, small_model(&j));
  MUST(type_graph(&j));
  CHECK(find(&j, OP_linear)->dtype == AMPC_BF16 && find(&j, OP_linear)->why == WHY_low);
  CHECK(find(&j, OP_relu)->dtype == AMPC_BF16 && find(&j, OP_relu)->why == WHY_follow);
  CHECK(find(&j, OP_layer_norm)->dtype == AMPC_F32 && find(&j, OP_layer_norm)->why == WHY_f32);
  CHECK(find(&j, OP_cross_entropy_rows)->dtype == AMPC_F32);
  CHECK(result(&j, 0)->dtype == AMPC_F32);
  CHECK(count(&j, OP_cast) == 7); /* x, w1, b1; relu; norm; w2; logits */
  job_end(&j);
}

static void test_shared_casts(void)
{
  Job j = job_begin(REGION_f16);
  Value x = source(&j, AMPC_F32, 1, 6, 0), w = param(&j, "w", 2, 6, 6);
  Value a = ir_append(j.c, &j.at, OP_linear, (Value[]){x, w}, 2, NULL);
  Value b = ir_append(j.c, &j.at, OP_linear, (Value[]){a, w}, 2, NULL);
  output(&j, ir_binary(j.c, &j.at, OP_add, b, ir_number(j.c, &j.at, 1e-3)));
  output(&j, ir_binary(j.c, &j.at, OP_add, b, x));
  MUST(type_graph(&j));
  CHECK(count(&j, OP_cast) == 3); /* x, w, and the sum's f16 input */
  CHECK(result(&j, 0)->dtype == AMPC_F16 && result(&j, 1)->dtype == AMPC_F32);
  job_end(&j);
}

static void test_regions(void)
{
  Job j = job_begin(REGION_tf32);
  Value x = source(&j, AMPC_F16, 1, 6, 0), w = param(&j, "w", 2, 6, 6);
  output(&j, ir_append(j.c, &j.at, OP_linear, (Value[]){x, w}, 2, NULL));
  MUST(type_graph(&j));
  CHECK(result(&j, 0)->dtype == AMPC_F32 && result(&j, 0)->why == WHY_region);
  CHECK(ir_is_tf32(j.c, result(&j, 0)));
  job_end(&j);
  j = job_begin(REGION_off);
  x = source(&j, AMPC_F16, 1, 6, 0), w = param(&j, "w", 2, 6, 6);
  output(&j, ir_append(j.c, &j.at, OP_linear, (Value[]){x, w}, 2, NULL));
  CHECK(!pass_precision(j.c)); /* E401 */
  job_end(&j);
}

static void test_constants(void)
{
  static const struct {
    double value;
    bool fits;
  } cases[] = {{-1e9, false}, {65519, true}, {65520, false}, {-1.0 / 0.0, true}, {0, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Job j = job_begin(REGION_f16);
    Value x = source(&j, AMPC_F16, 1, 6, 0), zero = ir_number(j.c, &j.at, 0);
    Value mask = ir_binary(j.c, &j.at, OP_gt, x, zero);
    Value number = ir_number(j.c, &j.at, cases[i].value);
    output(&j, ir_append(j.c, &j.at, OP_where, (Value[]){mask, number, x}, 3, NULL));
    CHECK_MSG(pass_precision(j.c) == cases[i].fits, "case %zu", i);
    job_end(&j);
  }
}

/* ---- gradient ---- */

static void test_gradient(void)
{
  Job j = job_begin(REGION_f16);
  j.g->scaler.on = true;
  minimize(&j, small_model(&j), 0);
  MUST(differentiate(&j));
  CHECK(count(&j, OP_grad_accumulate) == 4);
  CHECK(count(&j, OP_loss_scale) == 1 && count(&j, OP_sgd_update) == 1);
  CHECK(count(&j, OP_optimizer_control) == 1 && count(&j, OP_grad_norm) == 1);
  simplify(&j);
  CHECK(count(&j, OP_gemm) == 3); /* no gradient by the batch */
  for (uint32_t i = 1; i < j.g->nodes.n; i++) {
    const Node *n = &j.g->nodes.at[i];
    if (n->op != OP_grad_accumulate) continue;
    const Node *value = ir_in(j.c, n, 0);
    int64_t slot = attr_int(n, "param");
    bool weight = slot == 0 || slot == 2; /* the f32 result of a product, without a cast */
    if (weight) CHECK(value->op == OP_gemm && ir_in(j.c, value, 0)->dtype == AMPC_F16);
    CHECK(ir_node(j.g, n->origin)->op == OP_param);
  }
  job_end(&j);
}

static void test_strict_rounding(void)
{
  Job j = job_begin(REGION_f16);
  j.c->options.strict_rounding = true;
  minimize(&j, small_model(&j), 0);
  MUST(differentiate(&j));
  for (uint32_t i = 1; i < j.g->nodes.n; i++)
    CHECK(j.g->nodes.at[i].op != OP_gemm || j.g->nodes.at[i].dtype == AMPC_F16);
  job_end(&j);
}

/* Checks a weight that is used twice. Its gradients are summed before they reach GRAD, in f32
 * unless the rounding must be PyTorch's. */
static void check_shared_weight(bool strict)
{
  Job j = job_begin(REGION_f16);
  j.c->options.strict_rounding = strict;
  Value x = source(&j, AMPC_F32, 1, 6, 0), w = param(&j, "w", 2, 6, 6);
  Value h = ir_append(j.c, &j.at, OP_linear, (Value[]){x, w}, 2, NULL);
  h = ir_append(j.c, &j.at, OP_linear, (Value[]){h, w}, 2, NULL);
  minimize(&j, reduce_all(&j, OP_sum, h), 0);
  MUST(differentiate(&j));
  CHECK(count(&j, OP_grad_accumulate) == 1 && count(&j, OP_add) == 1);
  CHECK(find(&j, OP_add)->dtype == (strict ? AMPC_F16 : AMPC_F32));
  job_end(&j);
}

static void test_shared_weight(void)
{
  check_shared_weight(false);
  check_shared_weight(true);
}

/* Checks three products of one f32 value: they share a cast; 16-bit gradients are added in f32. */
static void test_shared_cast(void)
{
  Job j = job_begin(REGION_f16);
  Value x = source(&j, AMPC_F32, 2, 6, 6), p = param(&j, "p", 1, 6, 0), loss = {0};
  Value h = ir_binary(j.c, &j.at, OP_mul, x, p);
  for (int i = 0; i < 3; i++) {
    Value w = param(&j, i == 0 ? "a" : i == 1 ? "b" : "c", 2, 6, 6);
    Value y = ir_append(j.c, &j.at, OP_linear, (Value[]){h, w}, 2, NULL);
    y = reduce_all(&j, OP_sum, y);
    loss = loss.id ? ir_binary(j.c, &j.at, OP_add, loss, y) : y;
  }
  minimize(&j, loss, 0);
  MUST(differentiate(&j));
  uint32_t sums = 0;
  for (uint32_t i = loss.id + 1; i < j.g->nodes.n; i++) {
    const Node *n = &j.g->nodes.at[i];
    if (n->op != OP_add || n->rank == 0) continue;
    sums++;
    CHECK(n->dtype == AMPC_F32);
  }
  CHECK(sums == 2);
  job_end(&j);
}

static void test_two_optimizers(void)
{
  Job j = job_begin(REGION_f32);
  Value x = source(&j, AMPC_F32, 1, 6, 0), a = param(&j, "a", 1, 6, 0), b = param(&j, "b", 1, 6, 0);
  j.g->params.at[1].optimizer = 1;
  Value loss =
      reduce_all(&j, OP_sum, ir_binary(j.c, &j.at, OP_mul, ir_binary(j.c, &j.at, OP_mul, x, a), b));
  minimize(&j, loss, 0);
  minimize(&j, loss, 1);
  MUST(differentiate(&j)); /* all gradients, then both updates */
  CHECK(count(&j, OP_grad_accumulate) == 2 && count(&j, OP_sgd_update) == 2);
  job_end(&j);
  j = job_begin(REGION_f32);
  x = source(&j, AMPC_F32, 1, 6, 0), a = param(&j, "a", 1, 6, 0), b = param(&j, "b", 1, 6, 0);
  j.g->params.at[1].optimizer = 1;
  Value y = ir_binary(j.c, &j.at, OP_mul, ir_binary(j.c, &j.at, OP_mul, x, b), a);
  minimize(&j, reduce_all(&j, OP_sum, y), 0);
  minimize(&j, reduce_all(&j, OP_mean, y), 1);
  CHECK(type_graph(&j) && !pass_gradient(j.c)); /* E602: the gradient of b needs the old a */
  job_end(&j);
}

static void test_cut(void)
{
  Job j = job_begin(REGION_f32);
  Value w = param(&j, "w", 1, 6, 0);
  minimize(&j, reduce_all(&j, OP_sum, ir_unary(j.c, &j.at, OP_detach, w)), 0);
  CHECK(type_graph(&j) && !pass_gradient(j.c)); /* E601 */
  CHECK(diag_error_count(j.c) == 1);
  job_end(&j);
}

static void test_gradient_of(void)
{
  Job j = job_begin(REGION_f32);
  Value a = source(&j, AMPC_F32, 2, 5, 6), b = param(&j, "b", 1, 6, 0),
        other = param(&j, "c", 0, 0, 0);
  Value y = ir_binary(j.c, &j.at, OP_mul, a, b);
  MUST(type_graph(&j));
  const Value *dx = gradient_of(j.c, &j.at, y, y, (Value[]){a, b, other}, 3);
  CHECK(has_type(&j, dx[0], "f32[4, 5, 6]") && has_type(&j, dx[1], "f32[6]") && !dx[2].id);
  job_end(&j);
}

/* ---- simplify ---- */

static void test_simplify(void)
{
  Job j = job_begin(REGION_off);
  Value x = source(&j, AMPC_F16, 2, 5, 6);
  Value wide = ir_cast(j.c, &j.at, x, AMPC_F32), back = ir_cast(j.c, &j.at, wide, AMPC_F16);
  output(&j, ir_unary(j.c, &j.at, OP_relu, back));
  output(&j, ir_unary(j.c, &j.at, OP_relu, x));
  Value flat = ir_reshape(j.c, &j.at, x, (int64_t[]){120}, 1);
  output(&j, ir_unary(j.c, &j.at, OP_neg, ir_reshape(j.c, &j.at, flat, (int64_t[]){4, 5, 6}, 3)));
  ir_unary(j.c, &j.at, OP_exp, wide);
  MUST(differentiate(&j));
  simplify(&j);
  CHECK(count(&j, OP_cast) == 0 && count(&j, OP_relu) == 1 && count(&j, OP_exp) == 0);
  CHECK(count(&j, OP_reshape) == 0 && count(&j, OP_output) == 3);
  job_end(&j);
}

static void test_narrowing_stays(void)
{
  Job j = job_begin(REGION_off);
  Value x = source(&j, AMPC_F32, 1, 6, 0);
  Value narrow = ir_cast(j.c, &j.at, x, AMPC_BF16);
  output(&j, ir_cast(j.c, &j.at, narrow, AMPC_F32));
  MUST(differentiate(&j));
  simplify(&j);
  CHECK(count(&j, OP_cast) == 2);
  job_end(&j);
}

static Value drop(Job *j, Value x, uint32_t stream)
{
  Value v = ir_append(j->c, &j->at, OP_drop, &x, 1, ATTRS({"p", {.f = 0.5}}));
  ir_node(j->g, v)->stream = stream;
  return v;
}

static void test_random_streams(void)
{
  Job j = job_begin(REGION_f32);
  Value x = source(&j, AMPC_F32, 1, 6, 0);
  for (uint32_t stream = 1; stream <= 2; stream++) output(&j, drop(&j, x, stream));
  output(&j, drop(&j, x, 2));
  MUST(differentiate(&j));
  simplify(&j);
  CHECK(count(&j, OP_drop) == 2);
  job_end(&j);
}

static void test_products(void)
{
  Job j = job_begin(REGION_f32);
  Value x = source(&j, AMPC_F32, 2, 5, 6), w = param(&j, "w", 2, 6, 3), v = param(&j, "v", 1, 5, 0);
  output(&j, ir_binary(j.c, &j.at, OP_matmul, x, w));
  output(&j, ir_binary(j.c, &j.at, OP_matmul, v, x));
  MUST(differentiate(&j));
  simplify(&j);
  CHECK(count(&j, OP_matmul) == 0 && count(&j, OP_gemm) == 2);
  CHECK(!strcmp(ir_dims_text(j.c, result(&j, 0)), "[4, 5, 3]"));
  CHECK(!strcmp(ir_dims_text(j.c, result(&j, 1)), "[4, 6]"));
  job_end(&j);
}

int main(void)
{
  test_signatures();
  test_optimizers();
  test_promotion();
  test_shapes();
  test_mistakes();
  test_autocast();
  test_shared_casts();
  test_regions();
  test_constants();
  test_gradient();
  test_strict_rounding();
  test_shared_weight();
  test_shared_cast();
  test_two_optimizers();
  test_cut();
  test_gradient_of();
  test_simplify();
  test_narrowing_stays();
  test_random_streams();
  test_products();
  return check_done();
}
