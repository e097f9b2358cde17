/* Sources of several files, one after the other in sorted order. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/file.h"
#include "runtime/plan/formats.h"

typedef struct Shard {
  ampc_source desc; /* the source's description, adapted to this file */
  ampc_reader *reader;
  int64_t begin, end; /* numbers of its samples, counted over all files */
} Shard;

struct ampc_shards {
  const ampc_format *format;
  int64_t sample_bytes;
  glob_t files; /* freed by globfree, even if empty */
  size_t n;
  Shard *at;
};

/* Called by glob for a folder that it cannot read. A missing folder matches nothing. Another folder
 * is an error, because it may contain a match. */
static int refuse_folder(const char *path, int error)
{
  (void)path;
  if (error == ENOENT) return 0;
  errno = error;
  return 1;
}

/* Finds the file of that name, or else the files that match the name as a pattern. */
static ampc_status find_files(const ampc_format *f, const char *path, bool *out_found, glob_t *out)
{
  *out = (glob_t){0};
  *out_found = access(path, F_OK) == 0;
  int error = errno;
  if (*out_found) return file_note_input(FILE_DATA, path);
  int code = glob(path, 0, refuse_folder, out);
  if (code == GLOB_ABORTED)
    return ampc_fail(AMPC_BAD_FILE, "cannot search for %s: a folder cannot be read: %s", path,
                     strerror(errno));
  if (code == GLOB_NOSPACE) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  *out_found = code == 0;
  errno = error;
  ampc_status status = AMPC_OK;
  if (f->alone && out->gl_pathc > 1)
    status = ampc_fail(AMPC_BAD_FILE, "%s matches %s and others; %s reads only one", path,
                       out->gl_pathv[0], f->name);
  for (size_t i = 0; i < out->gl_pathc && !status; i++)
    status = file_note_input(FILE_DATA, out->gl_pathv[i]);
  if (!status && !f->packs) return AMPC_OK;
  globfree(out);
  *out = (glob_t){0}; /* a format that packs gets the pattern */
  return status;
}

static bool same_samples(const ampc_header *a, const ampc_header *b)
{
  return a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

ampc_status ampc_shards_probe(const ampc_format *f, const char *path, const char *args,
                              bool *out_found, ampc_header *out)
{
  glob_t files;
  ampc_status status = find_files(f, path, out_found, &files);
  if (status || !*out_found) return status;
  if (!files.gl_pathc) return f->probe(f, path, args, out);
  *out = (ampc_header){0};
  for (size_t i = 0; i < files.gl_pathc && !status; i++) {
    ampc_header one;
    status = f->probe(f, files.gl_pathv[i], args, &one);
    if (!status && i && !same_samples(&one, out))
      status = ampc_fail(AMPC_BAD_FILE, "%s and %s have samples of different types or shapes",
                         files.gl_pathv[0], files.gl_pathv[i]);
    int64_t before = out->samples;
    if (!status) *out = one;
    if (!status) out->samples += before;
  }
  globfree(&files);
  return status;
}

ampc_status ampc_shards_classes(const ampc_format *f, const char *path, const char *args,
                                bool *out_found, char **out)
{
  glob_t files;
  *out = NULL;
  ampc_status status = find_files(f, path, out_found, &files);
  if (status || !*out_found) return status;
  if (!files.gl_pathc) status = f->classes(path, args, out);
  for (size_t i = 0; i < files.gl_pathc && !status; i++) {
    char *with = NULL, *before = *out;
    bool fits = asprintf(&with, "%s%s", args, before ? before : "") >= 0;
    *out = NULL;
    status = fits ? f->classes(files.gl_pathv[i], with, out)
                  : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
    free(before);
    if (fits) free(with);
  }
  globfree(&files);
  return status;
}

static ampc_status open_files(ampc_shards *s, const ampc_opening *o)
{
  const ampc_source *desc = o->desc;
  ampc_opening file = *o;
  int64_t samples = 0;
  ampc_status status = AMPC_OK;
  for (size_t i = 0; i < s->n && !status; i++) {
    ampc_source *one = &s->at[i].desc;
    *one = *desc;
    one->samples = s->files.gl_pathc ? 0 : desc->samples; /* each file may have any number */
    one->stream ^= (uint64_t)i << 28; /* each file draws its own random numbers; low bits: epochs */
    file.desc = one;
    if (s->files.gl_pathc) file.path = s->files.gl_pathv[i];
    status = s->format->open(&file, &s->at[i].reader, &samples);
    s->at[i].begin = i ? s->at[i - 1].end : 0;
    s->at[i].end = s->at[i].begin + samples;
  }
  int64_t all = s->n ? s->at[s->n - 1].end : 0;
  if (!status && desc->samples && desc->samples != all)
    status = ampc_fail(AMPC_BAD_FILE,
                       "%s has %lld samples, the program was compiled for %lld: compile it again",
                       o->path, (long long)all, (long long)desc->samples);
  return status;
}

ampc_status ampc_shards_open(const ampc_opening *o, bool *out_found, ampc_shards **out,
                             int64_t *out_samples)
{
  const ampc_source *desc = o->desc;
  *out = NULL;
  *out_found = true;
  ampc_shards *s = calloc(1, sizeof *s);
  if (!s) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  s->format = o->format;
  s->sample_bytes = ampc_element_size(o->program, desc->dtype);
  for (uint32_t i = 0; i < desc->rank; i++) s->sample_bytes *= desc->dim[i];
  ampc_status status =
      s->format->probe ? find_files(s->format, o->path, out_found, &s->files) : AMPC_OK;
  s->n = s->files.gl_pathc ? s->files.gl_pathc : 1;
  s->at = calloc(s->n, sizeof *s->at);
  if (!status && !s->at) status = ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status) status = open_files(s, o);
  if (status) {
    ampc_shards_close(s);
    return status;
  }
  *out_samples = s->at[s->n - 1].end;
  *out = s;
  return AMPC_OK;
}

void ampc_shards_use(ampc_shards *s, int64_t first, int64_t count)
{
  for (size_t i = 0; i < s->n && s->format->use; i++) {
    const Shard *at = &s->at[i];
    int64_t begin = first > at->begin ? first : at->begin,
            end = first + count < at->end ? first + count : at->end;
    if (begin < end) s->format->use(at->reader, begin - at->begin, end - begin);
  }
}

/* Returns the index of the file that contains the sample. */
static size_t shard_of(const ampc_shards *s, int64_t sample)
{
  size_t low = 0, high = s->n - 1;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (sample < s->at[middle].end) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

ampc_status ampc_shards_copy(const ampc_shards *s, int64_t first, int64_t n, int64_t epoch,
                             void *to)
{
  for (int64_t done = 0; done < n;) {
    const Shard *at = &s->at[shard_of(s, first + done)];
    int64_t count = at->end - first - done < n - done ? at->end - first - done : n - done;
    ampc_status status = s->format->copy(at->reader, first + done - at->begin, count, epoch,
                                         (char *)to + done * s->sample_bytes);
    if (status) return status;
    done += count;
  }
  return AMPC_OK;
}

bool ampc_shards_name(const ampc_shards *s, int64_t sample, char *text, size_t size)
{
  const Shard *at = &s->at[shard_of(s, sample)];
  return s->format->sample_name &&
         s->format->sample_name(at->reader, sample - at->begin, text, size);
}

void ampc_shards_close(ampc_shards *s)
{
  if (!s) return;
  for (size_t i = 0; s->at && i < s->n; i++) s->format->close(s->at[i].reader);
  globfree(&s->files);
  free(s->at);
  free(s);
}
