/* Compares ids and texts with those of Hugging Face's `tokenizers` library and of sentencepiece.
 *   tokenizers_check FOLDER...           the fixtures: NAME.json or NAME.model with NAME.ids.json
 *   tokenizers_check --run TOKENIZER     encodes and decodes texts of stdin: for compare.py
 * A text of stdin is its size as u32, then its bytes. The answer, all as u32: number of ids, ids
 * with and without what is added around a text, ids with special tokens as text; sizes and bytes of
 * the two decoded texts. A text that is refused has 0xffffffff in place of all. */
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/data/tokenizer/tokenizer.h"

typedef struct Answer {
  Ids ids[3]; /* all; bare: without what is added; plain: special tokens are text */
  char *text[2];
  size_t n[2]; /* with special tokens; without */
} Answer;

static ampc_status answer(Tokenizer *t, const char *text, size_t n, Answer *a)
{
  ampc_status status = AMPC_OK;
  *a = (Answer){0};
  for (int i = 0; i < 3 && !status; i++)
    status = tokenizer_encode(t, text, n, i == 0, i == 2, &a->ids[i]);
  for (int i = 0; i < 2 && !status; i++)
    status = tokenizer_decode(t, a->ids[0].at, a->ids[0].n, i == 0, &a->text[i], &a->n[i]);
  return status;
}

static void answer_free(Answer *a)
{
  for (int i = 0; i < 3; i++) free(a->ids[i].at);
  for (int i = 0; i < 2; i++) free(a->text[i]);
}

/* ---- fixtures ---- */

static json_t *read_json(const char *path)
{
  json_error_t error;
  json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
  if (!root) printf("%s: %s\n", path, error.text);
  return root;
}

static bool same_ids(const Ids *got, const json_t *want)
{
  bool same = got->n == json_array_size(want);
  for (size_t i = 0; i < got->n && same; i++)
    same = got->at[i] == json_integer_value(json_array_get(want, i));
  return same;
}

static int check_text(Tokenizer *t, const char *name, const json_t *text, const json_t *want)
{
  static const char *const keys[] = {"ids", "bare", "plain"}, *const texts[] = {"text", "skip"};
  Answer a;
  int bad = 0;
  const json_t *refused = json_object_get(want, "refused");
  ampc_status status = answer(t, json_string_value(text), json_string_length(text), &a);
  if (refused ? !status : status)
    bad = printf("%s: \"%s\": %s\n", name, json_string_value(text),
                 refused ? "is not refused" : ampc_last_error());
  const json_t *ids = NULL, *s = NULL; /* a missing one is as the one before it */
  for (int i = 0; i < 3 && !status && !bad; i++) {
    if (json_object_get(want, keys[i])) ids = json_object_get(want, keys[i]);
    if (!same_ids(&a.ids[i], ids))
      bad = printf("%s: other %s of \"%s\"\n", name, keys[i], json_string_value(text));
  }
  for (int i = 0; i < 2 && !status && !bad; i++) {
    if (json_object_get(want, texts[i])) s = json_object_get(want, texts[i]);
    if (json_string_length(s) != a.n[i] || memcmp(a.text[i], json_string_value(s), a.n[i]) != 0)
      bad = printf("%s: \"%s\" becomes \"%s\", not \"%s\"\n", name, json_string_value(text),
                   a.text[i], json_string_value(s));
  }
  answer_free(&a);
  return bad != 0;
}

/* Checks one tokenizer. Returns the number of texts that differ. */
static int check_fixture(const char *ids, const json_t *texts, size_t *checked)
{
  char path[400];
  Tokenizer *t;
  int bad = 0;
  size_t i, n = strlen(ids) - strlen(".ids.json");
  json_t *want, *wanted = read_json(ids);
  snprintf(path, sizeof path, "%.*s.json", (int)n, ids);
  FILE *file = fopen(path, "r");
  if (!file)
    snprintf(path, sizeof path, "%.*s.model", (int)n, ids);
  else
    fclose(file);
  if (!wanted || tokenizer_open(path, &t)) return printf("%s: %s\n", path, ampc_last_error()) > 0;
  if (json_array_size(wanted) != json_array_size(texts)) bad = printf("%s: not all texts\n", ids);
  json_array_foreach(wanted, i, want)
  {
    bad += check_text(t, path, json_array_get(texts, i), want);
    ++*checked;
  }
  tokenizer_close(t);
  json_decref(wanted);
  return bad;
}

static int check_folder(const char *folder)
{
  char path[300];
  glob_t found;
  int bad = 0;
  size_t checked = 0;
  snprintf(path, sizeof path, "%s/texts.json", folder);
  json_t *texts = read_json(path);
  snprintf(path, sizeof path, "%s/*.ids.json", folder);
  if (!texts || glob(path, 0, NULL, &found)) return printf("%s: no fixtures\n", folder);
  for (size_t i = 0; i < found.gl_pathc; i++)
    bad += check_fixture(found.gl_pathv[i], texts, &checked);
  printf("%zu tokenizers, %zu texts, %d differ\n", found.gl_pathc, checked, bad);
  globfree(&found);
  json_decref(texts);
  return bad || !checked;
}

/* ---- texts of stdin ---- */

static void put(size_t n)
{
  uint32_t word = (uint32_t)n;
  fwrite(&word, sizeof word, 1, stdout);
}

static void put_answer(const Answer *a)
{
  for (int i = 0; i < 3; i++) {
    put(a->ids[i].n);
    if (a->ids[i].n) fwrite(a->ids[i].at, sizeof *a->ids[i].at, a->ids[i].n, stdout);
  }
  for (int i = 0; i < 2; i++) {
    put(a->n[i]);
    fwrite(a->text[i], 1, a->n[i], stdout);
  }
}

static int run(const char *path)
{
  Tokenizer *t;
  Answer a;
  uint32_t n;
  if (tokenizer_open(path, &t)) {
    fprintf(stderr, "%s\n", ampc_last_error());
    return 1;
  }
  while (fread(&n, sizeof n, 1, stdin) == 1) {
    char *text = malloc(n + 1);
    if (!text || fread(text, 1, n, stdin) != n) return 1;
    if (answer(t, text, n, &a)) {
      put(UINT32_MAX);
      fprintf(stderr, "%s\n", ampc_last_error());
    } else
      put_answer(&a);
    answer_free(&a);
    free(text);
  }
  tokenizer_close(t);
  return 0;
}

int main(int argc, char **argv)
{
  int bad = 0;
  if (argc == 3 && strcmp(argv[1], "--run") == 0) return run(argv[2]);
  for (int i = 1; i < argc; i++) bad |= check_folder(argv[i]);
  return bad || argc < 2;
}
