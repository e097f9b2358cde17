/* Records of a prompt and an answer, or of the messages of a chat, as the ids of a tokenizer: `of`
 * selects "ids", or the "mask" that is true where an id belongs to an answer. A sample has `length`
 * ids: a longer record is cut, a shorter one filled up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "bytes.h"
#include "header.h"
#include "texts.h"

struct ampc_reader {
  Bytes ids;
  int64_t *end; /* of each record */
  int64_t length, pad;
  bool mask;
};

static bool is_mask(const char *args)
{
  char of[8] = "";
  args_text(args, "of", of, sizeof of);
  return strcmp(of, "mask") == 0;
}

static ampc_header records_header(const char *args, int64_t records)
{
  return (ampc_header){.dtype = is_mask(args) ? AMPC_BOOL : AMPC_I32,
                       .rank = 1,
                       .dim = {args_integer(args, "length")},
                       .samples = records};
}

static ampc_status jsonl_probe(const ampc_format *f, const char *path, const char *args,
                               ampc_header *out)
{
  (void)f;
  char file[TEXTS_PATH];
  TextsEnd end = {0};
  ampc_status status = path ? texts_find(path, args, file, &end) : AMPC_OK;
  *out = records_header(args, end.records);
  return status;
}

static int64_t begin_of(const ampc_reader *r, int64_t record)
{
  return record ? r->end[record - 1] : 0;
}

static void jsonl_close(ampc_reader *r)
{
  if (!r) return;
  bytes_close(&r->ids);
  free(r->end);
  free(r);
}

/* Counts the records that are cut. */
static ampc_status tell_cut(const ampc_reader *r, const char *path, int64_t records)
{
  int64_t cut = 0, lost = 0;
  ampc_status status = AMPC_OK;
  int32_t *ids = malloc((size_t)r->length * sizeof *ids);
  if (!ids) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  for (int64_t i = 0; i < records && !status; i++) {
    bool answered = false;
    if (r->end[i] - begin_of(r, i) <= r->length) continue;
    status = bytes_read(&r->ids, begin_of(r, i) * 4, r->length * 4, ids);
    for (int64_t j = 0; j < r->length && !status; j++) answered |= (ids[j] & TEXTS_ANSWER) != 0;
    cut++;
    lost += !answered;
  }
  free(ids);
  if (cut && !status)
    fprintf(stderr,
            "note: %s: %lld of %lld records have more than %lld tokens and are cut; %lld of these "
            "have no token of an answer left\n",
            path, (long long)cut, (long long)records, (long long)r->length, (long long)lost);
  return status;
}

static ampc_status open_file(ampc_reader *r, const char *path, const char *args, int64_t *records)
{
  char file[TEXTS_PATH];
  TextsEnd end;
  Bytes ends;
  ampc_status status = texts_find(path, args, file, &end);
  const DataFile data = {file, "ids", true};
  int64_t size = end.records * (int64_t)sizeof *r->end;
  if (!status) status = bytes_open(&data, 0, end.tokens * 4, false, &r->ids);
  r->ids.path = path;
  if (status) return status;
  r->pad = end.pad;
  r->end = malloc((size_t)size + 1);
  if (!r->end) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  status = bytes_open(&data, end.tokens * 4, size, false, &ends);
  if (status) return status;
  status = bytes_read(&ends, 0, size, r->end);
  bytes_close(&ends);
  *records = end.records;
  for (int64_t i = 0; i < end.records && !status; i++)
    if (r->end[i] < begin_of(r, i) || r->end[i] > end.tokens)
      status = ampc_fail(AMPC_BAD_FILE, "%s is damaged: delete it", file);
  return status;
}

static ampc_status jsonl_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples)
{
  const char *args = o->desc->args;
  ampc_reader *r = *out = calloc(1, sizeof *r);
  if (!r) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", o->path);
  r->ids.fd = -1;
  r->mask = is_mask(args);
  r->length = args_integer(args, "length");
  ampc_status status = open_file(r, o->path, args, out_samples);
  const ampc_header is = records_header(args, *out_samples);
  if (!status) status = header_check(&is, o->path, o->desc);
  if (!status && !r->mask) status = tell_cut(r, o->path, *out_samples);
  if (!status) return AMPC_OK;
  jsonl_close(r);
  *out = NULL;
  return status;
}

static ampc_status copy_record(const ampc_reader *r, int64_t record, int32_t *ids, void *to)
{
  int64_t begin = begin_of(r, record), n = r->end[record] - begin;
  if (n > r->length) n = r->length;
  ampc_status status = bytes_read(&r->ids, begin * 4, n * 4, ids);
  for (int64_t i = 0; i < r->length && !status; i++) {
    bool answer = i < n && ids[i] & TEXTS_ANSWER;
    if (r->mask)
      ((uint8_t *)to)[i] = answer;
    else
      ((int32_t *)to)[i] = i < n ? ids[i] & ~TEXTS_ANSWER : (int32_t)r->pad;
  }
  return status;
}

static ampc_status jsonl_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch,
                              void *to)
{
  (void)epoch;
  ampc_status status = AMPC_OK;
  int64_t size = r->length * (r->mask ? 1 : 4);
  int32_t *ids = malloc((size_t)r->length * sizeof *ids);
  if (!ids) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->ids.path);
  for (int64_t i = 0; i < n && !status; i++)
    status = copy_record(r, first + i, ids, (char *)to + i * size);
  free(ids);
  return status;
}

const ampc_format ampc_format_jsonl = {
    .kind = AMPC_SOURCE_JSONL,
    .name = "jsonl",
    .types = {AMPC_I32, AMPC_BOOL},
    .n_types = 2,
    .known = true,
    .packs = true,
    .probe = jsonl_probe,
    .open = jsonl_open,
    .copy = jsonl_copy,
    .close = jsonl_close,
};
