/* Readers of ids: records are cut and filled up, masks, windows, damaged files. The ids are a file
 * that the test writes. */
#include "runtime/data/formats/texts.h"
#include "runtime/plan/formats.h"
#include "temp.h"

static bool absent;

static ampc_status find(const char *path, const char *args, bool make, char file[TEXTS_PATH],
                        const char **why)
{
  (void)path;
  (void)args;
  (void)why;
  strcpy(file, absent && !make ? "" : temp_path("x.ids"));
  return AMPC_OK;
}

const struct ampc_texts ampc_texts = {find};

/* Three records: 1 2* 3*, 4, 5 6 7 8*. */
static void write_ids(int64_t tokens, int64_t records, int64_t second_end)
{
  const int32_t ids[] = {1, 2 | TEXTS_ANSWER, 3 | TEXTS_ANSWER, 4, 5, 6, 7, 8 | TEXTS_ANSWER};
  const int64_t ends[] = {3, second_end, 8};
  const TextsEnd end = {TEXTS_MAGIC, tokens, records, 9};
  char bytes[sizeof ids + sizeof ends + sizeof end];
  memcpy(bytes, ids, sizeof ids);
  memcpy(bytes + sizeof ids, ends, sizeof ends);
  memcpy(bytes + sizeof ids + sizeof ends, &end, sizeof end);
  temp_write(temp_path("x.ids"), bytes, sizeof bytes);
}

static ampc_status read_all(ampc_source_kind kind, const char *args, ampc_dtype dtype, void *to)
{
  static const ampc_program program = {.name = "test"};
  const ampc_format *f = ampc_format_of(kind);
  ampc_source desc = {
      .kind = kind, .path = "x", .args = args, .dtype = dtype, .rank = 1, .dim = {3}};
  const ampc_opening o = {f, &program, &desc, temp_path("x.ids"), 1};
  bool found;
  int64_t n;
  ampc_shards *s;
  ampc_status status = ampc_shards_open(&o, &found, &s, &n);
  if (status) return status;
  CHECK(n == 3);
  status = ampc_shards_copy(s, 0, 3, 0, to);
  ampc_shards_close(s);
  return status;
}

int main(void)
{
  int32_t ids[9];
  uint8_t mask[9];
  ampc_header h;
  temp_open();
  write_ids(8, 3, 4);
  CHECK(!read_all(AMPC_SOURCE_JSONL, "length=3\nof=ids\n", AMPC_I32, ids));
  CHECK(memcmp(ids, (int32_t[]){1, 2, 3, 4, 9, 9, 5, 6, 7}, sizeof ids) == 0);
  CHECK(!read_all(AMPC_SOURCE_JSONL, "length=3\nof=mask\n", AMPC_BOOL, mask));
  CHECK(memcmp(mask, (uint8_t[]){0, 1, 1, 0, 0, 0, 0, 0, 0}, sizeof mask) == 0);
  CHECK(read_all(AMPC_SOURCE_JSONL, "length=4\nof=ids\n", AMPC_I32, ids) == AMPC_BAD_FILE);
  CHECK(strstr(ampc_last_error(), "compiled for"));
  CHECK(!read_all(AMPC_SOURCE_TEXT, "length=3\nrandom=0\n", AMPC_I32, ids));
  CHECK(ids[0] == 1 && ids[3] == ids[2] && ids[6] == ids[5] && ids[6] == 5);

  write_ids(8, 3, 2); /* an end before the one of the record before it */
  CHECK(read_all(AMPC_SOURCE_JSONL, "length=3\nof=ids\n", AMPC_I32, ids) == AMPC_BAD_FILE);
  write_ids(8, 3, 9);
  CHECK(read_all(AMPC_SOURCE_JSONL, "length=3\nof=ids\n", AMPC_I32, ids) == AMPC_BAD_FILE);
  write_ids(8, 4, 4);
  CHECK(read_all(AMPC_SOURCE_TEXT, "length=3\n", AMPC_I32, ids) == AMPC_BAD_FILE);
  write_ids(-8, 11, 4);
  CHECK(read_all(AMPC_SOURCE_TEXT, "length=3\n", AMPC_I32, ids) == AMPC_BAD_FILE);
  temp_write(temp_path("x.ids"), "short", 5);
  CHECK(read_all(AMPC_SOURCE_TEXT, "length=3\n", AMPC_I32, ids) == AMPC_BAD_FILE);
  CHECK(strstr(ampc_last_error(), "is damaged: delete it"));

  absent = true;
  ampc_texts_skip();
  CHECK(!ampc_format_text.probe(&ampc_format_text, "x", "length=3\n", &h) && h.samples == 0);
  CHECK(!ampc_format_jsonl.probe(&ampc_format_jsonl, "x", "length=3\n", &h) && h.samples == 0);
  temp_close();
  return check_done();
}
