/* Text of modules without its numbers: Note [forms]. */
#include "form.h"
#include <ctype.h>
#include "compiler/base/embedded.h"
#include <stdlib.h>
#include <string.h>

/* ---- numbers in code ---- */

/* Names for the first arguments of layers, as parameters of the modules that contain them. */
typedef struct Roles {
  const char *begins, *role[3];
} Roles;
static const Roles roles[] = {{"Conv", {"inputs", "outputs", "kernel"}},
                              {"Linear", {"inputs", "outputs", "n"}},
                              {"BatchNorm", {"features", "n", "n"}},
                              {"LayerNorm", {"features", "n", "n"}},
                              {"GroupNorm", {"groups", "features", "n"}},
                              {"Embedding", {"rows", "width", "n"}},
                              {"Dropout", {"p", "n", "n"}},
                              {"dropout", {"n", "p", "n"}},
                              {"stochastic_depth", {"n", "drop", "n"}}};

enum { OPEN_BRACKETS = 200 };

typedef struct Place { /* in an open bracket */
  char callee[40];
  int argument;
} Place;

static const char *role_at(Arena *arena, const Place *p, const char *code, const char *at)
{
  const char *end = at, *from;
  if (end > code && end[-1] == '-') end--;
  if (end > code && end[-1] == '[') end--; /* name=[2, 1] */
  if (end > code && end[-1] == '=') {
    for (from = --end; from > code && in_name(from[-1]);) from--;
    if (from < end) return arena_strndup(arena, from, (size_t)(end - from));
  }
  for (size_t i = 0; p && p->argument < 3 && i < sizeof roles / sizeof *roles; i++)
    if (strncmp(p->callee, roles[i].begins, strlen(roles[i].begins)) == 0)
      return roles[i].role[p->argument];
  return "n";
}

/* Enters and leaves brackets, and counts arguments. */
static void follow(Place *open, int *depth, const char *code, const char *at)
{
  if (*at == '(' || *at == '[') {
    const char *from = at;
    while (from > code && in_name(from[-1])) from--;
    size_t n = (size_t)(at - from);
    Place *p = &open[*depth < OPEN_BRACKETS - 1 ? ++*depth : *depth];
    *p = (Place){.argument = 0};
    if (n < sizeof p->callee) memcpy(p->callee, from, n);
  } else if ((*at == ')' || *at == ']') && *depth > 0) {
    --*depth;
  } else if (*at == ',' && *depth > 0) {
    open[*depth].argument++;
  }
}

static size_t number_length(const char *at)
{
  size_t n = strspn(at, "0123456789");
  if (at[n] == '.' && isdigit((unsigned char)at[n + 1])) n += 1 + strspn(at + n + 1, "0123456789");
  size_t sign = at[n] != 'e' ? 0 : at[n + 1] == '-' || at[n + 1] == '+' ? 2 : 1;
  if (sign && isdigit((unsigned char)at[n + sign])) n += sign + strspn(at + n + sign, "0123456789");
  return n;
}

typedef struct Scan { /* code that is being read */
  Arena *arena;
  Text out;
  VEC(Number) numbers;
  Place open[OPEN_BRACKETS];
  int depth;
} Scan;

static void add_number(Scan *s, const char *digits, size_t n, const char *role)
{
  vec_push(s->arena, &s->numbers, (Number){arena_strndup(s->arena, digits, n), role});
  text_add(&s->out, (const char[]){FORM_NUMBER}, 1);
}

/* The optional numbers of a convolution, in the order in which amp import writes them. */
typedef struct Option {
  const char *name, *usual;
} Option;
static const Option options[] = {
    {"stride", "1"}, {"padding", "0"}, {"output_padding", "0"}, {"dilation", "1"}, {"groups", "1"}};
enum { N_OPTIONS = sizeof options / sizeof *options };

/* Behind the size of a convolution's kernel: reads the options, also those that are not written,
 * so that layers with and without them have the same form. */
static const char *read_options(Scan *s, const char *at)
{
  for (int i = 0; i < N_OPTIONS; i++) {
    const char *prefix = arena_printf(s->arena, ", %s=", options[i].name),
               *value = at + strlen(prefix);
    bool written = strncmp(at, prefix, strlen(prefix)) == 0;
    if (written && !isdigit((unsigned char)*value)) return at; /* a list */
    text_printf(&s->out, "%c%s%c", FORM_OPTION, options[i].name, FORM_NAME);
    if (written)
      add_number(s, value, number_length(value), options[i].name);
    else
      add_number(s, options[i].usual, 1, options[i].name);
    if (written) at = value + number_length(value);
  }
  return at;
}

const Form *form_of_text(Arena *arena, const char *code)
{
  Scan *s = arena_new(arena, Scan);
  s->arena = arena;
  s->out = text_new(arena);
  bool quoted = false;
  for (const char *at = code; *at; at++) {
    char before = at > code ? at[-1] : ' ';
    Place *p = s->depth ? &s->open[s->depth] : NULL;
    bool kernel_ends =
        p && p->argument == 2 && (*at == ',' || *at == ')') && strncmp(p->callee, "Conv", 4) == 0;
    if (kernel_ends) at = read_options(s, at);
    if (*at == '"') quoted = !quoted;
    if (quoted || !isdigit((unsigned char)*at) || isalnum((unsigned char)before) || before == '_' ||
        before == '.') {
      text_add(&s->out, at, 1);
      if (!quoted) follow(s->open, &s->depth, code, at);
      continue;
    }
    size_t n = number_length(at);
    add_number(s, at, n, role_at(arena, p, code, at));
    at += n - 1;
  }
  Form *made = arena_new(arena, Form);
  *made = (Form){s->out.at, s->numbers.at, s->numbers.n};
  return made;
}

const Form *form_join(Arena *arena, const Form *const *parts, uint32_t n)
{
  Text out = text_new(arena);
  VEC(Number) numbers = {0};
  for (uint32_t i = 0; i < n; i++) {
    text_puts(&out, parts[i]->text);
    for (uint32_t k = 0; k < parts[i]->n; k++) vec_push(arena, &numbers, parts[i]->number[k]);
  }
  Form *made = arena_new(arena, Form);
  *made = (Form){out.at, numbers.at, numbers.n};
  return made;
}

bool form_equal(const Form *a, const Form *b)
{
  if (strcmp(a->text, b->text) != 0 || a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (strcmp(a->number[i].text, b->number[i].text) != 0) return false;
  return true;
}

/* ---- definitions ---- */

/* Whether the layer library defines the name. */
static bool in_library(Forms *f, const char *name)
{
  const char *module = arena_printf(f->arena, "\nmodule %s", name),
             *def = arena_printf(f->arena, "\ndef %s(", name);
  for (const EmbeddedFile *e = embedded_files; e->name; e++) {
    const char *at = strstr(e->name, ".amp") ? e->text : NULL;
    if (at && strstr(at, def)) return true;
    for (; at && (at = strstr(at, module)); at++)
      if (!in_name(at[strlen(module)])) return true;
  }
  return strcmp(name, "Sequential") == 0;
}

static const char *free_name(Forms *f, const char *name)
{
  const char *all = name;
  const char *between = isdigit((unsigned char)name[strlen(name) - 1]) ? "_" : "";
  for (int i = 2; names_get(&f->taken, all) || in_library(f, all); i++)
    all = arena_printf(f->arena, "%s%s%d", name, between, i);
  *names_at(&f->taken, all) = f;
  return all;
}

const Form *form_define(Forms *f, const char *name, bool is_class, bool is_def, const Form *body)
{
  void **known = names_at(
      &f->bodies, arena_printf(f->arena, "%s %d %s", is_class ? name : "", is_def, body->text));
  uint32_t index = *known ? ((Definition *)*known)->index : f->definitions.n;
  if (!*known) {
    Definition *made = arena_new(f->arena, Definition);
    *known = made;
    *made =
        (Definition){.name = free_name(f, name), .is_def = is_def, .form = *body, .index = index};
    vec_push(f->arena, &f->definitions, made);
  }
  vec_push(f->arena, &f->definitions.at[index]->uses, body->number);
  Form *call = arena_new(f->arena, Form);
  *call =
      (Form){arena_printf(f->arena, "%c%u%c", FORM_MODULE, index, FORM_END), body->number, body->n};
  return call;
}

static bool has_word(const char *text, const char *word)
{
  size_t n = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at += n) {
    bool begins = at == text || !in_name(at[-1]);
    if (begins && !in_name(at[n]) && at[n] != '=' && at[n] != FORM_NAME)
      return true; /* name=2 is no use */
  }
  return false;
}

static bool same_everywhere(const Definition *d, uint32_t a, uint32_t b)
{
  for (uint32_t i = 0; i < d->uses.n; i++)
    if (strcmp(d->uses.at[i][a].text, d->uses.at[i][b].text) != 0) return false;
  return true;
}

static bool is_constant(const Definition *d, uint32_t i)
{
  for (uint32_t k = 1; k < d->uses.n; k++)
    if (strcmp(d->uses.at[k][i].text, d->uses.at[0][i].text) != 0) return false;
  return true;
}

static const char *parameter_name(Forms *f, const Definition *d, const char *role)
{
  const char *name = role;
  for (int i = 2;; i++) {
    bool taken = has_word(d->form.text, name);
    for (uint32_t k = 0; k < d->n; k++) taken = taken || strcmp(d->names[k], name) == 0;
    if (!taken) return name;
    name = arena_printf(f->arena, "%s%d", role, i);
  }
}

static void find_parameters(Forms *f, Definition *d)
{
  uint32_t n = d->form.n;
  uint32_t *first = arena_array(f->arena, uint32_t, n + 1); /* of each parameter: a number */
  d->parameter = arena_array(f->arena, uint32_t, n + 1);
  d->names = arena_array(f->arena, const char *, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    if (is_constant(d, i)) continue;
    for (uint32_t k = 0; k < d->n && !d->parameter[i]; k++)
      if (same_everywhere(d, first[k], i)) d->parameter[i] = k + 1;
    if (d->parameter[i]) continue;
    first[d->n] = i;
    d->names[d->n] = parameter_name(f, d, d->form.number[i].role);
    d->parameter[i] = ++d->n;
  }
}

/* ---- printing ---- */

enum { WIDTH = 96, RUN = 3 /* equal elements of a list that become a loop */ };

typedef struct Printer {
  Forms *f;
  const char *at;            /* what is left of the form */
  const char *const *number; /* what is left of its numbers */
  int depth;                 /* lists around it */
} Printer;

static void print_until(Printer *p, Text *out, char end);

/* An element of a list. */
typedef struct Element {
  const char *name, *text; /* name NULL: none */
} Element;

/* If the names are the same but for a number that counts up, returns what is before it. *first: the
 * first number. */
static const char *counted(Arena *arena, const Element *e, uint32_t n, uint32_t *first)
{
  size_t digits = 0, length = strlen(e->name);
  while (digits < length && digits < 6 && isdigit((unsigned char)e->name[length - 1 - digits]))
    digits++;
  const char *prefix = arena_strndup(arena, e->name, length - digits);
  *first = (uint32_t)strtoul(e->name + length - digits, NULL, 10);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(e[i].name, arena_printf(arena, "%s%u", prefix, *first + i)) != 0) return NULL;
  return prefix;
}

static uint32_t run_length(Arena *arena, const Element *e, uint32_t n)
{
  uint32_t run = 1, first;
  while (run < n && strcmp(e[run].text, e->text) == 0) run++;
  return e->name && !counted(arena, e, run, &first) ? 1 : run;
}

static const char *element_text(Arena *arena, const Element *e, uint32_t run, bool whole_list)
{
  if (run < RUN) return e->name ? arena_printf(arena, "%s=%s", e->name, e->text) : e->text;
  uint32_t first = 0;
  const char *text = e->text, *from = "";
  if (e->name)
    text = arena_printf(arena, "[\"%s\" + str(i), %s]", counted(arena, e, run, &first), e->text);
  if (first) from = arena_printf(arena, "%u, ", first);
  return arena_printf(arena, whole_list ? "%s for i in range(%s%u)" : "*[%s for i in range(%s%u)]",
                      text, from, first + run);
}

static void print_elements(Printer *p, Text *out)
{
  Arena *arena = p->f->arena;
  VEC(Element) all = {0};
  size_t column = 0;
  int indent = 6 + 2 * p->depth++;
  while (*p->at == FORM_ITEM) {
    const char *name = ++p->at;
    Element e = {0};
    p->at = strchr(name, FORM_NAME) + 1;
    if (*name != FORM_NAME) e.name = arena_strndup(arena, name, (size_t)(p->at - 1 - name));
    Text text = text_new(arena);
    print_until(p, &text, FORM_END);
    e.text = text.at;
    vec_push(arena, &all, e);
  }
  bool list = out->n && out->at[out->n - 1] == '[';
  for (size_t i = out->n; i > 0 && out->at[i - 1] != '\n'; i--) column++;
  for (uint32_t i = 0; i < all.n;) {
    uint32_t run = run_length(arena, &all.at[i], all.n - i);
    const char *text =
        element_text(arena, &all.at[i], run, list && run == all.n && !all.at[i].name);
    const char *last = strrchr(text, '\n');
    bool fits = column + strlen(text) < WIDTH;
    if (i && fits)
      text_puts(out, ", ");
    else if (i)
      text_printf(out, ",\n%*s", indent, "");
    text_puts(out, text);
    column = last ? strlen(last) : (i && !fits ? (size_t)indent : column + 2) + strlen(text);
    i += run < RUN ? 1 : run;
  }
  p->depth--;
}

static uint32_t first_number(const Definition *d, uint32_t parameter)
{
  uint32_t i = 0;
  while (d->parameter[i] != parameter + 1) i++;
  return i;
}

static void print_call(Printer *p, Text *out)
{
  const Definition *d = p->f->definitions.at[strtoul(p->at, NULL, 10)];
  p->at = strchr(p->at, FORM_END) + 1;
  const char *const *number = p->number;
  p->number += d->form.n;
  if (d->is_def && d->uses.n < 2) {
    Printer inner = {p->f, d->form.text, number, p->depth};
    print_until(&inner, out, 0);
    return;
  }
  text_printf(out, "%s(", d->name);
  for (uint32_t i = 0; i < d->n; i++) {
    text_printf(out, "%s%s", i ? ", " : "", number[first_number(d, i)]);
  }
  text_puts(out, ")");
}

static void print_option(Printer *p, Text *out)
{
  const char *name = p->at, *number = *p->number++;
  size_t n = strcspn(name, (const char[]){FORM_NAME, 0});
  p->at += n + 2; /* FORM_NUMBER follows */
  for (int i = 0; i < N_OPTIONS; i++)
    if (is_name(name, n, options[i].name) && strcmp(options[i].usual, number) == 0) return;
  text_printf(out, ", %.*s=%s", (int)n, name, number);
}

static void print_until(Printer *p, Text *out, char end)
{
  while (*p->at && *p->at != end) {
    if (*p->at == FORM_ITEM) {
      print_elements(p, out);
      continue;
    }
    char mark = *p->at++;
    if (mark == FORM_OPTION)
      print_option(p, out);
    else if (mark == FORM_NUMBER)
      text_puts(out, *p->number++);
    else if (mark == FORM_MODULE)
      print_call(p, out);
    else
      text_add(out, &mark, 1);
  }
  p->at += *p->at != 0;
}

void form_print(Forms *f, const Form *form, Text *out)
{
  const char **number = arena_array(f->arena, const char *, form->n + 1);
  for (uint32_t i = 0; i < form->n; i++) number[i] = form->number[i].text;
  Printer p = {f, form->text, number, 0};
  print_until(&p, out, 0);
}

static bool is_real(const Definition *d, uint32_t i)
{
  for (uint32_t k = 0; k < d->uses.n; k++)
    if (strpbrk(d->uses.at[k][i].text, ".e")) return true;
  return false;
}

static void print_definition(Forms *f, const Definition *d, Text *out)
{
  const char **number = arena_array(f->arena, const char *, d->form.n + 1);
  text_printf(out, "%s %s%s", d->is_def ? "def" : "module", d->name, d->n || d->is_def ? "(" : "");
  for (uint32_t i = 0; i < d->n; i++) {
    text_printf(out, "%s%s: %s",
                !i      ? ""
                : i % 6 ? ", "
                        : ",\n    ",
                d->names[i], is_real(d, first_number(d, i)) ? "float" : "int");
  }
  text_puts(out, d->n || d->is_def ? ") {" : " {");
  for (uint32_t i = 0; i < d->form.n; i++)
    number[i] = d->parameter[i] ? d->names[d->parameter[i] - 1] : d->form.number[i].text;
  Printer p = {f, d->form.text, number, 0};
  text_puts(out, d->is_def ? "\n  return " : "\n");
  print_until(&p, out, 0);
  text_puts(out, d->is_def ? "\n}\n\n" : "}\n\n");
}

void forms_print(Forms *f, Text *out)
{
  for (uint32_t i = 0; i < f->definitions.n; i++) find_parameters(f, f->definitions.at[i]);
  for (uint32_t i = 0; i < f->definitions.n; i++) {
    const Definition *d = f->definitions.at[i];
    if (!d->is_def || d->uses.n > 1) print_definition(f, d, out);
  }
}
