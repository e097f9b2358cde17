/* What of a text is printed after each token: whole characters, escapes, what may become a stop
 * string; by bytes and by a tokenizer. */
#include "check.h"
#include "runner/infer/text_out.h"

/* Byte-level BPE: two tokens are the halves of an e with an accent, 7 is special. */
static const char model[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [{\"id\": "
    "7, "
    "\"content\": \"<end>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
    "\"normalized\": false, \"special\": true}], \"normalizer\": null, \"pre_tokenizer\": "
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": "
    "true}, \"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
    "true, \"trim_offsets\": true, \"use_regex\": true}, \"model\": {\"type\": \"BPE\", "
    "\"dropout\": null, \"unk_token\": null, \"continuing_subword_prefix\": null, "
    "\"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": false, "
    "\"ignore_merges\": false, \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"\u00c3\": 3, "
    "\"\u00a9\": 4, \"ab\": 5, \"\u010a\": 6}, \"merges\": [[\"a\", \"b\"]]}}";
enum { A, B, C, E_FIRST, E_LAST, AB, LINE, END };
static Tokenizer *tokenizer;

/* Feeds the tokens one by one after a prompt of `prompt` tokens, and compares the output after each
 * with `want`, whose parts are separated by |. The last token ends the text; a part that begins
 * with $ says that a stop string ends it. */
static void check(TextOut w, const char *name, const int64_t *token, int64_t prompt, int64_t n,
                  const char *want)
{
  char *got = NULL;
  size_t size = 0, before = 0;
  w.to = open_memstream(&got, &size);
  MUST(w.to);
  for (int64_t i = prompt; i <= n && !w.stopped; i++) {
    CHECK(text_out_put(&w, token, i, i == n) == AMPC_OK);
    bool stops = *want == '$';
    want += stops;
    size_t length = strcspn(want, "|");
    CHECK_MSG(w.stopped == stops, "%s: after token %lld", name, (long long)i);
    CHECK_MSG(size - before == length && memcmp(got + before, want, length) == 0,
              "%s: token %lld printed '%.*s', expected '%.*s'", name, (long long)i,
              (int)(size - before), got + before, (int)length, want);
    before = size;
    want += length + (want[length] == '|');
  }
  CHECK_MSG(!*want, "%s: ends too early", name);
  fclose(w.to);
  free(got);
}

static void check_bytes(TextOut w, const char *text, const char *want)
{
  int64_t token[64], n = (int64_t)strlen(text);
  for (int64_t i = 0; i < n; i++) token[i] = (unsigned char)text[i];
  check(w, text, token, 1, n, want);
}

#define STOPS(...)                                                                                 \
  .stop = (const char *const[]){__VA_ARGS__},                                                      \
  .n_stops = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void check_stops_of_bytes(void)
{
  check_bytes((TextOut){0}, "abc", "a|b|c");
  check_bytes((TextOut){STOPS("bcd")}, "abcde", "a|||$");
  check_bytes((TextOut){STOPS("bcd")}, "abcbcd", "a|||bc||$");
  check_bytes((TextOut){STOPS("bcd")}, "abc", "a||bc");                 /* N tokens, undecided */
  check_bytes((TextOut){STOPS("xyz"), .line = true}, "abc", "a|b|c\n"); /* it never comes */
  check_bytes((TextOut){STOPS("aab"), .line = true}, "aaaab", "a|||a|$\n");
  check_bytes((TextOut){STOPS("b"), .line = true}, "abc", "a|$\n"); /* long before the end */
  check_bytes((TextOut){STOPS("aa")}, "aab", "a||ab");              /* half is of the prompt */
  check_bytes((TextOut){STOPS("a")}, "aba", "a|b|$");               /* the prompt has it */
  check_bytes((TextOut){STOPS("bcde", "c")}, "abcde", "a||$b");     /* the one that ends first */
  check_bytes((TextOut){STOPS("c", "bc")}, "abc", "a||$");          /* the one that begins first */
}

static void check_characters(void)
{
  const TextOut terminal = {.terminal = true};
  check_bytes(terminal, "a\u00e9\U0001f600\x1b\n", "a||\u00e9||||\U0001f600|\\x1b|\n");
  check_bytes(terminal, "a\xf0\x9f", "a||\\xf0\\x9f");
  check_bytes((TextOut){0}, "a\u00e9\x1b", "a|\xc3|\xa9|\x1b");
  check_bytes((TextOut){STOPS("\u00e9")}, "a\u00e9", "a||$");
  check_bytes((TextOut){STOPS("\u00e9")}, "a\u00e8", "a||\u00e8"); /* the same first byte */
  check_bytes((TextOut){STOPS("\u00e9"), .terminal = true}, "a\u00e8b", "a||\u00e8|b");
  check_bytes((TextOut){STOPS("\u00e9"), .terminal = true}, "\u00e9b", "|\u00e9|b");
  check_bytes((TextOut){STOPS("\xa9"), .terminal = true}, "a\u00e9b",
              "a||$\\xc3"); /* its last byte */
}

#define CHECK_TOKENS(w, prompt, want, ...)                                                         \
  check(w, want, (int64_t[]){__VA_ARGS__}, prompt, sizeof((int64_t[]){__VA_ARGS__}) / 8, want)

static void check_tokenizer(void)
{
  const TextOut plain = {.tokenizer = tokenizer};
  TextOut w = {.tokenizer = tokenizer, STOPS("bc")};
  CHECK_TOKENS(plain, 1, "a||\u00e9|ab", A, E_FIRST, E_LAST, AB);
  CHECK_TOKENS(plain, 1, "a|\uFFFD", A, E_FIRST); /* the end of the text */
  CHECK_TOKENS(plain, 1, "a|||\uFFFD\uFFFDa", A, E_FIRST, E_FIRST, A);
  CHECK_TOKENS(w, 1, "c|a|$", C, AB, C);             /* it begins inside a token */
  CHECK_TOKENS(w, 1, "c|a|ba|b|$", C, AB, AB, B, C); /* ab, ab, b, c */
  w = (TextOut){.tokenizer = tokenizer, STOPS("\u00e9c")};
  CHECK_TOKENS(w, 1, "a||||\u00e9|$", A, E_FIRST, E_LAST, E_FIRST, E_LAST, C);
  w = (TextOut){.tokenizer = tokenizer, STOPS("x", "<end>"), .line = true};
  CHECK_TOKENS(w, 1, "a|b|$\n", A, B, END);      /* a special token, which has no text */
  CHECK_TOKENS(w, 2, "a|b|$\n", A, END, B, END); /* the prompt has one */
  CHECK_TOKENS(w, 1, "a||$\uFFFD\n", A, E_FIRST, END, B);
  w = (TextOut){.tokenizer = tokenizer, STOPS("bc", "<end>")};
  CHECK_TOKENS(w, 1, "a||$b", A, B, END, B); /* what waited is printed */
  CHECK_TOKENS(plain, 1, "a||b", A, END, B);
  w = (TextOut){.tokenizer = tokenizer, STOPS("\u010a")}; /* the file's way to write \n */
  CHECK_TOKENS(w, 1, "a|\n|b", A, LINE, B);
  w = (TextOut){.tokenizer = tokenizer, STOPS("ab"), .first = 2};
  CHECK_TOKENS(w, 2, "|c|$", A, B, C, AB); /* a chat: the prompt is not printed */
}

static void check_numbers(void)
{
  const TextOut w = {.numbers = true, .line = true};
  CHECK_TOKENS(w, 2, "300 7| 65\n", 300, 7, 65);
}

static void check_full(void)
{
  TextOut w = {.to = fopen("/dev/full", "w")};
  if (!w.to) return;
  CHECK(text_out_put(&w, (int64_t[]){'a'}, 1, false) != AMPC_OK);
  CHECK(strstr(ampc_last_error(), "the text cannot be written: No space left"));
  fclose(w.to);
}

int main(void)
{
  MUST(tokenizer_read("model", model, sizeof model - 1, &tokenizer) == AMPC_OK);
  check_stops_of_bytes();
  check_characters();
  check_tokenizer();
  check_numbers();
  check_full();
  tokenizer_close(tokenizer);
  return check_done();
}
