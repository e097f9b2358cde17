/* The language reference is complete: an entry for each built-in, and none for unknown names. */
#include "check.h"
#include "compiler/help/help.h"
#include <stdio.h>
#include <string.h>

static void check_complete(Arena *arena)
{
  Text wrong;
  text_init(&wrong, arena);
  help_check(&wrong);
  fputs(wrong.at, stdout);
  CHECK(wrong.n == 0);
}

/* Checks several entries of one name, a signature from a table, an op's autocast category. */
static void check_entries(Arena *arena)
{
  Text t;
  text_init(&t, arena);
  CHECK(help_on("autocast", &t));
  CHECK(strstr(t.at, "autocast(TYPE) { ... }") && strstr(t.at, "autocast(TYPE, PATTERNS)"));
  text_init(&t, arena);
  CHECK(help_on("Linear", &t));
  CHECK(strncmp(t.at, "Linear(in_features: int, out_features: int, bias: bool = true)\n", 62) == 0);
  text_init(&t, arena);
  CHECK(help_on("softmax", &t));
  CHECK(strstr(t.at, "softmax(x, dim)\n(autocast: runs in f32"));
}

static void check_unknown(Arena *arena)
{
  Text t;
  text_init(&t, arena);
  CHECK(!help_on("Conv2D", &t) && t.n == 0);
  CHECK(strcmp(help_nearest(arena, "Conv2D"), "Conv2d") == 0);
  CHECK(!help_on("_clamp", &t));
  CHECK(!help_nearest(arena, "zzzzzzzzzz"));
}

/* Checks that no line exceeds 130 columns: paragraphs and signatures wrap, examples are short. */
static void check_widths(Arena *arena)
{
  Text t;
  text_init(&t, arena);
  help_all(&t);
  for (const char *p = t.at; *p; p += strcspn(p, "\n"), p += *p == '\n') {
    if (strcspn(p, "\n") > 130) printf("%.*s\n", (int)strcspn(p, "\n"), p);
    CHECK(strcspn(p, "\n") <= 130);
  }
}

int main(void)
{
  Arena *arena = arena_create();
  check_complete(arena);
  check_entries(arena);
  check_unknown(arena);
  check_widths(arena);
  arena_destroy(arena);
  return check_done();
}
