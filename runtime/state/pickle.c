/* A stack machine for the instructions that torch.save writes: protocol 2 of Python's pickle. Its
 * memory grows with the bytes of the pickle, and no instruction recurses. torch_file.c gives the
 * items their meaning. */
#include "pickle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Constant items. */
enum { NOTHING, MARK, FIRST_ITEM };

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

static ampc_status read_whole(Pickle *p, int bytes)
{
  int64_t v;
  if (!take_number(p, bytes, &v)) return short_of(p);
  if (bytes == 4) v = (int32_t)v;
  return push_new(p, (PickleItem){.kind = PICKLE_number, .number = v});
}

/* Reads an integer of any length; no size or offset has more than 8 bytes. */
static ampc_status read_long(Pickle *p)
{
  int64_t n, v;
  if (!take_number(p, 1, &n)) return short_of(p);
  if (n > 8) return take(p, n) ? push(p, NOTHING) : short_of(p);
  if (!take_number(p, (int)n, &v)) return short_of(p);
  int unused = 64 - 8 * (int)n;
  if (n) v = (int64_t)((uint64_t)v << unused) >> unused;
  return push_new(p, (PickleItem){.kind = PICKLE_number, .number = v});
}

static ampc_status read_text(Pickle *p)
{
  int64_t n;
  const uint8_t *text = take_number(p, 4, &n) ? take(p, n) : NULL;
  if (!text) return short_of(p);
  return push_new(p, (PickleItem){.kind = PICKLE_text, .number = n, .text = (const char *)text});
}

/* Reads the two lines that name a class or function. */
static ampc_status read_global(Pickle *p)
{
  char name[200] = "";
  size_t used = 0;
  for (int line = 0; line < 2; line++) {
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

static ampc_status call(Pickle *p)
{
  uint32_t arguments, callee;
  if (!pop(p, PICKLE_tuple, &arguments) || !pop(p, PICKLE_global, &callee))
    return damaged(p, "calls what is no function");
  PickleItem result = p->items[arguments];
  const PickleItem *first = pickle_element(p, &result, 0);
  switch (globals[p->items[callee].number].becomes) {
  case BECOMES_other:
    return push(p, NOTHING);
  case BECOMES_dict:
    if (first) break;
    return push_new(p, (PickleItem){.kind = PICKLE_dict});
  case BECOMES_tensor:
    result.kind = PICKLE_tensor;
    return push_new(p, result);
  case BECOMES_first:
    if (!first || first->kind != PICKLE_tensor) break;
    return push(p, (uint32_t)(first - p->items));
  case BECOMES_error:
    break;
  }
  return damaged(p, "calls a function with wrong arguments");
}

static ampc_status make_container(Pickle *p, PickleKind kind, const uint32_t *at, uint32_t n)
{
  PickleItem made = {.kind = kind};
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i++) status = add_cell(p, &made, NOTHING, at[i]);
  return status ? status : push_new(p, made);
}

static ampc_status make_tuple(Pickle *p, uint32_t n)
{
  if (p->n_stack < n) return damaged(p, "takes more values than there are");
  p->n_stack -= n;
  return make_container(p, PICKLE_tuple, p->stack + p->n_stack, n);
}

static ampc_status make_marked_tuple(Pickle *p)
{
  const uint32_t *at;
  uint32_t n;
  if (!pop_mark(p, &at, &n)) return damaged(p, "lacks a mark");
  return make_container(p, PICKLE_tuple, at, n);
}

/* Adds items to the list or dictionary below them: all from the last mark on, or one. */
static ampc_status add_items(Pickle *p, PickleKind kind, bool marked)
{
  uint32_t each = kind == PICKLE_dict ? 2 : 1, n = each;
  const uint32_t *at;
  if (marked ? !pop_mark(p, &at, &n) : p->n_stack < each) return damaged(p, "lacks values");
  if (!marked) at = p->stack + (p->n_stack -= each);
  PickleItem *to = top(p, kind);
  if (!to || n % each) return damaged(p, "adds values to what is no list or dictionary");
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i += each)
    status = add_cell(p, to, each == 2 ? at[i] : NOTHING, at[i + each - 1]);
  return status;
}

/* Drops the attributes of an object: a state_dict has `_metadata`. */
static ampc_status drop_attributes(Pickle *p)
{
  if (p->n_stack < 2) return damaged(p, "takes more values than there are");
  p->n_stack--;
  return AMPC_OK;
}

static ampc_status make_storage(Pickle *p)
{
  uint32_t item;
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

static ampc_status unknown(const Pickle *p, int instruction)
{
  return ampc_fail(AMPC_BAD_FILE,
                   "%s: byte %lld of its pickle is 0x%02x, an instruction that torch.save does not "
                   "write",
                   p->path, (long long)p->at - 1, (unsigned)instruction);
}

static ampc_status execute(Pickle *p, int instruction)
{
  switch (instruction) {
  case '(':
    return push(p, MARK);
  case ')':
    return make_tuple(p, 0);
  case 0x85:
    return make_tuple(p, 1);
  case 0x86:
    return make_tuple(p, 2);
  case 0x87:
    return make_tuple(p, 3);
  case 't':
    return make_marked_tuple(p);
  case ']':
    return push_new(p, (PickleItem){.kind = PICKLE_list});
  case '}':
    return push_new(p, (PickleItem){.kind = PICKLE_dict});
  case 'a':
    return add_items(p, PICKLE_list, false);
  case 'e':
    return add_items(p, PICKLE_list, true);
  case 's':
    return add_items(p, PICKLE_dict, false);
  case 'u':
    return add_items(p, PICKLE_dict, true);
  case 'N':
    return push(p, NOTHING);
  case 0x88: /* true */
  case 0x89:
    return push_new(p, (PickleItem){.kind = PICKLE_number, .number = instruction == 0x88});
  case 'G':
    return take(p, 8) ? push(p, NOTHING) : short_of(p); /* a float */
  case 'K':
    return read_whole(p, 1);
  case 'M':
    return read_whole(p, 2);
  case 'J':
    return read_whole(p, 4);
  case 0x8a:
    return read_long(p);
  case 'X':
    return read_text(p);
  case 'c':
    return read_global(p);
  case 'R':
    return call(p);
  case 'b':
    return drop_attributes(p);
  case 'Q':
    return make_storage(p);
  case 'q':
    return remember(p, 1);
  case 'r':
    return remember(p, 4);
  case 'h':
    return recall(p, 1);
  case 'j':
    return recall(p, 4);
  default:
    return unknown(p, instruction);
  }
}

ampc_status pickle_read(const char *path, const uint8_t *bytes, int64_t size, Pickle *out)
{
  *out = (Pickle){.path = path, .bytes = bytes, .size = size, .n_cells = 1}; /* cell 0: none */
  if (!grow(&out->items, &out->room_items, FIRST_ITEM, sizeof *out->items) ||
      !grow(&out->cells, &out->room_cells, 1, sizeof *out->cells))
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
