/* Elaborates train and eval blocks, and statements typed in `amp repl`. Each block is elaborated
 * once, again for a smaller last batch, and again for each choice of its `every`. */
#include "block.h"
#include "infer.h"
#include "compiler/lower/watch.h"
#include "ampc_commands.h"
#include "common/number.h"
#include "common/shown.h"
#include <stdlib.h>
#include <string.h>

typedef struct Option { /* an option of `with` */
  const char *name;
  DatumKind kind;
  bool train, eval;
  size_t field; /* offset in BlockInfo; 0: the value is not stored in BlockInfo */
} Option;

#define FIELD(name) offsetof(BlockInfo, name)
static const Option options[] = {
    {"batch", D_int, true, true, FIELD(batch)},
    {"epochs", D_int, true, false, FIELD(epochs)},
    {"steps", D_int, true, true, FIELD(max_steps)},
    {"every", D_int, false, true, FIELD(every)},
    {"log", D_int, true, false, FIELD(log)},
    {"save_every", D_int, true, false, FIELD(save_every)},
    {"early_stop", D_int, true, false, FIELD(early_stop)},
    {"shuffle", D_bool, true, true, FIELD(shuffle)},
    {"drop_last", D_bool, true, true, FIELD(drop_last)},
    {"balance", D_str, true, false, FIELD(balance)},
    {"shards", D_int, true, false, 0},
    {"exchange", D_str, true, false, 0},
    {"save", D_str, true, false, FIELD(save)},
    {"name", D_str, true, true, FIELD(name)},
    {"seed", D_int, true, true, 0},
    {"resume", D_str, true, false, 0},
};
enum { OPTION_COUNT = sizeof options / sizeof options[0], MOST_NAME = 100 };

/* True if the option applies to the block: `epochs` only to train, `every` only to eval. */
static bool applies(const Option *o, const Decl *decl)
{
  return decl->kind == DECL_train ? o->train : o->eval;
}

/* Reports all unknown names of a `with`, not only the first. */
static bool check_option_names(Lower *l, const Decl *decl, const char *block)
{
  const ArgList *with = &decl->as.run.with;
  bool good = true;
  for (uint32_t i = 0; i < with->n; i++) {
    const char *names[OPTION_COUNT];
    uint32_t n = 0;
    bool known = false;
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
      if (!applies(&options[k], decl)) continue;
      names[n++] = options[k].name;
      known = known || strcmp(options[k].name, with->at[i].key.text) == 0;
    }
    if (known) continue;
    good = false;
    fail(l, E205, with->at[i].key.span, "%s has no option `%s`", block, with->at[i].key.text);
    if (!foreign_help(l, arena_printf(l->arena, "%s=", with->at[i].key.text)))
      diag_help_names(l->c, with->at[i].key.text, names, n);
  }
  return good;
}

static const Arg *find_option(const Decl *decl, const char *name)
{
  const ArgList *with = &decl->as.run.with;
  for (uint32_t i = 0; i < with->n; i++)
    if (strcmp(with->at[i].key.text, name) == 0) return &with->at[i];
  return NULL;
}

/* Checks the name of a block: progress, logs and tables print it, so it is one printable line. */
static bool name_fits(Lower *l, const char *name, Span span)
{
  size_t n = strlen(name);
  if (n == 0) return refuse(l, E209, span, "the name is empty");
  if (n > MOST_NAME)
    return refuse(l, E209, span, "the name has %zu bytes; it has at most %d", n, MOST_NAME);
  if (ampc_is_plain(name, n)) return true;
  fail(l, E209, span, "the name has characters that cannot be printed: `%s`", name);
  return diag_help(l->c, "a name must be UTF-8, without control characters and without characters "
                         "that change the text direction");
}

/* Checks the value of an option: counts are from 1 to AMPC_MOST_STEPS; a seed is any int. */
static bool option_kind_fits(Lower *l, const Option *o, Datum v, Span span)
{
  int64_t count;
  bool truth;
  const char *text, *what = arena_printf(l->arena, "`%s`", o->name);
  if (o->kind == D_bool) return want_bool(l, v, span, o->name, &truth);
  if (o->kind == D_str)
    return want_str(l, v, span, o->name, &text) &&
           (strcmp(o->name, "name") != 0 || name_fits(l, text, span));
  if (strcmp(o->name, "seed") == 0) return want_int(l, v, span, o->name, &count);
  return want_count(l, v, span, what, (Counts){1, AMPC_MOST_STEPS}, &count);
}

/* Stores the checkpoint to resume from. All blocks that name one must name the same. */
static void set_resume(Lower *l, BlockInfo *b, const char *path, Span span)
{
  for (uint32_t i = 0; i < l->g->blocks.n; i++) {
    const BlockInfo *other = &l->g->blocks.at[i];
    if (!other->resume || strcmp(other->resume, path) == 0) continue;
    fail(l, E605, span, "a run resumes from one checkpoint, but the job names `%s` and `%s`",
         other->resume, path);
    diag_note(l->c, other->span, "the block that names the other checkpoint");
    return;
  }
  b->resume = path;
}

/* Stores how members sum gradients; the last block that says it decides. */
static void set_exchange(Lower *l, const char *word, Span span)
{
  static const char *const words[] = {
      [AMPC_SUM_TREE] = "tree", [AMPC_SUM_FAST] = "fast", [AMPC_SUM_BF16] = "bf16"};
  enum { WORDS = sizeof words / sizeof *words };
  uint32_t i = 0;
  while (i < WORDS && strcmp(word, words[i]) != 0) i++;
  if (i < WORDS) {
    l->g->exchange = (ampc_exchange_mode)i;
    return;
  }
  fail(l, E209, span, "`exchange` is \"tree\", \"fast\" or \"bf16\", got \"%s\"", word);
}

/* Stores an option whose value has the right kind. An empty text means that it is not given. */
static void set_option(Lower *l, BlockInfo *b, const Option *o, Datum v, Span span)
{
  void *field = (char *)b + o->field;
  if (o->field && o->kind == D_int) *(int64_t *)field = v.as.integer;
  if (o->kind == D_bool) *(bool *)field = v.as.truth;
  if (o->field && o->kind == D_str) *(const char **)field = v.n ? v.as.text : NULL;
  if (strcmp(o->name, "seed") == 0) l->g->seed = (uint64_t)v.as.integer;
  if (strcmp(o->name, "exchange") == 0) set_exchange(l, v.as.text, span);
  if (strcmp(o->name, "resume") == 0 && v.n) set_resume(l, b, v.as.text, span);
}

/* Evaluates an option. A variable of the block is not there yet: `balance=y` needs its quotes. */
static Datum option_value(Lower *l, Scope *s, const Option *o, const Arg *arg)
{
  if (!arg) return (Datum){.kind = (uint8_t)o->kind};
  Datum v = eval(l, s, arg->value);
  if (d_is(v, D_error) && strcmp(o->name, "balance") == 0 && arg->value->kind == EXPR_name)
    diag_help(l->c, "write `balance=\"%s\"`", arg->value->as.name);
  return v;
}

/* Reads the options in the order of the table, not of the text. --set replaces a value or sets an
 * option that the text lacks: "train.batch". The key uses the block's first name, even if `name=`
 * gives it another. */
static bool read_options(Lower *l, const Decl *decl, BlockInfo *b)
{
  Scope *s = scope_new(l, NULL, l->job, NULL);
  const char *block = b->name;
  bool good = check_option_names(l, decl, block);
  for (uint32_t i = 0; i < OPTION_COUNT; i++) {
    const Option *o = &options[i];
    const Arg *arg = find_option(decl, o->name);
    if (!applies(o, decl)) continue;
    Datum v = option_value(l, s, o, arg);
    const char *key = arena_printf(l->arena, "%s.%s", block, o->name);
    bool given = arg || setting_given(l, key);
    Span span = arg ? arg->value->span : decl->span;
    if (d_is(v, D_error) || !setting_value(l, key, &v, &span))
      good = false;
    else if (given && !option_kind_fits(l, o, v, span))
      good = false;
    else if (given)
      set_option(l, b, o, v, span);
  }
  return good;
}

/* ---- one variant ---- */

bool begin_block(Lower *l, Run *run, const BlockInfo *info, const Run *first)
{
  if (l->g->blocks.n == MAX_BLOCKS)
    return refuse(
        l, E210, info->span,
        "the job has more than %d blocks; each batch size and each variant of a block counts",
        MAX_BLOCKS);
  uint16_t block = (uint16_t)l->g->blocks.n;
  vec_push(l->arena, &l->g->blocks, *info);
  if (l->sizes->twin && info->kind != AMPC_INFER)
    l->g->blocks.at[block].batch = info->batch != info->whole ? info->whole : 2 * info->batch;
  *run = (Run){.name = info->name,
               .block = block,
               .first = first ? first->first : block,
               .batch = info->batch,
               .all_batch = info->whole,
               .every = 1,
               .first_metric = first ? first->first_metric : l->g->metrics.n,
               .first_stream = l->g->n_streams};
  l->run = run;
  l->at = (Cursor){.block = block};
  l->training = info->kind == AMPC_TRAIN;
  l->watched = d_of(D_absent);
  for (uint32_t i = 0; i < l->optimizers.n; i++) l->optimizers.at[i]->updates = 0;
  return true;
}

void end_block(Lower *l)
{
  l->run = NULL;
  l->training = false;
  l->at = (Cursor){0};
}

/* Finds the source of the target that `balance` names, among the names of the block. */
static bool find_balance(Lower *l, const Decl *decl, const Datum *values)
{
  BlockInfo *b = &l->g->blocks.at[l->run->block];
  const NameList *names = &decl->as.run.names;
  const Arg *arg = find_option(decl, "balance");
  Span span = arg ? arg->value->span : decl->span;
  const char **known = arena_array(l->arena, const char *, names->n);
  if (!b->balance) return true;
  if (!b->shuffle) return refuse(l, E605, span, "`balance` draws an order, but shuffle=false");
  for (uint32_t i = 0; i < names->n; i++) {
    known[i] = names->at[i].text;
    if (strcmp(b->balance, known[i]) == 0)
      return source_balance(l, values[i], names->at[i].text, span, &b->balanced);
  }
  fail(l, E209, span, "`balance` names a variable of the block, got \"%s\"", b->balance);
  return diag_help_names(l->c, b->balance, known, names->n);
}

/* Binds the batch of `train x, y in points(64)`. The data function runs once. Its sources become
 * inputs of a step, and the names get its results, or D_error after a mistake. */
static bool bind_batch(Lower *l, Scope *s, const Decl *decl)
{
  const NameList *names = &decl->as.run.names;
  const Expr *source = decl->as.run.source;
  Datum *values = arena_array(l->arena, Datum, names->n);
  uint32_t first = l->g->nodes.n;
  l->in_source = true;
  Datum v = eval(l, s, source);
  l->in_source = false;
  if (l->run->block == l->run->first) check_batch_axis(l, first);
  bool good = !d_is(v, D_error) && unpack(l, v, names->n, source->span, values);
  for (uint32_t i = 0; i < names->n; i++) {
    Datum item = good ? values[i] : d_of(D_error);
    name_node(l, s, names->at[i].text, item);
    scope_bind(l, s, names->at[i].text, item, names->at[i].span);
  }
  if (good && !l->run->n_sources)
    return refuse(l, E209, source->span, "this reads no data source; its value is %s",
                  d_kind_text(l, v));
  return good && find_balance(l, decl, values);
}

/* Checks that there is a step: with fewer samples than a batch and drop_last there is none. */
static bool check_batch(Lower *l, const Decl *decl, const BlockInfo *b)
{
  int64_t samples = l->run->samples;
  if (!samples || b->whole <= samples || !b->drop_last) return true;
  fail(l, E605, decl->as.run.source->span, "batch=%lld of only %lld samples results in no step",
       (long long)b->whole, (long long)samples);
  return diag_help(l->c, "a smaller `batch`, or drop_last=false");
}

/* Checks that the number of steps is within bounds, as `epochs` and the number of samples are. */
static bool check_steps(Lower *l, const Decl *decl, const BlockInfo *b)
{
  int64_t per_epoch = l->run->samples / b->whole + (b->drop_last ? 0 : 1), steps;
  if (b->max_steps || ampc_steps_of(b->epochs, per_epoch, &steps)) return true;
  return refuse(l, E605, decl->as.run.source->span,
                "epochs=%lld of %lld samples need more than %lld steps", (long long)b->epochs,
                (long long)l->run->samples, (long long)AMPC_MOST_STEPS);
}

void add_output(Lower *l, const char *name, Datum v, Span span)
{
  Value x = as_tensor(l, v, span);
  if (!x.id) return;
  if (l->g->outputs.n == MAX_OUTPUTS) {
    fail(l, E210, span, "the job has more than %d outputs", MAX_OUTPUTS);
    l->stopped = true;
    return;
  }
  Datum out = append(l, span, OP_output, &x, 1, ATTRS({"index", {.i = l->g->outputs.n}}));
  if (!d_is(out, D_error))
    vec_push(l->arena, &l->g->outputs, (Output){name, l->run->block, out.as.tensor});
}

/* Warns about an eval block without metrics. Other variants use the metrics of the first variant.
 * After an error the metrics are not known. */
static void check_metrics(Lower *l, const Decl *decl)
{
  if (l->run->n_metrics || l->run->first != l->run->block || diag_error_count(l->c)) return;
  diag_warning(l->c, W606, decl->span, "this eval block has no metric, so it reports nothing");
  diag_help(l->c, "`metric acc = accuracy(net(x), y)`");
}

/* Whether the block changes state without a loss: it assigns to a Buffer, directly or by a layer
 * such as batch norm, or measures for a Standardize. */
static bool changes_state(const Lower *l)
{
  const Graph *g = l->g;
  const BlockInfo *b = &g->blocks.at[l->run->block];
  for (uint32_t i = 0; i < g->params.n; i++) {
    uint32_t measured = g->params.at[i].measured;
    if (measured > b->first_source && measured <= b->first_source + b->n_sources) return true;
  }
  for (uint32_t id = g->nodes.n - 1; id; id--) {
    const Node *n = ir_node(g, (Value){id});
    if (n->block == l->run->block && op_has(n, T_effect) && !op_has(n, T_adds)) return true;
  }
  return false;
}

/* Rejects a train block that trains nothing. The first variant has all statements. */
static void check_trains(Lower *l, const Decl *decl)
{
  const Run *r = l->run;
  if (r->n_losses || r->first != r->block || diag_error_count(l->c) || changes_state(l)) return;
  fail(l, E605, decl->span, "this train block minimizes no loss and changes no Buffer");
  diag_help(l->c, "`minimize cross_entropy(net(x), y) with opt`; an `eval` block only measures");
}

/* Elaborates one variant of a train or eval block, from its batch to the scaler's update. The code
 * between can reallocate the array of blocks, so b is looked up again. */
static void elaborate(Lower *l, const Decl *decl)
{
  Scope *s = scope_new(l, NULL, l->job, NULL);
  BlockInfo *b = &l->g->blocks.at[l->run->block];
  bind_batch(l, s, decl);
  b = &l->g->blocks.at[l->run->block];
  b->n_sources = l->run->n_sources;
  b->batches = l->run->samples / b->whole + (!b->drop_last && l->run->samples % b->whole);
  if (!check_batch(l, decl, b) || !check_steps(l, decl, b)) return;
  bool train = b->kind == AMPC_TRAIN;
  l->at.region = l->job_region;
  Frame frame = {.kind = train ? FRAME_train : FRAME_eval, .scope = s};
  if (train) every_probe(l, decl->span);
  exec_block(l, &frame, &decl->as.run.body);
  if (train)
    check_trains(l, decl);
  else
    check_metrics(l, decl);
  watch_end(l, s);
  l->at.region = 0;
  if (train)
    append(l, decl->span, OP_scaler_update, NULL, 0,
           ATTRS({"acts", {.i = l->run->n_minimized > 0}}));
}

/* Elaborates the other variants of one batch size after `whole`: Note [choices] in every.c. */
static void elaborate_choices(Lower *l, const Decl *decl, const Run *whole, const BlockInfo *first,
                              const uint32_t *choice, uint32_t n)
{
  uint32_t streams = l->g->n_streams;
  BlockInfo *b = &l->g->blocks.at[whole->block];
  b->n_periods = first->n_periods;
  memcpy(b->period, first->period, sizeof b->period);
  b->fires = choice[0];
  BlockInfo info = *b;
  info.batch = whole->batch;
  info.variant_of = whole->first;
  for (uint32_t i = 1; i < n; i++) {
    Run run;
    info.fires = choice[i];
    if (!begin_block(l, &run, &info, whole)) return;
    run.whole = whole;
    l->g->n_streams = whole->first_stream;
    elaborate(l, decl);
  }
  l->g->n_streams = streams;
}

typedef struct Share { /* the samples of a member */
  int64_t whole, batch;
  bool idle, remainder;
} Share;

/* Adds the shares of `whole` samples. If it does not divide, some members have one sample less. A
 * member without samples computes one that does not count. */
static uint32_t add_shares(const Lower *l, int64_t whole, bool remainder, Share *out)
{
  int64_t members = l->g->members, less = whole / members;
  uint32_t n = 0;
  if (whole % members) out[n++] = (Share){whole, less + 1, false, remainder};
  out[n++] = (Share){whole, less ? less : 1, less == 0, remainder};
  return n;
}

static void set_share(BlockInfo *b, Share s)
{
  b->whole = s.whole;
  b->batch = s.batch;
  b->idle = s.idle;
  b->remainder = s.remainder;
}

enum { MOST_SHARES = 4 };

/* Elaborates all variants. A data set of 50 samples with batch=16 leaves 2 samples. If these are
 * kept, the block is elaborated again with batch 2: shapes are compile-time values, so the smaller
 * batch is a step of its own. So is each number of samples that a member may have. Each of these
 * may use numbers of `every` that the others lack. */
static void elaborate_variants(Lower *l, const Decl *decl, BlockInfo *info)
{
  Run run[MOST_SHARES];
  Share share[MOST_SHARES];
  uint32_t errors = diag_error_count(l->c), choice[AMPC_MAX_VARIANTS];
  uint32_t n_shares = add_shares(l, info->batch, false, share);
  for (uint32_t i = 0; i < n_shares && diag_error_count(l->c) == errors; i++) {
    set_share(info, share[i]);
    if (i) info->variant_of = run[0].block;
    if (i && share[i].whole == share[i - 1].whole) l->g->n_streams = run[i - 1].first_stream;
    if (!begin_block(l, &run[i], info, i ? &run[0] : NULL)) return;
    elaborate(l, decl);
    int64_t left = i ? 0 : run[0].samples % info->whole;
    if (left && !info->drop_last) n_shares += add_shares(l, left, true, share + n_shares);
  }
  if (diag_error_count(l->c) != errors) return;
  uint32_t most = AMPC_MAX_VARIANTS / n_shares;
  uint32_t n = every_choices(l, &l->g->blocks.at[run[0].block], most, choice);
  const BlockInfo first = l->g->blocks.at[run[0].block];
  for (uint32_t i = 0; i < n_shares && n; i++)
    elaborate_choices(l, decl, &run[i], &first, choice, n);
}

static const char *numbered(Lower *l, const char *name, uint32_t number)
{
  return number > 1 ? arena_printf(l->arena, "%s%u", name, number) : name;
}

/* Checks that each member has samples of a whole batch. */
static bool check_members(Lower *l, const BlockInfo *b)
{
  if (b->batch >= l->g->members) return true;
  fail(l, E605, b->span, "batch=%lld is too small for %u shares", (long long)b->batch,
       l->g->members);
  return diag_help(l->c, "give each at least one sample: a larger `batch`, or fewer ranks");
}

/* Finds the number of members: `shards` of a train block, else the number of ranks. All blocks have
 * the same members, so it is read before any of them. */
void lower_members(Lower *l)
{
  uint32_t trains = 0, ranks = l->c->options.ranks ? l->c->options.ranks : 1;
  l->g->members = ranks;
  for (uint32_t i = 0; i < l->job->ast->n; i++) {
    const Decl *d = l->job->ast->at[i];
    if (d->kind != DECL_train) continue;
    const char *key = arena_printf(l->arena, "%s.shards", numbered(l, "train", ++trains));
    const Arg *arg = find_option(d, "shards");
    Span span = arg ? arg->value->span : d->span;
    int64_t n;
    Datum v = arg ? eval(l, scope_new(l, NULL, l->job, NULL), arg->value) : d_int(1);
    if (d_is(v, D_error) || !setting_value(l, key, &v, &span)) return;
    if (!arg && !setting_given(l, key)) continue;
    if (!want_count(l, v, span, "`shards`", (Counts){1, AMPC_MOST_MEMBERS}, &n)) return;
    if (n & (n - 1)) fail(l, E209, span, "`shards` is a power of 2, got %lld", (long long)n);
    if (n % ranks)
      fail(l, E605, span, "shards=%lld cannot be shared out to %u ranks", (long long)n, ranks);
    if (l->g->members != ranks && l->g->members != n)
      fail(l, E605, span, "all train blocks of a job have the same `shards`");
    l->g->members = (uint32_t)n;
  }
}

void lower_run(Lower *l, const Decl *decl, uint32_t number)
{
  bool train = decl->kind == DECL_train;
  BlockInfo info = {.kind = train ? AMPC_TRAIN : AMPC_EVAL,
                    .name = numbered(l, train ? "train" : "eval", number),
                    .span = decl->span,
                    .batch = 1,
                    .variant_of = -1,
                    .epochs = 1,
                    .accumulate = 1,
                    .shuffle = train,
                    .drop_last = train,
                    .first_source = l->g->sources.n};
  if (!read_options(l, decl, &info) || !check_members(l, &info)) return;
  elaborate_variants(l, decl, &info);
  end_block(l);
}

/* ---- names ---- */

static int compare_names(const void *a, const void *b)
{
  const BlockInfo *p = *(const BlockInfo *const *)a, *q = *(const BlockInfo *const *)b;
  int order = strcmp(p->name, q->name);
  return order ? order : (p > q) - (p < q);
}

/* Reports two blocks with one name, since logs have columns for each block and name it. Sorting
 * makes this fast for jobs with many blocks. */
void lower_check_names(Lower *l)
{
  const BlockInfo **by_name = arena_array(l->arena, const BlockInfo *, l->g->blocks.n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->g->blocks.n; i++)
    if (l->g->blocks.at[i].variant_of < 0) by_name[n++] = &l->g->blocks.at[i];
  qsort(by_name, n, sizeof *by_name, compare_names);
  for (uint32_t i = 1; i < n; i++) {
    if (strcmp(by_name[i - 1]->name, by_name[i]->name) != 0) continue;
    fail(l, E210, by_name[i]->span, "two blocks have the name `%s`", by_name[i]->name);
    diag_note(l->c, by_name[i - 1]->span, "the other one");
    diag_help(l->c, "progress, logs and tables refer to a block by its name: rename one of the two "
                    "with name=\"...\"");
  }
}

/* ---- statements typed at a prompt ---- */

/* Adds the answer for `amp repl`: compile-time values as text, tensors as outputs. */
void add_answer(Lower *l, Datum v, Span span)
{
  bool tensors = d_contains(v, D_tensor) || d_contains(v, D_param) || d_contains(v, D_schedule);
  if (d_contains(v, D_type_of)) {
    fail(l, E307, span, "%s is not known yet: pass precision decides it later", d_text(l, v));
    diag_help(l->c, "`:type x` shows the type that x has");
    return;
  }
  if (!tensors) {
    l->c->answer = arena_shown(l->arena, d_answer_text(l, v), "\n\t");
    if (v.kind == D_instance) l->c->answer_layer = v.as.instance->layer;
    return;
  }
  if (v.kind != D_list) {
    add_output(l, "answer", v, span);
    return;
  }
  for (uint32_t i = 0; i < v.n; i++)
    add_output(l, arena_printf(l->arena, "answer.%u", i), v.as.list[i], span);
}

/* Elaborates statements typed in `amp repl` as an infer block without arguments. */
void lower_body(Lower *l, const Decl *decl)
{
  const Function *def = &decl->as.function;
  BlockInfo info = infer_info(l, decl);
  Run run;
  if (!begin_block(l, &run, &info, NULL)) return;
  Frame frame = {.kind = FRAME_function, .scope = scope_new(l, NULL, l->job, NULL)};
  l->at.region = l->job_region;
  Block before = def->body;
  const Stmt *last = before.n ? before.at[before.n - 1] : NULL;
  bool value = last && last->kind == STMT_return;
  before.n -= value;
  exec_block(l, &frame, &before);
  if (value && !frame.returned) look_result(l, &frame, last);
  l->g->blocks.at[run.block].n_sources = run.n_sources;
  if (frame.returned && !d_is(frame.result, D_error))
    add_answer(l, frame.result, frame.result_span);
  end_block(l);
}
