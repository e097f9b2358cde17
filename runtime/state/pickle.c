/* A stack machine for the instructions that torch.save writes: protocol 2 of Python's pickle. Its
 * memory grows with the bytes of the pickle, and no instruction recurses. torch_file.c gives the
 * items their meaning. */
#include "pickle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Constant items. */
enum { NOTHING, MARK, FIRST_ITEM };
enum { TO_MARK = -1 /* for make_tuple: all values from the last mark on */ };

/* ---- classes and functions that a pickle may name ---- */

typedef enum Becomes { /* the result of a call */
                       BECOMES_other,
                       BECOMES_dict,
                       BECOMES_tensor,
                       BECOMES_first, /* its first argument, a tensor */
                       BECOMES_error  /* a type, which is never called */
} Becomes;

static const struct {
  const char *name;
  Becomes becomes;
  const char *type; /* of a storage: its elements */
} globals[] = {
    {"collections.OrderedDict", BECOMES_dict, NULL},
    {"torch._utils._rebuild_tensor_v2", BECOMES_tensor, NULL},
    {"torch._utils._rebuild_parameter", BECOMES_first, NULL},
    {"torch.DoubleStorage", BECOMES_error, "F64"},
    {"torch.FloatStorage", BECOMES_error, "F32"},
    {"torch.HalfStorage", BECOMES_error, "F16"},
    {"torch.BFloat16Storage", BECOMES_error, "BF16"},
    {"torch.LongStorage", BECOMES_error, "I64"},
    {"torch.IntStorage", BECOMES_error, "I32"},
    {"torch.ShortStorage", BECOMES_error, "I16"},
    {"torch.CharStorage", BECOMES_error, "I8"},
    {"torch.ByteStorage", BECOMES_error, "U8"},
    {"torch.BoolStorage", BECOMES_error, "BOOL"},
    /* values beside the tensors of a training checkpoint */
    {"torch.Size", BECOMES_other, NULL},
    {"torch.device", BECOMES_other, NULL},
    {"torch.float64", BECOMES_other, NULL},
    {"torch.float32", BECOMES_other, NULL},
    {"torch.float16", BECOMES_other, NULL},
    {"torch.bfloat16", BECOMES_other, NULL},
    {"torch.int64", BECOMES_other, NULL},
    {"torch.int32", BECOMES_other, NULL},
    {"torch.uint8", BECOMES_other, NULL},
    {"torch.bool", BECOMES_other, NULL},
    {"collections.Counter", BECOMES_other, NULL},
    {"__builtin__.set", BECOMES_other, NULL},
    {"__builtin__.complex", BECOMES_other, NULL},
    {"_codecs.encode", BECOMES_other, NULL}, /* bytes */
};
enum { N_GLOBALS = sizeof globals / sizeof *globals };

const char *pickle_type(const PickleItem *global)
{
  return global->kind == PICKLE_global ? globals[global->number].type : NULL;
}

/* ---- items ---- */

static ampc_status no_memory(const Pickle *p)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", p->path);
}

static ampc_status damaged(const Pickle *p, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: its pickle %s, before byte %lld", p->path, why,
                   (long long)p->at);
}

/* Makes room for `n` elements; new ones are zero. */
static bool grow(void *array, uint32_t *room, uint32_t n, size_t size)
{
  if (n <= *room) return true;
  uint32_t wanted = n < 64 ? 64 : 2 * n;
  char *more = realloc(*(void **)array, wanted * size);
  if (!more) return false;
  memset(more + *room * size, 0, (wanted - *room) * size);
  *(void **)array = more;
  *room = wanted;
  return true;
}

static ampc_status push(Pickle *p, uint32_t item)
{
  if (!grow(&p->stack, &p->room_stack, p->n_stack + 1, sizeof *p->stack)) return no_memory(p);
  p->stack[p->n_stack++] = item;
  return AMPC_OK;
}

static ampc_status push_new(Pickle *p, PickleItem item)
{
  if (!grow(&p->items, &p->room_items, p->n_items + 1, sizeof *p->items)) return no_memory(p);
  p->items[p->n_items] = item;
  return push(p, p->n_items++);
}

static ampc_status add_cell(Pickle *p, PickleItem *to, uint32_t key, uint32_t value)
{
  if (!grow(&p->cells, &p->room_cells, p->n_cells + 1, sizeof *p->cells)) return no_memory(p);
  uint32_t cell = p->n_cells++;
  p->cells[cell] = (PickleCell){key, value, 0};
  if (to->first)
    p->cells[to->last].next = cell;
  else
    to->first = cell;
  to->last = cell;
  return AMPC_OK;
}

/* Pops an item of this kind. False: the stack has none. */
static bool pop(Pickle *p, PickleKind kind, uint32_t *out)
{
  if (!p->n_stack || p->items[p->stack[p->n_stack - 1]].kind != kind) return false;
  *out = p->stack[--p->n_stack];
  return true;
}

/* Finds the last mark, and removes it and everything above it from the stack. *out: the items that
 * were above it, valid until the next push. */
static bool pop_mark(Pickle *p, const uint32_t **out, uint32_t *out_n)
{
  uint32_t i = p->n_stack;
  while (i && p->stack[i - 1] != MARK) i--;
  if (!i) return false;
  *out = p->stack + i;
  *out_n = p->n_stack - i;
  p->n_stack = i - 1;
  return true;
}

/* Returns the top of the stack if it is of this kind, otherwise NULL. */
static PickleItem *top(const Pickle *p, PickleKind kind)
{
  PickleItem *item = p->n_stack ? &p->items[p->stack[p->n_stack - 1]] : NULL;
  return item && item->kind == kind ? item : NULL;
}

const PickleItem *pickle_element(const Pickle *p, const PickleItem *container, uint32_t i)
{
  uint32_t cell = container->first;
  while (cell && i--) cell = p->cells[cell].next;
  return cell ? &p->items[p->cells[cell].value] : NULL;
}

/* ---- instructions ---- */

/* Returns the next n bytes; NULL: the pickle is shorter. */
static const uint8_t *take(Pickle *p, int64_t n)
{
  if (n > p->size - p->at) return NULL;
  p->at += n;
  return p->bytes + p->at - n;
}

/* Reads a little-endian number of n bytes, at most 8. */
static bool take_number(Pickle *p, int n, int64_t *out)
{
  const uint8_t *from = take(p, n);
  uint64_t v = 0;
  for (int i = n - 1; from && i >= 0; i--) v = v << 8 | from[i];
  *out = (int64_t)v;
  return from != NULL;
}

static ampc_status short_of(const Pickle *p)
{
  return damaged(p, "ends in the middle of an instruction");
}

static ampc_status push_constant(Pickle *p, int item)
{
  return push(p, (uint32_t)item);
}

static ampc_status push_truth(Pickle *p, int value)
{
  return push_new(p, (PickleItem){.kind = PICKLE_number, .number = value});
}

static ampc_status read_whole(Pickle *p, int bytes)
{
  int64_t v;
  if (!take_number(p, bytes, &v)) return short_of(p);
  if (bytes == 4) v = (int32_t)v;
  return push_new(p, (PickleItem){.kind = PICKLE_number, .number = v});
}

/* Reads an integer of any length; no size or offset has more than 8 bytes. */
static ampc_status read_long(Pickle *p, int bytes)
{
  int64_t n, v;
  if (!take_number(p, bytes, &n)) return short_of(p);
  if (n > 8) return take(p, n) ? push(p, NOTHING) : short_of(p);
  if (!take_number(p, (int)n, &v)) return short_of(p);
  int unused = 64 - 8 * (int)n;
  if (n) v = (int64_t)((uint64_t)v << unused) >> unused;
  return push_new(p, (PickleItem){.kind = PICKLE_number, .number = v});
}

static ampc_status skip_float(Pickle *p, int bytes)
{
  return take(p, bytes) ? push(p, NOTHING) : short_of(p);
}

static ampc_status read_text(Pickle *p, int bytes)
{
  int64_t n;
  const uint8_t *text = take_number(p, bytes, &n) ? take(p, n) : NULL;
  if (!text) return short_of(p);
  return push_new(p, (PickleItem){.kind = PICKLE_text, .number = n, .text = (const char *)text});
}

/* Reads the two lines that name a class or function. */
static ampc_status read_global(Pickle *p, int lines)
{
  char name[200] = "";
  size_t used = 0;
  for (int line = 0; line < lines; line++) {
    const uint8_t *from = p->bytes + p->at, *end = memchr(from, '\n', (size_t)(p->size - p->at));
    if (!end) return short_of(p);
    used += (size_t)snprintf(name + used, sizeof name - used, "%s%.*s", line ? "." : "",
                             end - from < 90 ? (int)(end - from) : 90, (const char *)from);
    take(p, end - from + 1);
  }
  for (int i = 0; i < N_GLOBALS; i++)
    if (strcmp(globals[i].name, name) == 0)
      return push_new(p, (PickleItem){.kind = PICKLE_global, .number = i});
  for (char *c = name; *c; c++) /* it is printed */
    if (*c < ' ' || *c > '~') *c = '?';
  return ampc_fail(AMPC_BAD_FILE,
                   "%s contains %s: only tensors, dictionaries, numbers and text are read; in "
                   "PyTorch save model.state_dict()",
                   p->path, name);
}

/* Fails if the stack has fewer than n values. */
static ampc_status need(const Pickle *p, int n)
{
  return p->n_stack >= (uint32_t)n ? AMPC_OK : damaged(p, "takes more values than there are");
}

/* Calls a function with a tuple of arguments, both on the stack: this only notes what it returns.
 */
static ampc_status call(Pickle *p, int values)
{
  uint32_t arguments, callee;
  ampc_status status = need(p, values);
  if (status) return status;
  if (!pop(p, PICKLE_tuple, &arguments) || !pop(p, PICKLE_global, &callee))
    return damaged(p, "calls what is no function");
  PickleItem result = p->items[arguments];
  const PickleItem *first = pickle_element(p, &result, 0);
  Becomes becomes = globals[p->items[callee].number].becomes;
  if (becomes == BECOMES_other) return push(p, NOTHING);
  if (becomes == BECOMES_dict && !first) return push_new(p, (PickleItem){.kind = PICKLE_dict});
  if (becomes == BECOMES_first && first && first->kind == PICKLE_tensor)
    return push(p, (uint32_t)(first - p->items));
  if (becomes != BECOMES_tensor) return damaged(p, "calls a function with wrong arguments");
  result.kind = PICKLE_tensor;
  return push_new(p, result);
}

/* Makes a tuple of the last n values, or of all from the last mark on. */
static ampc_status make_tuple(Pickle *p, int n)
{
  PickleItem made = {.kind = PICKLE_tuple};
  const uint32_t *at;
  uint32_t count = (uint32_t)n;
  ampc_status status = n == TO_MARK ? AMPC_OK : need(p, n);
  if (status) return status;
  if (n != TO_MARK)
    at = p->stack + (p->n_stack -= count);
  else if (!pop_mark(p, &at, &count))
    return damaged(p, "lacks a mark");
  for (uint32_t i = 0; i < count && !status; i++) status = add_cell(p, &made, NOTHING, at[i]);
  return status ? status : push_new(p, made);
}

static ampc_status make_empty(Pickle *p, int kind)
{
  return push_new(p, (PickleItem){.kind = (PickleKind)kind});
}

/* Adds n values to the list below them, or if `each` is 2, n / 2 pairs to the dictionary. */
static ampc_status add_values(Pickle *p, const uint32_t *at, uint32_t n, uint32_t each)
{
  PickleItem *to = top(p, each == 2 ? PICKLE_dict : PICKLE_list);
  ampc_status status = AMPC_OK;
  if (!to || n % each) return damaged(p, "adds values to what is no list or dictionary");
  for (uint32_t i = 0; i < n && !status; i += each)
    status = add_cell(p, to, each == 2 ? at[i] : NOTHING, at[i + each - 1]);
  return status;
}

static ampc_status add_items(Pickle *p, int each)
{
  ampc_status status = need(p, each);
  if (status) return status;
  p->n_stack -= (uint32_t)each;
  return add_values(p, p->stack + p->n_stack, (uint32_t)each, (uint32_t)each);
}

static ampc_status add_marked_items(Pickle *p, int each)
{
  const uint32_t *at;
  uint32_t n;
  if (!pop_mark(p, &at, &n)) return damaged(p, "lacks a mark");
  return add_values(p, at, n, (uint32_t)each);
}

/* Drops the attributes of an object: a state_dict has `_metadata`. */
static ampc_status drop_attributes(Pickle *p, int values)
{
  ampc_status status = need(p, values);
  if (!status) p->n_stack--;
  return status;
}

static ampc_status make_storage(Pickle *p, int values)
{
  uint32_t item;
  ampc_status status = need(p, values);
  if (status) return status;
  if (!pop(p, PICKLE_tuple, &item)) return damaged(p, "has a storage without a description");
  PickleItem made = p->items[item];
  made.kind = PICKLE_storage;
  return push_new(p, made);
}

/* Python numbers the remembered items one after the other. */
static ampc_status remember(Pickle *p, int bytes)
{
  int64_t i;
  if (!take_number(p, bytes, &i)) return short_of(p);
  if (!p->n_stack || i > p->size) return damaged(p, "remembers an item that is not there");
  if (!grow(&p->memo, &p->room_memo, (uint32_t)i + 1, sizeof *p->memo)) return no_memory(p);
  if (i >= p->n_memo) p->n_memo = (uint32_t)i + 1;
  p->memo[i] = p->stack[p->n_stack - 1];
  return AMPC_OK;
}

static ampc_status recall(Pickle *p, int bytes)
{
  int64_t i;
  if (!take_number(p, bytes, &i)) return short_of(p);
  if (i >= p->n_memo) return damaged(p, "recalls an item that was not remembered");
  return push(p, p->memo[i]);
}

/* The instructions: what executes each one, and its argument. */
static const struct {
  ampc_status (*run)(Pickle *p, int argument);
  int argument;
} instructions[256] = {
    ['('] = {push_constant, MARK},
    ['N'] = {push_constant, NOTHING},
    [0x88] = {push_truth, 1},
    [0x89] = {push_truth, 0},
    ['K'] = {read_whole, 1},
    ['M'] = {read_whole, 2},
    ['J'] = {read_whole, 4},
    [0x8a] = {read_long, 1},
    ['G'] = {skip_float, 8},
    ['X'] = {read_text, 4},
    ['c'] = {read_global, 2},
    [')'] = {make_tuple, 0},
    [0x85] = {make_tuple, 1},
    [0x86] = {make_tuple, 2},
    [0x87] = {make_tuple, 3},
    ['t'] = {make_tuple, TO_MARK},
    [']'] = {make_empty, PICKLE_list},
    ['}'] = {make_empty, PICKLE_dict},
    ['a'] = {add_items, 1},
    ['s'] = {add_items, 2},
    ['e'] = {add_marked_items, 1},
    ['u'] = {add_marked_items, 2},
    ['R'] = {call, 2},
    ['b'] = {drop_attributes, 2},
    ['Q'] = {make_storage, 1},
    ['q'] = {remember, 1},
    ['r'] = {remember, 4},
    ['h'] = {recall, 1},
    ['j'] = {recall, 4},
};

static ampc_status execute(Pickle *p, int byte)
{
  if (instructions[byte].run) return instructions[byte].run(p, instructions[byte].argument);
  return ampc_fail(AMPC_BAD_FILE,
                   "%s: byte %lld of its pickle is 0x%02x, an instruction that torch.save does not "
                   "write",
                   p->path, (long long)p->at - 1, (unsigned)byte);
}

ampc_status pickle_read(const char *path, const uint8_t *bytes, int64_t size, Pickle *out)
{
  *out = (Pickle){.path = path, .bytes = bytes, .size = size, .n_cells = 1}; /* cell 0: none */
  if (!grow(&out->items, &out->room_items, FIRST_ITEM, sizeof *out->items) ||
      !grow(&out->cells, &out->room_cells, 1, sizeof *out->cells) ||
      !grow(&out->stack, &out->room_stack, 1, sizeof *out->stack))
    return no_memory(out);
  out->items[MARK].kind = PICKLE_mark;
  out->n_items = FIRST_ITEM;
  const uint8_t *head = take(out, 2);
  if (!head || head[0] != 0x80) return damaged(out, "does not begin like one");
  if (head[1] != 2)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has a pickle of protocol %d; torch.save writes protocol 2 by default",
                     path, head[1]);
  ampc_status status = AMPC_OK;
  for (int64_t instruction; !status;) {
    if (!take_number(out, 1, &instruction)) return short_of(out);
    if (instruction == '.') break;
    status = execute(out, (int)instruction);
  }
  if (!status && (out->n_stack != 1 || out->stack[0] == MARK))
    status = damaged(out, "leaves more or less than one value");
  if (!status) out->root = out->stack[0];
  return status;
}

void pickle_free(Pickle *p)
{
  free(p->items);
  free(p->cells);
  free(p->stack);
  free(p->memo);
}
