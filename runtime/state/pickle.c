/* Note [pickles]
 * A stack machine for the instructions of Python's pickle, protocols 2 to 5. Its memory grows with
 * the bytes of the pickle, and no instruction recurses. torch_file.c gives the items their meaning.
 *
 * Files of training programs hold objects of any classes beside the tensors. A class that is not in
 * the table below is never loaded or called: an object of it is opaque, and its state is dropped.
 * Only an object that is filled like a dictionary becomes one, because it may hold the tensors. */
#include "pickle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"

/* Constant items. */
enum { NOTHING, MARK, FIRST_ITEM };
enum { TO_MARK = -1 /* for make_tuple and make_filled: all values from the last mark on */ };

/* ---- classes and functions that a pickle may name ---- */

typedef enum Becomes { /* the result of a call */
                       BECOMES_dict,
                       BECOMES_tensor,
                       BECOMES_first,   /* its first argument, a tensor or an opaque one */
                       BECOMES_derived, /* a tensor of a derived class, with the arguments of its
                                           base */
                       BECOMES_opaque
} Becomes;

static const struct {
  const char *name;
  Becomes becomes;
  const char *type; /* of a storage: its elements */
} globals[] = {
    {"collections.OrderedDict", BECOMES_dict, NULL},
    {"torch._utils._rebuild_tensor", BECOMES_tensor, NULL},
    {"torch._utils._rebuild_tensor_v2", BECOMES_tensor, NULL},
    {"torch._utils._rebuild_parameter", BECOMES_first, NULL},
    {"torch._utils._rebuild_parameter_with_state", BECOMES_first, NULL},
    {"torch._tensor._rebuild_from_type_v2", BECOMES_derived, NULL},
    {"torch.DoubleStorage", BECOMES_opaque, "F64"},
    {"torch.FloatStorage", BECOMES_opaque, "F32"},
    {"torch.HalfStorage", BECOMES_opaque, "F16"},
    {"torch.BFloat16Storage", BECOMES_opaque, "BF16"},
    {"torch.LongStorage", BECOMES_opaque, "I64"},
    {"torch.IntStorage", BECOMES_opaque, "I32"},
    {"torch.ShortStorage", BECOMES_opaque, "I16"},
    {"torch.CharStorage", BECOMES_opaque, "I8"},
    {"torch.ByteStorage", BECOMES_opaque, "U8"},
    {"torch.BoolStorage", BECOMES_opaque, "BOOL"},
};
enum { N_GLOBALS = sizeof globals / sizeof *globals };

const char *pickle_type(const PickleItem *global)
{
  bool known = global->kind == PICKLE_global && global->number >= 0;
  return known ? globals[global->number].type : NULL;
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

const PickleItem *pickle_element(const Pickle *p, const PickleItem *container, uint32_t i)
{
  uint32_t cell = container->first;
  while (cell && i--) cell = p->cells[cell].next;
  return cell ? &p->items[p->cells[cell].value] : NULL;
}

void pickle_class(const Pickle *p, const PickleItem *item, char *to, size_t room)
{
  enum { DEEPEST = 8 }; /* an object may be called, and its result be called */
  char name[200] = "?";
  const PickleItem *class = item, *module;
  for (int i = 0; i < DEEPEST && class->kind == PICKLE_opaque; i++)
    class = pickle_element(p, class, 0);
  if (class->kind == PICKLE_global && (module = pickle_element(p, class, 0))) {
    const PickleItem *own = pickle_element(p, class, 1);
    snprintf(name, sizeof name, "%.*s.%.*s", module->number < 90 ? (int)module->number : 90,
             module->text, own->number < 90 ? (int)own->number : 90, own->text);
  }
  ampc_show(to, room, name, "");
}

/* ---- instructions ---- */

/* Returns the next n bytes; NULL: the pickle is shorter. */
static const uint8_t *take(Pickle *p, int64_t n)
{
  if (n < 0 || n > p->size - p->at) return NULL;
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

/* Fails if the stack has fewer than n values. */
static ampc_status need(const Pickle *p, int n)
{
  return p->n_stack >= (uint32_t)n ? AMPC_OK : damaged(p, "takes more values than there are");
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

static ampc_status skip_value(Pickle *p, int bytes)
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

/* Adds a class or function: its cells are the texts of its module and its name. */
static ampc_status push_global(Pickle *p, PickleItem module, PickleItem name)
{
  char full[100];
  PickleItem made = {.kind = PICKLE_global, .number = -1};
  if (module.number + name.number < (int64_t)sizeof full - 1) {
    snprintf(full, sizeof full, "%.*s.%.*s", (int)module.number, module.text, (int)name.number,
             name.text);
    for (int i = 0; i < N_GLOBALS; i++)
      if (strcmp(globals[i].name, full) == 0) made.number = i;
  }
  const PickleItem *const texts[] = {&module, &name};
  ampc_status status = AMPC_OK;
  for (int i = 0; i < 2 && !status; i++) {
    status = push_new(p, *texts[i]);
    if (!status) status = add_cell(p, &made, NOTHING, p->stack[--p->n_stack]);
  }
  return status ? status : push_new(p, made);
}

/* Reads a line as text. */
static bool take_line(Pickle *p, PickleItem *out)
{
  const uint8_t *from = p->bytes + p->at, *end = memchr(from, '\n', (size_t)(p->size - p->at));
  if (!end) return false;
  *out = (PickleItem){.kind = PICKLE_text, .number = end - from, .text = (const char *)from};
  return take(p, end - from + 1) != NULL;
}

static ampc_status read_global(Pickle *p, int lines)
{
  (void)lines;
  PickleItem module, name;
  if (!take_line(p, &module) || !take_line(p, &name)) return short_of(p);
  return push_global(p, module, name);
}

static ampc_status take_global(Pickle *p, int values)
{
  uint32_t module, name;
  ampc_status status = need(p, values);
  if (status) return status;
  if (!pop(p, PICKLE_text, &name) || !pop(p, PICKLE_text, &module))
    return damaged(p, "names a class by what is no text");
  return push_global(p, p->items[module], p->items[name]);
}

static ampc_status push_opaque(Pickle *p, uint32_t class)
{
  PickleItem made = {.kind = PICKLE_opaque};
  ampc_status status = add_cell(p, &made, NOTHING, class);
  return status ? status : push_new(p, made);
}

/* Makes a list of pairs a dictionary, as Python 2 writes an OrderedDict. The dictionary takes over
 * the cells of the list, so that repeated calls need no memory. */
static ampc_status push_dict(Pickle *p, uint32_t list)
{
  PickleItem made = {.kind = PICKLE_dict};
  if (list) {
    made.first = p->items[list].first;
    made.last = p->items[list].last;
    p->items[list].first = p->items[list].last = 0;
  }
  for (uint32_t c = made.first; c; c = p->cells[c].next) {
    const PickleItem *pair = &p->items[p->cells[c].value];
    bool two = pair->kind == PICKLE_list || pair->kind == PICKLE_tuple;
    uint32_t key = two ? pair->first : 0, value = key ? p->cells[key].next : 0;
    if (!value) return damaged(p, "fills a dictionary with what are no pairs");
    p->cells[c].key = p->cells[key].value;
    p->cells[c].value = p->cells[value].value;
  }
  return push_new(p, made);
}

/* Notes what a call returns. Nothing is called. */
static ampc_status push_result(Pickle *p, uint32_t callee, uint32_t arguments)
{
  const PickleItem *function = &p->items[callee], *given = &p->items[arguments];
  bool known =
      function->kind == PICKLE_global && function->number >= 0 && given->kind == PICKLE_tuple;
  Becomes becomes = known ? globals[function->number].becomes : BECOMES_opaque;
  const PickleItem *first = known ? pickle_element(p, given, 0) : NULL;
  if (becomes == BECOMES_dict && (!first || first->kind == PICKLE_list))
    return push_dict(p, first ? (uint32_t)(first - p->items) : NOTHING);
  if (becomes == BECOMES_first && first &&
      (first->kind == PICKLE_tensor || first->kind == PICKLE_opaque))
    return push(p, (uint32_t)(first - p->items));
  if (becomes == BECOMES_derived && first && pickle_element(p, given, 2)) {
    uint32_t base = (uint32_t)(first - p->items);
    given = pickle_element(p, given, 2);
    if (given->kind == PICKLE_tuple && first->kind == PICKLE_global && first->number >= 0)
      becomes = globals[p->items[base].number].becomes;
  }
  if (becomes != BECOMES_tensor) return push_opaque(p, callee);
  PickleItem made = *given;
  made.kind = PICKLE_tensor;
  return push_new(p, made);
}

/* Calls the second last value with the last one. */
static ampc_status call(Pickle *p, int values)
{
  ampc_status status = need(p, values);
  if (status) return status;
  p->n_stack -= (uint32_t)values; /* the third value are arguments with names */
  return push_result(p, p->stack[p->n_stack], p->stack[p->n_stack + 1]);
}

/* Makes an object of a class of Python 2: a mark, the class and arguments are on the stack. */
static ampc_status call_marked(Pickle *p, int unused)
{
  (void)unused;
  const uint32_t *at;
  uint32_t n;
  if (!pop_mark(p, &at, &n) || !n) return damaged(p, "makes an object without a class");
  return push_opaque(p, at[0]);
}

static ampc_status read_instance(Pickle *p, int lines)
{
  const uint32_t *at;
  uint32_t n;
  ampc_status status = read_global(p, lines);
  if (status) return status;
  uint32_t class = p->stack[--p->n_stack];
  return pop_mark(p, &at, &n) ? push_opaque(p, class) : damaged(p, "lacks a mark");
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

/* Adds n values to the list below them, or if `each` is 2, n / 2 pairs to the dictionary. Drops
 * what is added to another object. */
static ampc_status add_values(Pickle *p, const uint32_t *at, uint32_t n, uint32_t each)
{
  PickleKind wanted = each == 2 ? PICKLE_dict : PICKLE_list;
  PickleItem *to = p->n_stack ? &p->items[p->stack[p->n_stack - 1]] : NULL;
  ampc_status status = AMPC_OK;
  if (to && each == 2 && to->kind == PICKLE_opaque) *to = (PickleItem){.kind = PICKLE_dict};
  if (to && to->kind == PICKLE_opaque) return AMPC_OK;
  if (!to || to->kind != wanted || n % each)
    return damaged(p, "adds values to what is no list or dictionary");
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

/* Drops the last of at least `least` values, for instance the state of an object: a state_dict has
 * `_metadata`. */
static ampc_status drop(Pickle *p, int least)
{
  ampc_status status = need(p, least);
  if (!status) p->n_stack--;
  return status;
}

static ampc_status drop_marked(Pickle *p, int unused)
{
  (void)unused;
  const uint32_t *at;
  uint32_t n;
  return pop_mark(p, &at, &n) ? AMPC_OK : damaged(p, "lacks a mark");
}

static ampc_status repeat(Pickle *p, int values)
{
  ampc_status status = need(p, values);
  return status ? status : push(p, p->stack[p->n_stack - 1]);
}

/* Skips bytes of the pickle, and pushes a value without meaning for them. */
static ampc_status skip_bytes(Pickle *p, int bytes)
{
  int64_t n;
  if (!take_number(p, bytes, &n) || !take(p, n)) return short_of(p);
  return push(p, NOTHING);
}

/* The length of a frame, or a promise about a buffer, changes nothing. */
static ampc_status skip(Pickle *p, int bytes)
{
  return take(p, bytes) ? AMPC_OK : short_of(p);
}

static ampc_status make_storage(Pickle *p, int values)
{
  uint32_t item;
  ampc_status status = need(p, values);
  if (status) return status;
  if (!pop(p, PICKLE_tuple, &item)) { /* another program's object */
    p->stack[p->n_stack - 1] = NOTHING;
    return AMPC_OK;
  }
  PickleItem made = p->items[item];
  made.kind = PICKLE_storage;
  return push_new(p, made);
}

/* Remembers the last value under a number. Python counts up from 0. */
static ampc_status remember_as(Pickle *p, int64_t i)
{
  if (!p->n_stack || i > p->size) return damaged(p, "remembers an item that is not there");
  if (!grow(&p->memo, &p->room_memo, (uint32_t)i + 1, sizeof *p->memo)) return no_memory(p);
  if (i >= p->n_memo) p->n_memo = (uint32_t)i + 1;
  p->memo[i] = p->stack[p->n_stack - 1];
  return AMPC_OK;
}

static ampc_status remember(Pickle *p, int bytes)
{
  int64_t i;
  return take_number(p, bytes, &i) ? remember_as(p, i) : short_of(p);
}

static ampc_status remember_next(Pickle *p, int unused)
{
  (void)unused;
  return remember_as(p, p->n_memo);
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
    ['0'] = {drop, 1},
    ['1'] = {drop_marked, 0},
    ['2'] = {repeat, 1},
    ['K'] = {read_whole, 1},
    ['M'] = {read_whole, 2},
    ['J'] = {read_whole, 4},
    [0x8a] = {read_long, 1},
    [0x8b] = {read_long, 4},
    ['G'] = {skip_value, 8},
    ['X'] = {read_text, 4},
    [0x8c] = {read_text, 1},
    [0x8d] = {read_text, 8},
    ['U'] = {read_text, 1}, /* a string of Python 2 */
    ['T'] = {read_text, 4},
    ['C'] = {skip_bytes, 1},
    ['B'] = {skip_bytes, 4},
    [0x8e] = {skip_bytes, 8},
    [0x96] = {skip_bytes, 8},          /* a bytearray */
    [0x97] = {push_constant, NOTHING}, /* a buffer outside the pickle */
    [0x98] = {skip, 0},
    ['c'] = {read_global, 2},
    [0x93] = {take_global, 2},
    [0x82] = {skip_value, 1}, /* a class by its number in the registry of a program */
    [0x83] = {skip_value, 2},
    [0x84] = {skip_value, 4},
    [')'] = {make_tuple, 0},
    [0x85] = {make_tuple, 1},
    [0x86] = {make_tuple, 2},
    [0x87] = {make_tuple, 3},
    ['t'] = {make_tuple, TO_MARK},
    [']'] = {make_empty, PICKLE_list},
    ['}'] = {make_empty, PICKLE_dict},
    [0x8f] = {push_constant, NOTHING}, /* an empty set */
    [0x90] = {drop_marked, 0},         /* adds to a set */
    [0x91] = {make_tuple, TO_MARK},    /* a frozen set */
    ['a'] = {add_items, 1},
    ['s'] = {add_items, 2},
    ['e'] = {add_marked_items, 1},
    ['u'] = {add_marked_items, 2},
    ['R'] = {call, 2},
    [0x81] = {call, 2}, /* of the class's __new__ */
    [0x92] = {call, 3},
    ['o'] = {call_marked, 0},
    ['i'] = {read_instance, 2},
    ['b'] = {drop, 2},
    ['Q'] = {make_storage, 1},
    ['q'] = {remember, 1},
    ['r'] = {remember, 4},
    [0x94] = {remember_next, 0},
    ['h'] = {recall, 1},
    ['j'] = {recall, 4},
    [0x80] = {skip, 1}, /* the protocol */
    [0x95] = {skip, 8},
};

static ampc_status execute(Pickle *p, int byte)
{
  if (instructions[byte].run) return instructions[byte].run(p, instructions[byte].argument);
  return ampc_fail(
      AMPC_BAD_FILE,
      "%s: byte %lld of its pickle is 0x%02x, which is no instruction of protocols 2 to 5", p->path,
      (long long)p->at - 1, (unsigned)byte);
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
  if (head[1] < 2 || head[1] > 5)
    return ampc_fail(AMPC_BAD_FILE, "%s has a pickle of protocol %d; 2 to 5 are read", path,
                     head[1]);
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
