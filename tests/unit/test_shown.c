/* Text from outside (names, data): how it is printed, and how it appears in emitted C. */
#include "check.h"
#include "compiler/base/user_text.h"
#include "common/shown.h"
#include <string.h>

/* ---- for people ---- */

static void shows(const char *s, const char *want)
{
  char once[400], twice[400];
  ampc_show(once, sizeof once, s, "");
  CHECK(strcmp(once, want) == 0);
  CHECK(ampc_is_plain(once, strlen(once)));
  CHECK(strcmp(ampc_show(twice, sizeof twice, once, ""), once) == 0);
}

static void test_show(void)
{
  shows("", "");
  shows("größe 😀 \\x1b", "größe 😀 \\x1b");
  shows("\x1b[31m\a\b\f\n\r\t\v\x7f", "\\x1b[31m\\a\\b\\f\\n\\r\\t\\v\\x7f");
  shows("\xc2\x85\xc2\x9b\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6",
        "\\u0085\\u009b\\u2028\\u202e\\u2066");
  shows("\x80\xff\xc3", "\\x80\\xff\\xc3");
  shows("\xc0\xaf\xe0\x80\xaf", "\\xc0\\xaf\\xe0\\x80\\xaf");                   /* overlong */
  shows("\xed\xa0\x80\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"); /* not characters */
  shows("\xe2\x82 \xf0\x9f\x98", "\\xe2\\x82 \\xf0\\x9f\\x98");                 /* truncated */
}

/* Checks that the result ends between two characters at every buffer size. */
static void test_room(void)
{
  static const char text[] = "aé\x1b€😀";
  char whole[40], out[40];
  ampc_show(whole, sizeof whole, text, "");
  for (size_t room = 1; room <= sizeof whole; room++) {
    ampc_show(out, room, text, "");
    size_t n = strlen(out);
    CHECK(n < room && memcmp(out, whole, n) == 0 && ampc_is_plain(out, n));
    CHECK(n == strlen(whole) || n == 0 || out[n - 1] != '\\');
  }
  CHECK(strcmp(ampc_show(out, sizeof out, "a\nb\tc\r", "\n\t"), "a\nb\tc\\r") == 0);
}

/* ---- in C ---- */

static void comments(Arena *a, const char *s, size_t width, const char *want)
{
  CHECK(strcmp(comment_text(a, s, strlen(s), width), want) == 0);
}

static void test_comments(Arena *a)
{
  comments(a, "x = 1", 80, "x = 1");
  comments(a, "C:\\data\\", 80, "C:\\data");
  comments(a, "C:\\data\\ \\\t\\", 80, "C:\\data");
  comments(a, "a?\?/", 80, "a");
  comments(a, "a\\?\?/ \\", 80, "a");
  comments(a, "a\\\v", 80, "a\\\\v");
  comments(a, "a\rb", 80, "a\\rb");
  comments(a, "a */ /* **/ /*/", 80, "a * / / * ** / / * /");
  comments(a, "123\\567", 4, "123 ..");
  comments(a, "12345", 5, "12345");
  comments(a, "éééé", 3, "ééé ..");
  comments(a, "", 80, "");
}

static void test_literals(Arena *a)
{
  CHECK(strcmp(string_literal(a, NULL), "0") == 0);
  CHECK(strcmp(string_literal(a, "a\"b\\"), "\"a\\\"b\\\\\"") == 0);
  CHECK(strcmp(string_literal(a, "\x1b"
                                 "1\n"),
               "\"\\0331\\012\"") == 0);
  CHECK(strcmp(string_literal(a, "?\?/?\?\?"), "\"?\\?/?\\?\\?\"") == 0);
  CHECK(strcmp(string_literal(a, "é\xff"), "\"é\\377\"") == 0);
}

static void test_identifiers(Arena *a)
{
  CHECK(strcmp(identifier(a, "fc1.weight"), "fc1_weight") == 0);
  CHECK(strcmp(identifier(a, "0.w"), "p0_w") == 0);
  CHECK(strcmp(identifier(a, "a b;\"é"), "a_b____") == 0);
}

int main(void)
{
  Arena *a = arena_create();
  test_show();
  test_room();
  test_comments(a);
  test_literals(a);
  test_identifiers(a);
  arena_destroy(a);
  return check_done();
}
