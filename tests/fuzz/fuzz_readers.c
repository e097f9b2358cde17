/* Fuzz target for the readers of files. For any bytes, a reader must return a status.
 *
 *   --readers       lists the readers by name: `weights` (checkpoints and files of torch.save),
 *                   `pickle` (without its archive), and the formats of AMPC_FORMATS that read files
 *   --reader=NAME   the bytes of every input are a file for this reader
 *   --seeds         the exit status is 1 unless the reader accepts at least one input */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "runtime/data/formats/picture.h"
#include "runtime/data/source.h"
#include "runtime/state/pickle.h"
#include "runtime/state/safetensors.h"

static const ampc_program program = {.name = "fuzz"};

/* Arguments for all formats at once: each format reads its own. */
static const char arguments[] =
    "key=x\ncolumn=a\ncolumn=b\nnumber=0\nscalar=0\ndtype=f32\nheader=1\n"
    "sep=,\nlength=3\nformat=u16\nrandom=1\nof=image\nshape=2\n";

/* A column of names in a CSV file, after a line that is skipped. */
static const char names[] =
    "column=b\nnumber=0\nscalar=1\ndtype=i64\nheader=1\nsep=,\nskip=1\nlabels=1\nmissing=-1\n";

/* Opens and reads all samples. The compiler must accept each file that the loader accepts. */
static void read_source(const ampc_source *desc, bool probed)
{
  DataSource s;
  if (source_open(&program, desc, "", 1, &s) == AMPC_OK) {
    if (!probed) abort();
    char *sample = malloc((size_t)s.sample_bytes);
    for (int64_t i = 0; sample && i < s.count; i++)
      if (source_copy(&s, i, 1, 0, sample)) abort();
    free(sample);
  }
  source_close(&s);
}

/* Reads a file as a job that takes its shapes from the file, and as a job with other shapes.
 * Returns whether the compiler accepts the file, as all readers below return whether they do. */
static bool read_format(const ampc_format *f, const char *path)
{
  ampc_header h;
  bool probed = f->probe(f, path, arguments, &h) == AMPC_OK;
  ampc_source desc = {.kind = f->kind,
                      .path = path,
                      .args = arguments,
                      .dtype = f->types[0],
                      .rank = 2,
                      .dim = {2, 3},
                      .part_end = 1};
  read_source(&desc, probed);
  if (!probed) return false;
  desc.dtype = h.dtype;
  desc.rank = h.rank;
  memcpy(desc.dim, h.dim, sizeof desc.dim);
  desc.samples = h.samples;
  desc.limit = h.dtype == AMPC_F32 ? 0 : 10;
  read_source(&desc, true);
  return true;
}

/* Reads a file whose classes the compiler has listed: every field is then one of them. */
static void read_names(const char *path)
{
  char *lines = NULL, args[1 << 16];
  bool there;
  ampc_source desc = {.kind = AMPC_SOURCE_CSV,
                      .path = path,
                      .args = args,
                      .dtype = AMPC_I64,
                      .part_end = 1,
                      .drawn = true,
                      .stratify = true};
  DataSource *s;
  if (ampc_shards_classes(&ampc_format_csv, path, names, &there, &lines)) return;
  snprintf(args, sizeof args, "%s%s", names, lines);
  free(lines);
  if (sources_open(&program, &desc, 1, "", 1, &s)) abort();
  double mean, deviation;
  if (source_measure(s, &mean, &deviation)) abort();
  sources_close(s, 1);
}

/* Reads the middle of a picture. A large picture is only opened, to save time. */
static bool read_picture(const uint8_t *bytes, size_t size)
{
  Picture *p;
  if (picture_open("picture", bytes, (int64_t)size, true, &p)) return false;
  int64_t w = picture_width(p), h = picture_height(p);
  int shrink = picture_shrinks(p, 2) && w % 2 ? 2 : 1;
  w = (w + shrink - 1) / shrink;
  h = (h + shrink - 1) / shrink;
  PictureArea middle = {w / 4, h / 3, w - w / 2, h - h / 2};
  uint8_t *to = w * h < 1 << 20 ? malloc((size_t)(3 * middle.width * middle.height)) : NULL;
  if (to) picture_read(p, shrink, middle, to);
  free(to);
  picture_close(p);
  return true;
}

/* Reads a file of any program. All tensors of an accepted file must be in it. */
static bool read_weights(const char *path)
{
  TensorFile f;
  const char *name;
  json_t *entry;
  char piece[1024];
  if (tensor_file_read_any(path, &f)) return false;
  json_object_foreach(f.header, name, entry)
  {
    if (strcmp(name, "__metadata__") == 0) continue;
    TensorEntry e = tensor_entry(entry);
    int64_t each = (int64_t)sizeof piece / e.unit;
    for (int64_t at = 0; at < e.elements; at += each) {
      int64_t n = e.elements - at < each ? e.elements - at : each;
      if (tensor_file_load(&f, e.begin + at * e.unit, piece, n * e.unit)) abort();
    }
  }
  tensor_file_free(&f);
  return true;
}

static bool read_pickle(const uint8_t *bytes, size_t size)
{
  Pickle p;
  ampc_status status = pickle_read("pickle", bytes, (int64_t)size, &p);
  pickle_free(&p);
  return !status;
}

static void read_tensors(const char *path)
{
  TensorFile f;
  static const int64_t dim[] = {2, 3};
  TensorType t = {AMPC_F32, false, 2, dim};
  if (tensor_file_read(path, &f)) return;
  float values[6];
  int64_t begin = tensor_file_find(&f, "a", &t);
  if (begin >= 0 && tensor_file_load(&f, begin, values, sizeof values)) abort();
  tensor_file_free(&f);
}

/* ---- the readers ---- */

enum { WEIGHTS = AMPC_SOURCE_ARGUMENT, PICKLE, READERS }; /* below: rows of AMPC_FORMATS */
static unsigned reader = READERS;
static bool seeds, accepted;

/* Returns NULL for formats that read no file. */
static const char *reader_name(unsigned i)
{
  if (i == WEIGHTS) return "weights";
  if (i == PICKLE) return "pickle";
  const ampc_format *f = ampc_format_of(i); /* text and jsonl: fuzz_chats.c */
  return f->probe && !f->packs ? f->name : NULL;
}

static void check_seeds(void)
{
  if (!seeds || accepted) return;
  fprintf(stderr, "%s accepts none of its seeds\n", reader_name(reader));
  _exit(1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  for (int k = 1; k < *argc; k++) {
    const char *option = (*argv)[k];
    for (unsigned i = 0; i < READERS; i++) {
      const char *name = reader_name(i);
      if (name && strcmp(option, "--readers") == 0) puts(name);
      if (name && strncmp(option, "--reader=", 9) == 0 && strcmp(option + 9, name) == 0) reader = i;
    }
    if (strcmp(option, "--readers") == 0) exit(0);
    seeds |= strcmp(option, "--seeds") == 0;
  }
  if (reader == READERS) {
    fputs("--reader=NAME: a name that --readers lists\n", stderr);
    exit(1);
  }
  return atexit(check_seeds);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
  static int file = -1;
  static char path[64];
  if (file < 0) {
    file = memfd_create("input", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  }
  if (ftruncate(file, 0) || pwrite(file, bytes, size, 0) != (ssize_t)size) return 0;
  if (reader == WEIGHTS) {
    read_tensors(path);
    accepted |= read_weights(path);
  } else if (reader == PICKLE) {
    accepted |= read_pickle(bytes, size);
  } else if (reader == AMPC_SOURCE_IMAGES) {
    accepted |= read_picture(bytes, size);
  } else {
    accepted |= read_format(ampc_format_of(reader), path);
    if (reader == AMPC_SOURCE_CSV) read_names(path);
  }
  return 0;
}
