/* Builds the table of syntax messages: mistakes INPUT OUTPUT.
 *
 * INPUT (mistakes.txt) has pairs of a message and wrong snippets. The real lexer and parser run
 * over each snippet. The state and token of the syntax error become the key of the message. So the
 * table needs no maintenance when the grammar changes: a snippet that is no longer wrong, or whose
 * error is no longer at its last word, stops the build.
 *
 *   E100 there is no `while`        a message starts in the first column with its code
 *     help write `for`              what the user can do
 *     skip                          the rest of the statement is unusable too
 *     word while until              only if the last word or the one before it is one of these
 *     anywhere                      in any state of the parser
 *     | x = while %comparison       a snippet with the error at its last word. In it,
 *                                     NL is the end of a line, ANY any token that is wrong there,
 *                                     WORD each of the words
 *   set %comparison <  >  <=        %comparison means each of these in turn (separated by two
 *                                   spaces) */
#include "compiler/syntax/mistakes.h"
#include "amp.tab.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Mistake mistakes[] = {{.text = NULL}};

enum { MAX_ENTRIES = 2000, MAX_SETS = 30, MAX_TEXT = 1 << 20 };

typedef struct Entry {
  int state, token, message, line;
  const char *word;
  const char *code, *text, *help;
  bool skip, anywhere;
} Entry;

typedef struct Set {
  char *name, *members;
} Set;

typedef struct Builder {
  const char *path;
  Arena *arena;
  int line, messages, n, n_sets, failed;
  Entry message; /* the message of the next snippets */
  Entry entries[MAX_ENTRIES];
  Set sets[MAX_SETS];
} Builder;

/* The location of the snippet's first syntax error. */
static struct {
  bool stuck;
  int state, token;
  uint32_t end; /* end of the token's text */
} seen;

/* Replaces the compiler's function in syntax/mistakes.c: only records the location. */
void parse_syntax_error(Parser *p, const SyntaxError *e)
{
  if (seen.stuck) return;
  seen.stuck = true;
  seen.state = e->state;
  seen.token = e->token;
  seen.end = p->raw.at[p->tokens.at[p->current].raw].span.end;
}

/* Reports an error in mistakes.txt. The build stops after all errors are reported. */
static void complain(Builder *b, const char *what, const char *about)
{
  fprintf(stderr, "%s:%d: %s: %s\n", b->path, b->line, what, about);
  b->failed = 1;
}

static bool ends_with(const char *text, const char *end)
{
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* Runs the parser over the snippet. Returns false unless the error is at the last word. */
static bool run_snippet(Builder *b, const char *snippet, bool any)
{
  Ast tree = {0};
  Compile c = {.arena = b->arena};
  uint32_t size = (uint32_t)strlen(snippet);
  uint32_t base = diag_add_source(&c, "snippet", snippet, size, false);
  seen.stuck = false;
  Parser p;
  parse_start(&p, &c, base, &tree);
  p.problems.n = 0; /* a snippet may leave brackets open */
  if (any)
    for (uint32_t i = 0; i < p.tokens.n; i++)
      if (p.tokens.at[i].kind == TOK_NAME && strcmp(p.tokens.at[i].as.name, "ANY") == 0)
        p.tokens.at[i].kind = TOK_AMP_UNDEF;
  amp_parse(&p);
  return seen.stuck && seen.end == base + size;
}

/* Adds a snippet's key to the table. Two messages for one key also stop the build. */
static void add_entry(Builder *b, const char *snippet)
{
  bool any = ends_with(snippet, " ANY"), newline = ends_with(snippet, " NL");
  char *text = arena_strdup(b->arena, snippet);
  if (newline) memcpy(text + strlen(text) - 3, "\n", 2);
  if (!run_snippet(b, text, any)) {
    complain(b, seen.stuck ? "stuck before the last word" : "not wrong", snippet);
    return;
  }
  Entry e = b->message;
  e.state = e.anywhere ? ANY_STATE : seen.state;
  e.token = any ? ANY_TOKEN : seen.token;
  e.line = b->line;
  for (int i = 0; i < b->n; i++) {
    const Entry *o = &b->entries[i];
    bool same_word = (!o->word && !e.word) || (o->word && e.word && !strcmp(o->word, e.word));
    if (o->state != e.state || o->token != e.token || !same_word) continue;
    if (o->message == e.message) return; /* two snippets with one state */
    fprintf(stderr, "%s:%d: line %d has a message for this state and token already: %s\n", b->path,
            b->line, o->line, snippet);
    b->failed = 1;
    return;
  }
  if (b->n == MAX_ENTRIES)
    complain(b, "too many snippets", snippet);
  else
    b->entries[b->n++] = e;
}

/* Adds the snippet once for each word of the message, which replaces WORD. */
static void add_words(Builder *b, const char *snippet)
{
  const char *words = b->message.word, *at = strstr(snippet, "WORD");
  if (!words) {
    add_entry(b, snippet);
    return;
  }
  for (const char *w = words; *w; w += strspn(w, " ")) {
    size_t n = strcspn(w, " ");
    const char *with = snippet;
    if (at)
      with = arena_printf(b->arena, "%.*s%.*s%s", (int)(at - snippet), snippet, (int)n, w, at + 4);
    b->message.word = arena_strndup(b->arena, w, n);
    add_entry(b, with);
    w += n;
  }
  b->message.word = words;
}

/* Replaces the first %set by each of its members; recursion replaces the others. */
static void add_snippet(Builder *b, const char *snippet)
{
  for (int i = 0; i < b->n_sets; i++) {
    const char *at = strstr(snippet, b->sets[i].name);
    if (!at) continue;
    const char *m = b->sets[i].members, *after = at + strlen(b->sets[i].name);
    while (*m) {
      const char *end = strstr(m, "  ");
      int n = end ? (int)(end - m) : (int)strlen(m);
      add_snippet(b,
                  arena_printf(b->arena, "%.*s%.*s%s", (int)(at - snippet), snippet, n, m, after));
      m += end ? n + 2 : n;
    }
    return;
  }
  add_words(b, snippet);
}

/* Reads a set: `set %comparison <  >  <=`. */
static void add_set(Builder *b, char *text)
{
  if (b->n_sets == MAX_SETS) {
    complain(b, "too many sets", text);
    return;
  }
  Set *set = &b->sets[b->n_sets++];
  set->name = strtok_r(text, " ", &set->members);
}

/* Returns the words of a message: those of a set for `word %comparison`, else `text` itself. */
static const char *words_of(const Builder *b, const char *text)
{
  for (int i = 0; i < b->n_sets; i++)
    if (strcmp(b->sets[i].name, text) == 0) return b->sets[i].members;
  return text;
}

static void read_line(Builder *b, char *line)
{
  char *text = line + strspn(line, " ");
  if (!*text || *text == '#') return;
  if (text == line && strncmp(text, "set ", 4) == 0) {
    add_set(b, text + 4);
  } else if (text == line && strlen(text) > 5) {
    text[4] = 0;
    b->message = (Entry){.message = ++b->messages, .code = text, .text = text + 5};
  } else if (strncmp(text, "help ", 5) == 0) {
    b->message.help = text + 5;
  } else if (strncmp(text, "word ", 5) == 0) {
    b->message.word = words_of(b, text + 5);
  } else if (strcmp(text, "anywhere") == 0 && b->message.word) {
    b->message.anywhere = true;
  } else if (strcmp(text, "skip") == 0) {
    b->message.skip = true;
  } else if (strncmp(text, "| ", 2) == 0) {
    add_snippet(b, text + 2);
  } else {
    complain(b, "not understood", text);
  }
}

static void write_string(FILE *f, const char *s)
{
  if (!s) {
    fputs("NULL", f);
    return;
  }
  fputc('"', f);
  for (; *s; s++) fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  fputc('"', f);
}

static bool write_table(const Builder *b, const char *path)
{
  FILE *f = fopen(path, "w");
  if (!f) return false;
  fputs("/* made from grammar/mistakes.txt */\n#include \"compiler/syntax/mistakes.h\"\n\n"
        "const Mistake mistakes[] = {\n",
        f);
  for (int i = 0; i < b->n; i++) {
    const Entry *e = &b->entries[i];
    fprintf(f, "  {%d, %d, %d, ", e->state, e->token, e->skip);
    write_string(f, e->word);
    fprintf(f, ", %s, ", e->code);
    write_string(f, e->text);
    fputs(", ", f);
    write_string(f, e->help);
    fputs("},\n", f);
  }
  fputs("  {.text = NULL}};\n", f);
  return fclose(f) == 0;
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  Arena *arena = arena_create();
  Builder *b = arena_new(arena, Builder);
  b->arena = arena;
  b->path = argv[1];
  char *text = arena_array(arena, char, MAX_TEXT);
  FILE *f = fopen(argv[1], "r");
  size_t n = f ? fread(text, 1, MAX_TEXT - 1, f) : 0;
  if (!n || n == MAX_TEXT - 1) {
    fprintf(stderr, "%s: cannot be read\n", argv[1]);
    return 1;
  }
  fclose(f);
  for (char *line; (line = strsep(&text, "\n"));) {
    b->line++;
    read_line(b, line);
  }
  if (!b->failed && !write_table(b, argv[2])) {
    fprintf(stderr, "%s: cannot be written\n", argv[2]);
    b->failed = 1;
  }
  int failed = b->failed;
  arena_destroy(arena);
  return failed;
}
