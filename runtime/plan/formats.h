/* The formats of data: one table, which the compiler asks for shapes and the loader reads through.
 *
 * A job names a file, and its shapes come from that file's header, so both sides have to understand
 * headers in the same way: there is one reader a format and both call it. The readers stand in
 * runtime/data/formats; they link zlib, jansson and nothing else, so that the compiler can link
 * them.
 *
 * Functions return a status, and ampc_last_error() then is one line that names the file. */
#pragma once
#include "ampc_plan.h"

/* What the header of a file says, all of it checked. */
typedef struct ampc_header {
  ampc_dtype dtype; /* of the elements in INPUT; the file's own type may be a narrower integer */
  uint32_t rank;    /* of one sample: below AMPC_MAX_RANK, since a batch has one axis more */
  int64_t dim[AMPC_MAX_RANK]; /* of one sample; each at least 1 */
  int64_t samples;            /* at least 1 */
} ampc_header;

/* A source that is open. Each format has a struct of its own, which nobody else looks into. */
typedef struct ampc_reader ampc_reader;

/* An `epoch` of the samples as they are stored, without what training draws. */
enum { AMPC_AS_STORED = -1 };

typedef struct ampc_array ampc_array; /* array.h */
typedef struct ampc_format ampc_format;

/* What is opened: `desc`, a source of `program`; `path` is where its file lies, NULL if it has
 * none. All of it must outlive the reader. */
typedef struct ampc_opening {
  const ampc_format *format;
  const ampc_program *program;
  const ampc_source *desc;
  const char *path;
  uint64_t seed;
} ampc_opening;

struct ampc_format {
  ampc_source_kind kind;
  const char *name; /* both as in the row of AMPC_FORMATS */

  /* Formats with a file: the types that elements can have in INPUT, so that a job which gives
   * `shape` and `dtype` itself is checked without the file. */
  ampc_dtype types[AMPC_DTYPE_COUNT];
  uint32_t n_types;

  bool works; /* a sample takes so long to make that several threads share a batch */
  bool alone; /* several files would not be one: a pattern must name one of them */
  bool draws; /* some numbers at random, so each call in a job has a stream of its own */

  /* The arguments alone say all but the samples. `probe` with the path NULL tells it, and refuses
   * arguments that make no sense, without naming a file. False: the header tells. */
  bool known;

  /* Reads and checks the header of the file, believing no number in it that the size of the file
   * contradicts. `args` is ampc_source.args throughout. NULL: the format has no file. */
  ampc_status (*probe)(const ampc_format *f, const char *path, const char *args, ampc_header *out);

  /* Of a format whose functions are those of array.h: reads the header of a file, and with
   * `contents` opens the range of its elements; all of it is checked against the size of the file.
   * Where it is `known`, the path may be NULL, as above. */
  ampc_status (*locate)(const char *path, const char *args, bool contents, ampc_array *out);

  /* A file that does not hold what the program was compiled for is refused, as is one that is cut
   * or damaged, so far as can be seen without reading all of a large one. */
  ampc_status (*open)(const ampc_opening *o, ampc_reader **out, int64_t *out_samples);

  /* Only samples [first, first + count) are used, and what is drawn keeps to them. May be NULL. */
  void (*use)(ampc_reader *r, int64_t first, int64_t count);

  /* Writes samples [first, first + n) to `to`, as they lie in INPUT: without gaps, elements as
   * large as ampc_element_size() says. Any order, any number of threads at once. What is drawn for
   * a sample depends on seed, epoch and sample alone. */
  ampc_status (*copy)(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch, void *to);

  /* What people call a sample that is a file of its own, "cats/1.jpg", once it was copied: where
   * one stands in for another, it is the one that was copied. False: it has only its number. May be
   * NULL. */
  bool (*sample_name)(const ampc_reader *r, int64_t sample, char *text, size_t size);

  void (*close)(ampc_reader *r); /* NULL is fine */
};

#define AMPC_FORMAT_TABLE(KIND, name) extern const ampc_format ampc_format_##name;
AMPC_FORMATS(AMPC_FORMAT_TABLE)
#undef AMPC_FORMAT_TABLE

const ampc_format *ampc_format_of(ampc_source_kind kind); /* NULL: a kind without a reader */
const ampc_format *ampc_format_find(const char *name);    /* "idx"; NULL: there is none */

/* ---- a source of one file or several ---- */

/* A path that is no file's name is a pattern, as the shell knows it: its files, in sorted order,
 * follow each other as if they were one. Who wants a source's samples asks here, not its format. */
typedef struct ampc_shards ampc_shards;

/* *out_found false, and AMPC_OK: there is no such file, and errno says why. */
ampc_status ampc_shards_probe(const ampc_format *f, const char *path, const char *args,
                              bool *out_found, ampc_header *out);
/* Of all files together; *out_found as above, also after a failure; `use` and the rest as in
 * ampc_format. */
ampc_status ampc_shards_open(const ampc_opening *o, bool *out_found, ampc_shards **out,
                             int64_t *out_samples);
void ampc_shards_use(ampc_shards *s, int64_t first, int64_t count);
ampc_status ampc_shards_copy(const ampc_shards *s, int64_t first, int64_t n, int64_t epoch,
                             void *to);
bool ampc_shards_name(const ampc_shards *s, int64_t sample, char *text, size_t size);
void ampc_shards_close(ampc_shards *s); /* NULL is fine */
