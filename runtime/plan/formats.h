/* The formats of data: one table, from which the compiler gets shapes and the loader gets samples.
 *
 * A job names a file, and its shapes come from that file's header. Both sides must read headers in
 * the same way, so each format has one reader, which both call. The readers are in
 * runtime/data/formats. They link only zlib and jansson, so that the compiler can link them.
 *
 * Functions return a status. After a failure ampc_last_error() is one line that names the file. */
#pragma once
#include "ampc_plan.h"

/* What the header of a file says; all of it is checked. */
typedef struct ampc_header {
  ampc_dtype dtype; /* type of the elements in INPUT; the file's type may be a narrower integer */
  uint32_t rank;    /* rank of one sample; below AMPC_MAX_RANK, because a batch has one more axis */
  int64_t dim[AMPC_MAX_RANK]; /* shape of one sample; each size at least 1 */
  int64_t samples;            /* at least 1 */
} ampc_header;

/* An open source. Each format has its own struct, which only that format accesses. */
typedef struct ampc_reader ampc_reader;

/* As `epoch`: the samples as they are stored, without training's random changes. */
enum { AMPC_AS_STORED = -1 };

typedef struct ampc_array ampc_array; /* array.h */
typedef struct ampc_format ampc_format;

/* What to open: `desc` is a source of `program`; `path` is its file, or NULL if it has none. All
 * that the pointers refer to must outlive the reader. */
typedef struct ampc_opening {
  const ampc_format *format;
  const ampc_program *program;
  const ampc_source *desc;
  const char *path;
  uint64_t seed;
} ampc_opening;

struct ampc_format {
  ampc_source_kind kind;
  const char *name; /* kind and name: as in the row of AMPC_FORMATS */

  /* The types that elements can have in INPUT, for formats with a file. With this list the compiler
   * checks a job that states `shape` and `dtype` without reading the file. */
  ampc_dtype types[AMPC_DTYPE_COUNT];
  uint32_t n_types;

  bool works; /* producing a sample takes long, so several threads share a batch */
  bool alone; /* several files cannot form one source: a pattern must match one file */
  bool packs; /* reads all files of a pattern as one; `path` is the pattern then */
  bool draws; /* draws random numbers, so each call in a job has its own stream */

  /* True: the arguments determine the whole header except the number of samples. Then `probe` with
   * a NULL path returns that header, and its messages about arguments name no file. False: `probe`
   * must read the file. */
  bool known;

  /* Reads and checks the header of the file. Trusts no number in it that the size of the file
   * contradicts. `args` is ampc_source.args everywhere. NULL: the format has no file. */
  ampc_status (*probe)(const ampc_format *f, const char *path, const char *args, ampc_header *out);

  /* Returns in *out the names of the classes in the file, merged with those of `args`, as lines
   * "class=NAME\n" in sorted order; NULL if `args` does not ask for them. The caller frees *out.
   * May be NULL. */
  ampc_status (*classes)(const char *path, const char *args, char **out);

  /* For formats that use the functions of array.h: reads the header of a file and checks all of it
   * against the file's size. With `contents` it also opens the range of its elements. If `known` is
   * true, the path may be NULL. */
  ampc_status (*locate)(const char *path, const char *args, bool contents, ampc_array *out);

  /* Refuses a file whose header differs from the one that the program was compiled for. Also
   * refuses a truncated or damaged file, if that can be detected without reading all of it. */
  ampc_status (*open)(const ampc_opening *o, ampc_reader **out, int64_t *out_samples);

  /* Says that only samples [first, first + count) are used, so random choices of a sample stay
   * within them. May be NULL. */
  void (*use)(ampc_reader *r, int64_t first, int64_t count);

  /* Writes samples [first, first + n) to `to` as INPUT stores them: without gaps, with elements of
   * ampc_element_size() bytes. Calls may come in any order and from any number of threads at once.
   * Random draws for a sample depend only on seed, epoch and sample. */
  ampc_status (*copy)(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch, void *to);

  /* Writes the name of a sample that is a file, such as "cats/1.jpg", to `text`. Call it after
   * `copy`: if the file could not be used and another file replaced it, this is the name of the
   * other file. Returns false if the sample has only its number. May be NULL. */
  bool (*sample_name)(const ampc_reader *r, int64_t sample, char *text, size_t size);

  void (*close)(ampc_reader *r); /* NULL is fine */
};

#define AMPC_FORMAT_TABLE(KIND, name) extern const ampc_format ampc_format_##name;
AMPC_FORMATS(AMPC_FORMAT_TABLE)
#undef AMPC_FORMAT_TABLE

const ampc_format *ampc_format_of(ampc_source_kind kind); /* NULL: this kind has no reader */
const ampc_format *ampc_format_find(const char *name);    /* "idx"; NULL: no such format */

/* Says that reading headers must not take long: text that was never tokenized then has 0 samples,
 * that is an unknown number. */
void ampc_texts_skip(void);

/* Sets the samples that a source uses of all its `samples`: its `part`. Of windows that overlap,
 * those that share rows with the next part are left out. */
void ampc_source_part(const ampc_source *s, int64_t samples, int64_t *out_first,
                      int64_t *out_count);

/* ---- a source of one file or several ---- */

/* A path that is not the name of a file is a pattern, as in the shell. The files that it matches,
 * in sorted order, form one source. Call these functions to read a source, not its format's. */
typedef struct ampc_shards ampc_shards;

/* Reads the header of a source. *out_found is false, with AMPC_OK, if no file exists; see errno. */
ampc_status ampc_shards_probe(const ampc_format *f, const char *path, const char *args,
                              bool *out_found, ampc_header *out);
/* Returns in *out the names of the classes of all files: ampc_format.classes. */
ampc_status ampc_shards_classes(const ampc_format *f, const char *path, const char *args,
                                bool *out_found, char **out);
/* Opens all files of a source; *out_samples is the total of their samples. *out_found is also set
 * if the call fails. The functions below do the same as the functions of ampc_format. */
ampc_status ampc_shards_open(const ampc_opening *o, bool *out_found, ampc_shards **out,
                             int64_t *out_samples);
void ampc_shards_use(ampc_shards *s, int64_t first, int64_t count);
ampc_status ampc_shards_copy(const ampc_shards *s, int64_t first, int64_t n, int64_t epoch,
                             void *to);
bool ampc_shards_name(const ampc_shards *s, int64_t sample, char *text, size_t size);
void ampc_shards_close(ampc_shards *s); /* NULL is fine */
