/* Note [tables]: columns that are dropped or narrowed and rows that are folded, at any width. */
#include "check.h"
#include "compiler/base/table.h"
#include <stdlib.h>
#include <string.h>

static Arena *arena;

static void set_width(const char *columns)
{
  setenv("COLUMNS", columns, 1);
}

/* Prints layers with the same numbers, a different one, and an empty column. */
static const char *layers(TableView view)
{
  Text out;
  Table t;
  text_init(&out, arena);
  table_open(&t, arena, &out, &view,
             "line:number!1|layer:key<6|none|bytes:bytes!2|time:time|why:<10");
  for (int i = 0; i < 3; i++) {
    TABLE_ROW(&t, 1.5, {"7"}, {arena_printf(arena, "h.%d.ln_1", i)}, {"-"}, {.amount = 2000},
              {.amount = 1.5}, {"follows its inputs"});
    TABLE_ROW(&t, 2, {"8"}, {arena_printf(arena, "h.%d.ln_2", i)}, {""}, {.amount = -1},
              {.amount = i == 1 ? 2e6 : 2e-4}, {"größe"});
  }
  table_put(&t);
  table_close(&t);
  return out.at;
}

static void gives(const char *found, const char *want)
{
  if (strcmp(found, want) != 0) fprintf(stderr, "%s---- expected\n%s", found, want);
  CHECK(strcmp(found, want) == 0);
}

static void test_fold(void)
{
  set_width("80");
  gives(layers((TableView){0}), "line  layer     n    bytes     time  why\n"
                                "   7  h.*.ln_1  3  6.00 kB  4.50 us  follows its inputs\n"
                                "   8  h.*.ln_2  2        -    <1 ns  größe\n"
                                "   8  h.1.ln_2           -   2.00 s  größe\n"
                                "n: number of similar rows that are added up; --wide shows all\n");
}

static void test_narrow(void)
{
  set_width("36");
  gives(layers((TableView){0}), "line  layer   n     time  why\n"
                                "   7  h.*.    3  4.50 us  follows\n"
                                "      ln_1                its inputs\n"
                                "   8  h.*.    2    <1 ns  größe\n"
                                "      ln_2\n"
                                "   8  h.1.        2.00 s  größe\n"
                                "      ln_2\n"
                                "n: number of similar rows that are\n"
                                "  added up; columns left out: bytes;\n"
                                "  --wide shows all\n");
  for (int width = 32; width <= 60; width++) {
    set_width(arena_printf(arena, "%d", width));
    for (const char *s = layers((TableView){0}); *s; s += strcspn(s, "\n") + 1)
      CHECK(strcspn(s, "\n") <= (size_t)width + (strstr(s, "größe") != NULL ? 2 : 0));
  }
}

static void test_view(void)
{
  set_width("30");
  gives(layers((TableView){.wide = true, .top = 3}), "line  layer       time  why\n"
                                                     "   8  h.0.ln_2   <1 ns  größe\n"
                                                     "   8  h.1.ln_2  2.00 s  größe\n"
                                                     "   8  h.2.ln_2   <1 ns  größe\n"
                                                     "  3 rows of 6\n");
}

/* Rows that differ only in a column with `~` become one. */
static void test_loose(void)
{
  Text out;
  Table t;
  text_init(&out, arena);
  set_width("80");
  table_open(&t, arena, &out, &(TableView){.top = 2}, "layer:key|bytes:bytes|time:time~");
  for (int i = 0; i < 3; i++)
    TABLE_ROW(&t, i, {arena_printf(arena, "h.%d", i)}, {.amount = i < 2 ? 100 : 200},
              {.amount = 1 << i});
  table_put(&t);
  gives(out.at, "layer  n  bytes     time\n"
                "h.2       200 B  4.00 us\n"
                "h.*    2  200 B  3.00 us\n");
}

static void test_words(void)
{
  Text out;
  text_init(&out, arena);
  text_puts(&out, "first\n  - ");
  text_wrap(&out, "a sentence of some words, one_long_name.of.many.parts and größen", 4, 20);
  gives(out.at, "first\n  - a sentence of\n    some words,\n    one_long_name.\n"
                "    of.many.parts\n    and größen");
}

static void test_amounts(void)
{
  CHECK(strcmp(count_text(arena, 0), "0") == 0);
  CHECK(strcmp(count_text(arena, -1), "-") == 0);
  CHECK(strcmp(bytes_text(arena, 3590), "3.59 kB") == 0);
  CHECK(strcmp(time_text(arena, 0.0591), "59.1 ns") == 0);
  CHECK(strcmp(time_text(arena, 0.9996), "1.00 us") == 0);
  CHECK(strcmp(time_text(arena, 999.6), "1.00 ms") == 0);
  CHECK(strcmp(time_text(arena, 4e9), "4000 s") == 0);
}

int main(void)
{
  arena = arena_create();
  test_fold();
  test_narrow();
  test_view();
  test_loose();
  test_words();
  test_amounts();
  arena_destroy(arena);
  return check_done();
}
