/* Finds equal kernels: computes the key of a kernel's text, and runs pass kernels, after which
 * commands with equal kernels launch the same one.
 *
 * Needs IR_COMMANDS. It runs before plan, whose table
 * has each kernel once. */
#include "kernel_key.h"
#include "emit.h"
#include "kernel.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

/* ---- keys ---- */

enum { MOST_NAMES = 1024, SLOTS = 256 };
typedef struct Names { /* names in the order in which they occur */
  const char *at[MOST_NAMES];
  size_t size[MOST_NAMES];
  uint32_t next[MOST_NAMES]; /* 1 + index of another name of the same slot; 0: no other */
  uint32_t first[SLOTS];     /* 1 + index of the last name of the slot; 0: no name */
  uint32_t n;
} Names;

static void clear(Names *names)
{
  memset(names->first, 0, sizeof names->first);
  names->n = 0;
}

static uint32_t slot_of(const char *s, size_t n)
{
  return n ? (uint32_t)(31 * s[0] + 7 * s[n - 1] + (int)n) % SLOTS : 0;
}

/* Returns the index of the name, after adding it if `add`; UINT32_MAX if it is missing or the table
 * is full. A name without an index stays in the key unchanged: fewer kernels are shared, but no
 * different ones. */
static uint32_t name_index(Names *names, const char *s, size_t n, bool add)
{
  uint32_t *first = &names->first[slot_of(s, n)];
  for (uint32_t i = *first; i; i = names->next[i - 1])
    if (names->size[i - 1] == n && memcmp(names->at[i - 1], s, n) == 0) return i - 1;
  if (!add || names->n == MOST_NAMES) return UINT32_MAX;
  names->at[names->n] = s;
  names->size[names->n] = n;
  names->next[names->n] = *first;
  *first = names->n + 1;
  return names->n++;
}

/* Reads the parameters: the last word before each comma of `__global__ void name(...)`, and of the
 * functions before it. */
static void read_parameters(const char *s, const char *head, Names *names)
{
  const char *open = s, *close;
  while ((open = strstr(open, head)) && (open = strchr(open, '(')) && (close = strchr(open, ')'))) {
    for (const char *p = open + 1; p < close;) {
      const char *end = p + strcspn(p, ",)"), *word = end;
      while (word > p && in_name(word[-1])) word--;
      name_index(names, word, (size_t)(end - word), true);
      p = end + 1;
    }
    open = close;
  }
}

/* Returns the length of the temporary's name in t14 or t14_end; 0 if s is not a temporary. */
static size_t temporary_size(const char *s, size_t n)
{
  size_t digits = 1;
  if (s[0] != 't') return 0;
  while (digits < n && isdigit((unsigned char)s[digits])) digits++;
  return digits > 1 && (digits == n || s[digits] == '_') ? digits : 0;
}

/* Returns the length of the parameter's name in relu_at or relu_2_at, a thread's vector of
 * parameter relu; 0 for other names. */
static size_t stem_size(const char *s, size_t n, bool number)
{
  if (n < 4 || memcmp(s + n - 3, "_at", 3) != 0) return 0;
  n -= 3;
  size_t digits = n;
  while (digits > 0 && isdigit((unsigned char)s[digits - 1])) digits--;
  if (!number) return n;
  return digits < n && digits > 1 && s[digits - 1] == '_' ? digits - 1 : 0;
}

/* Returns the parameter that a word is or begins with; *size: the length of that name. */
static uint32_t parameter_of(Names *parameters, const char *s, size_t n, size_t *size)
{
  size_t stems[] = {n, stem_size(s, n, false), stem_size(s, n, true)};
  for (int i = 0; i < 3; i++) {
    *size = stems[i];
    uint32_t at = *size ? name_index(parameters, s, *size, false) : UINT32_MAX;
    if (at != UINT32_MAX) return at;
  }
  return UINT32_MAX;
}

/* Returns how many bytes at s the key contains unchanged: a string, or a line of the preprocessor.
 * The text of an own op may have both. */
static size_t verbatim_size(const char *s, bool line_begins)
{
  if (*s == '#' && line_begins) return strcspn(s, "\n") + 1;
  if (*s != '"') return 0;
  size_t n = 1;
  while (s[n] && s[n] != '"' && s[n] != '\n') n += s[n] == '\\' && s[n + 1] ? 2 : 1;
  return s[n] == '"' ? n + 1 : n;
}

/* Adds a word of the text to the key: $k for the kernel's own name, $p2 for its parameter, $t5 for
 * a temporary, otherwise the word itself. */
static void add_word(Text *out, const char *s, size_t n, const char *kernel, Names *parameters,
                     Names *temporaries)
{
  size_t own = strlen(kernel), t = temporary_size(s, n), size;
  uint32_t i = parameter_of(parameters, s, n, &size);
  if (n >= own && memcmp(s, kernel, own) == 0 && (n == own || s[own] == '_'))
    text_printf(out, "$k%.*s", (int)(n - own), s + own);
  else if (i != UINT32_MAX)
    text_printf(out, "$p%u%.*s", i, (int)(n - size), s + size);
  else if (t && (i = name_index(temporaries, s, t, true)) != UINT32_MAX)
    text_printf(out, "$t%u%.*s", i, (int)(n - t), s + t);
  else
    text_add(out, s, n);
}

XXH128_hash_t kernel_key(Arena *arena, const Text *kernel, const char *name)
{
  Names parameters, temporaries;
  clear(&parameters);
  clear(&temporaries);
  Text key = text_new(arena);
  read_parameters(kernel->at, "__global__ void ", &parameters);
  read_parameters(kernel->at, "DEVICE void ", &parameters);
  bool line_begins = true;
  for (const char *s = kernel->at; *s;) {
    size_t n = verbatim_size(s, line_begins);
    line_begins = *s == '\n' || (line_begins && *s == ' ');
    if (n) {
      if (n > strlen(s)) n = strlen(s);
      text_add(&key, s, n);
      line_begins = s[n - 1] == '\n';
      s += n;
    } else if (s[0] == '/' && s[1] == '/') {
      s += strcspn(s, "\n");
    } else if (isspace((unsigned char)*s)) { /* line breaks depend on the length of names */
      if (key.n && key.at[key.n - 1] != ' ') text_puts(&key, " ");
      s++;
    } else if (isalpha((unsigned char)*s) || *s == '_') {
      while (in_name(s[n])) n++;
      add_word(&key, s, n, name, &parameters, &temporaries);
      s += n;
    } else if (isdigit((unsigned char)*s)) { /* a number with its suffix is no name */
      while (in_name(s[n]) || s[n] == '.') n++;
      text_add(&key, s, n);
      s += n;
    } else {
      text_add(&key, s++, 1);
    }
  }
  return XXH3_128bits(key.at, key.n);
}

/* ---- the pass ---- */

XXH128_hash_t group_key(Compile *c, uint32_t group)
{
  Arena *scratch = arena_create();
  const char *name = command_of(c->graph, group)->kernel_name;
  XXH128_hash_t key = kernel_key(scratch, &emit_group(c, group, scratch)->code, name);
  arena_destroy(scratch);
  return key;
}

typedef struct Keys { /* a table with open addressing */
  struct {
    XXH128_hash_t key;
    uint32_t group; /* the first group with the key; 0: free */
  } * at;
  uint32_t cap; /* a power of two, more than there are groups */
} Keys;

static Keys keys_create(Arena *a, uint32_t n)
{
  Keys k = {.cap = 1};
  while (k.cap <= 2 * (uint64_t)n) k.cap *= 2;
  k.at = arena_alloc(a, k.cap * sizeof *k.at, _Alignof(XXH128_hash_t));
  return k;
}

/* Returns the first group with this key; `group` itself if it is the first. */
static uint32_t first_with(Keys *k, XXH128_hash_t key, uint32_t group)
{
  uint32_t slot = (uint32_t)key.low64 & (k->cap - 1);
  while (k->at[slot].group && !XXH128_isEqual(k->at[slot].key, key))
    slot = (slot + 1) & (k->cap - 1);
  if (k->at[slot].group) return k->at[slot].group;
  k->at[slot].key = key;
  return k->at[slot].group = group;
}

typedef struct Sharing {
  Compile *c;
  Keys by_facts, by_text;
  KernelFacts *facts;
  Arena *scratch;
} Sharing;

/* Returns the first group with the same kernel. Prints the kernel if the facts do not decide. */
static uint32_t first_like(Sharing *s, uint32_t group)
{
  Compile *c = s->c;
  uint32_t alike = first_with(&s->by_facts, facts_of(s->facts, group), group);
  assert(alike == group || XXH128_isEqual(group_key(c, alike), group_key(c, group)));
  if (alike != group) return command_of(c->graph, alike)->kernel;
  Command *k = &c->graph->commands[group];
  ArenaMark mark = arena_mark(s->scratch);
  const KernelText *text = emit_group(c, group, s->scratch);
  uint32_t first =
      first_with(&s->by_text, kernel_key(s->scratch, &text->code, k->kernel_name), group);
  if (first == group) k->text = text;
  arena_release(s->scratch, mark);
  return first;
}

bool pass_kernels(Compile *c)
{
  Graph *g = c->graph;
  uint32_t *last = arena_array(c->arena, uint32_t, g->groups.n); /* first group -> last one */
  Sharing s = {.c = c,
               .by_facts = keys_create(c->arena, g->groups.n),
               .by_text = keys_create(c->arena, g->groups.n),
               .facts = kernel_facts(c),
               .scratch = arena_create()};
  for (uint32_t i = 1; i < g->groups.n; i++) {
    Command *k = &g->commands[i];
    if (!k->kernel_name) continue;
    uint32_t first = first_like(&s, i);
    if (first != i) {
      k->kernel = first;
      k->kernel_name = g->commands[first].kernel_name;
      g->commands[last[first]].sharer = i;
    }
    last[first] = i;
  }
  arena_destroy(s.scratch);
  return true;
}
