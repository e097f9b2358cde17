/* Makes the data sources of pass lower: files, whose headers hold their shapes, and synthetic
 * numbers. The format interprets a header: runtime/plan/formats.h. */
#include "block.h"
#include "infer.h"
#include "runtime/data/formats/args.h"
#include "runtime/plan/formats.h"
#include "common/number.h"
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define ARG(i)  (args->at.at[i].value)
#define SPAN(i) (args->at.at[i].span)

/* ---- the header of a file ---- */

/* Returns the path of data: relative to --data-dir, or else to the folder of the job. */
const char *data_path(Lower *l, const char *path)
{
  const char *root = l->c->options.data_dir;
  if (path[0] == '/') return path;
  if (root) return arena_printf(l->arena, "%s/%s", root, path);
  const char *job = l->c->options.input, *slash = job ? strrchr(job, '/') : NULL;
  return slash ? arena_printf(l->arena, "%.*s/%s", (int)(slash - job), job, path) : path;
}

/* Reads the header of a file. If the file does not exist, the message offers `shape` or `samples`;
 * if it exists and is wrong, these cannot help. In both cases the exit status says that a file is
 * bad, not the program. `out` may already be complete; then the file need not exist. */
static bool read_header(Lower *l, const ampc_format *format, Span span, ampc_source *out)
{
  const char *path = data_path(l, out->path);
  ampc_header header;
  bool there = true;
  ampc_status status = ampc_shards_probe(format, path, out->args, &there, &header);
  if (status == AMPC_RUN_FAILED) arena_out_of_memory(); /* the file is not the cause */
  if (!there && out->samples) return true;
  if (!there) {
    fail(l, E604, span, "%s cannot be opened, so its %s unknown: %s", path,
         format->known ? "number of samples is" : "shape is", strerror(errno));
    diag_help(
        l->c,
        "`%s(path, %s)` compiles without the file; --data-dir=DIR sets the root of data paths",
        format->name, format->known ? "..., samples=1000" : "shape=[28, 28], dtype=u8");
  } else if (!status) {
    out->dtype = header.dtype;
    out->rank = header.rank;
    memcpy(out->dim, header.dim, sizeof out->dim);
    out->samples = header.samples;
    return true;
  } else {
    fail(l, E604, span, "%s", ampc_last_error());
  }
  l->c->cannot_read = true;
  return false;
}

/* ---- sources ---- */

bool has_file(const ampc_source *s)
{
  const ampc_format *format = ampc_format_of(s->kind);
  return format && format->probe;
}

bool is_given(const ampc_source *s)
{
  return s->kind == AMPC_SOURCE_ARGUMENT || s->kind == AMPC_SOURCE_GIVEN;
}

/* Checks that all sources of a block have the same length, since they advance together. If the
 * length of a file is unknown (shape= without samples=), the loader compares. */
static bool count_samples(Lower *l, const ampc_source *s, Span span)
{
  Run *run = l->run;
  int64_t first, count;
  if (!s->samples) return true;
  ampc_source_part(s, s->samples, &first, &count);
  if (count < 1)
    return refuse(l, E605, span, "this part of %lld samples is empty", (long long)s->samples);
  if (run->samples && run->samples != count) {
    fail(l, E605, span, "sources of one block differ in length: %lld and %lld samples",
         (long long)run->samples, (long long)count);
    diag_note(l->c, run->samples_span, "the other one");
    l->c->cannot_read = l->c->cannot_read || has_file(s);
    return false;
  }
  run->samples = count;
  run->samples_span = diag_user_span(l->c, span);
  return true;
}

bool has_labels(Lower *l, const ampc_source *s, const char *what, Span span)
{
  if (!s->rank && dtype_is_integer(s->dtype)) return true;
  fail(l, E209, span, "`%s` needs one whole number a sample; a sample is %s%s", what,
       ir_dtype_name(s->dtype), ir_sizes_text(l->arena, s->dim, s->rank));
  const char *help = strcmp(what, "balance") == 0
                         ? "`balance` is for classes, which `classes=true` reads from names"
                         : "`classes=true` reads names, `dtype=i64` whole numbers";
  return s->kind == AMPC_SOURCE_CSV && !s->rank && diag_help(l->c, "%s", help);
}

/* Checks that the samples of the block's sources stay together. */
static bool same_order(Lower *l, const ampc_source *s, Span span)
{
  const Run *run = l->run;
  uint32_t first = l->g->blocks.at[run->first].first_source;
  if (s->stratify && !has_labels(l, s, "stratify", span)) return false;
  for (uint32_t i = 0; i < run->n_sources; i++) {
    const ampc_source *o = &l->g->sources.at[first + i];
    if (s->stratify && o->stratify)
      return refuse(l, E209, span, "two sources of one block have `stratify`");
    bool same = s->drawn == o->drawn && s->part_seed == o->part_seed &&
                (!s->drawn || (s->part_begin == o->part_begin && s->part_end == o->part_end));
    if (!same)
      return refuse(l, E605, span,
                    "sources of one block differ in `part_seed` or `part`, so their samples would "
                    "not belong together: give all of them the same");
  }
  return true;
}

/* Adds a source. Other variants use the sources that the first one declares, in the same order. */
static Datum add_source(Lower *l, const ampc_source *s, Span span)
{
  Run *run = l->run;
  uint32_t first = l->g->blocks.at[run->first].first_source;
  if (run->n_sources &&
      (l->g->sources.at[first].kind == AMPC_SOURCE_GIVEN) != (s->kind == AMPC_SOURCE_GIVEN))
    return fail(l, E605, span,
                "a program gives some samples of this block, but not all: use "
                "`given` for all its sources, or for none");
  if (!same_order(l, s, span) || !count_samples(l, s, span) || (l->look && !look_at(l, s)))
    return d_of(D_error);
  uint32_t index = l->g->blocks.at[run->first].first_source + run->n_sources++;
  if (index == l->g->sources.n) vec_push(l->arena, &l->g->sources, *s);
  return append(l, span, OP_source, NULL, 0, ATTRS({"index", {.i = index}}));
}

/* Checks that a `data` block calls the source; train and eval blocks get their batches from it. */
static bool in_source(Lower *l, Span span, const char *name)
{
  if (l->run && l->in_source) return true;
  fail(l, E210, span, "`%s` stands in `data` blocks only", name);
  if (l->c->options.n_hints)
    diag_help(l->c,
              "an expression can read data: write `%s(...)[0:4]` without assigning it to a name",
              name);
  return false;
}

/* Reads part=[0.0, 0.9]: a range of the samples, as fractions. The default is all samples. Then
 * part_seed, the seed of their order, and `stratify`. */
static bool source_part(Lower *l, Datum list, Span span, ampc_source *s)
{
  Datum part = list.as.list[0], drawn = list.as.list[1];
  s->drawn = drawn.kind != D_none;
  s->part_seed = s->drawn ? (uint64_t)drawn.as.integer : 0;
  s->stratify = list.as.list[2].as.truth;
  if (s->stratify && !s->drawn)
    return refuse(l, E209, span, "`stratify` needs `part_seed`, which draws the order of samples");
  s->part_begin = 0;
  s->part_end = 1;
  if (part.kind == D_none) return true;
  if (part.kind != D_list || part.n != 2 || !d_is_number(part.as.list[0]) ||
      !d_is_number(part.as.list[1]))
    return refuse(l, E209, span, "`part` needs [begin, end], got %s", d_kind_text(l, part));
  s->part_begin = d_number(part.as.list[0]);
  s->part_end = d_number(part.as.list[1]);
  if (s->part_begin >= 0 && s->part_begin < s->part_end && s->part_end <= 1) return true;
  return refuse(l, E209, span, "`part` is %s; it needs 0.0 <= begin < end <= 1.0", d_text(l, part));
}

/* Reads `shape`, `dtype` and `samples`, for a file that need not exist. The default type is u8. */
static bool given_shape(Lower *l, Datum shape, Datum dtype, Datum samples, Span span,
                        ampc_source *s)
{
  s->dtype = AMPC_U8;
  s->rank = 0;
  if (!want_sizes(l, shape, span, "`shape`", s->dim, &s->rank)) return false;
  if (s->rank >= MAX_RANK)
    return refuse(l, E209, span, "`shape` leaves no axis for the batch: at most %d sizes",
                  MAX_RANK - 1);
  for (uint32_t i = 0; i < s->rank; i++)
    if (s->dim[i] < 1) return refuse(l, E209, span, "`shape` has a size below 1");
  s->samples = samples.kind == D_none ? 0 : samples.as.integer;
  return dtype.kind == D_none || want_dtype(l, dtype, span, "`dtype`", &s->dtype);
}

/* Checks that the format can convert its elements to `type`. */
static bool gives_type(Lower *l, const ampc_format *format, DType type, Span span)
{
  Text known = text_new(l->arena);
  for (uint32_t i = 0; i < format->n_types; i++) {
    if (format->types[i] == type) return true;
    const char *before = i == 0 ? "" : i + 1 < format->n_types ? ", " : " and ";
    text_printf(&known, "%s%s", before, ir_dtype_name(format->types[i]));
  }
  return refuse(l, E209, span, "%s reads %s, not %s", format->name, known.at, ir_dtype_name(type));
}

/* Returns the number of a call in the text. Each call has its own stream of random numbers. */
static uint64_t call_site(Lower *l, Span span)
{
  span = diag_user_span(l->c, span);
  for (uint32_t i = 0; i < l->call_sites.n; i++)
    if (l->call_sites.at[i].start == span.start) return i;
  vec_push(l->arena, &l->call_sites, span);
  return l->call_sites.n - 1;
}

/* Ends lines of a template by \r, because an argument is one line. */
static const char *on_one_line(Lower *l, const char *text)
{
  char *line = arena_strdup(l->arena, text);
  for (char *at = line; (at = strchr(at, '\n'));) *at = '\r';
  return line;
}

/* Adds one line to ampc_source.args, or one line for each element of a list. */
static bool add_argument(Lower *l, Text *to, const char *name, Datum value, Span span)
{
  if (value.kind == D_list) {
    for (uint32_t i = 0; i < value.n; i++)
      if (!add_argument(l, to, name, value.as.list[i], span)) return false;
    return true;
  }
  bool text = value.kind == D_str;
  if (!text && value.kind != D_bool && value.kind != D_dtype && !d_is_number(value))
    return refuse(l, E209, span, "`%s` needs text or numbers, got %s", name, d_kind_text(l, value));
  if (text && strcmp(name, "template") == 0)
    value.as.text = on_one_line(l, value.as.text);
  else if (text && strpbrk(value.as.text, "\n\r"))
    return refuse(l, E209, span, "`%s` has more than one line", name);
  if (value.kind == D_bool) value = d_int(value.as.truth);
  text_printf(to, "%s=%s\n", name, text ? value.as.text : d_text(l, value));
  return true;
}

/* Converts [["key", "x"], ["random", true], ...] of the `def` to text for the format. */
static bool source_arguments(Lower *l, Datum list, Span span, ampc_source *s)
{
  Text text = text_new(l->arena);
  for (uint32_t i = 0; i < list.n; i++) {
    const Datum *pair = list.as.list[i].as.list;
    if (!add_argument(l, &text, pair[0].as.text, pair[1], span)) return false;
  }
  s->args = list.n ? text.at : NULL;
  return true;
}

/* Reads the number of samples for formats whose arguments determine type and shape. It comes from
 * the file, or from `samples` if the file does not exist yet. */
static bool known_header(Lower *l, const ampc_format *format, Datum samples, Span span,
                         ampc_source *s)
{
  ampc_header h;
  if (format->probe(format, NULL, s->args, &h))
    return refuse(l, E209, span, "%s", ampc_last_error());
  s->dtype = h.dtype;
  s->rank = h.rank;
  memcpy(s->dim, h.dim, sizeof s->dim);
  s->samples = samples.kind == D_none ? 0 : samples.as.integer;
  return read_header(l, format, span, s) && read_classes(l, format, span, s);
}

/* Determines shape, type and number of samples, from the arguments or from the file's header. */
static bool file_shape(Lower *l, const ampc_format *format, Args *args, ampc_source *s)
{
  Span span = args->span;
  if (format->known) return known_header(l, format, ARG(4), span, s);
  if (ARG(2).kind != D_none)
    return given_shape(l, ARG(2), ARG(3), ARG(4), span, s) && gives_type(l, format, s->dtype, span);
  if (ARG(3).kind == D_none && ARG(4).kind == D_none) return read_header(l, format, span, s);
  return refuse(
      l, E205, span,
      "`dtype` and `samples` need `shape`: without `shape` the file's header sets all three");
}

/* Makes all rows of a file one sample: a window. */
static bool take_whole(Lower *l, const ampc_format *format, Span span, ampc_source *s)
{
  if (!format->locate)
    return refuse(l, E209, span,
                  "%s reads samples one by one, but arguments of this block differ in their first "
                  "size, so each needs all of its numbers in one array: write an NPY file",
                  format->name);
  if (s->rank + 2 > MAX_RANK)
    return refuse(l, E209, span, "%s has %u axes; an argument that is read whole has at most %d",
                  s->path, s->rank + 1, MAX_RANK - 1);
  s->args = arena_printf(l->arena, "%swindow=%lld\nstride=%lld\n", s->args ? s->args : "",
                         (long long)s->samples, (long long)s->samples);
  memmove(s->dim + 1, s->dim, s->rank++ * sizeof *s->dim);
  s->dim[0] = s->samples;
  s->samples = 1;
  return true;
}

/* Runs _file(format, path, shape, dtype, samples, part, arguments), for any format of files. */
static Datum run_file(Lower *l, Args *args)
{
  const ampc_format *format = ampc_format_find(ARG(0).as.text);
  if (!format || !format->probe)
    library_broken("sources.amp", "AMPC_FORMATS has no format of files ", ARG(0).as.text);
  ampc_source s = {.kind = format->kind, .path = ARG(1).as.text};
  Span span = args->span;
  if (!in_source(l, span, format->name) || !source_part(l, ARG(5), span, &s) ||
      !source_arguments(l, ARG(6), span, &s))
    return d_of(D_error);
  if (format->draws) s.stream = call_site(l, span) << 40; /* the low 40 bits are for epochs */
  bool good =
      file_shape(l, format, args, &s) && (!l->sizes->whole || take_whole(l, format, span, &s));
  return good ? add_source(l, &s, span) : d_of(D_error);
}

/* Checks that the number of all elements of a synthetic source fits in 64 bits. */
static bool countable(Lower *l, const ampc_source *s, Span span)
{
  int64_t n = s->samples;
  for (uint32_t i = 0; i < s->rank; i++)
    if (__builtin_mul_overflow(n, s->dim[i], &n))
      return refuse(l, E209, span, "synthetic of %lld samples has more than 2^63 numbers",
                    (long long)s->samples);
  return true;
}

/* Checks a bound, which is a value of the type, or one past the largest. Integers are generated as
 * doubles, which represent them exactly up to 2^53. */
static bool bound_fits(Lower *l, const ampc_source *s, const char *what, double bound, Span span)
{
  static const double wholes[] = {
      [AMPC_I32] = 0x1p31, [AMPC_I64] = 0x1p53, [AMPC_U8] = 256, [AMPC_BOOL] = 2};
  bool real = dtype_is_float(s->dtype), sign = s->dtype != AMPC_U8 && s->dtype != AMPC_BOOL;
  double most = real ? ampc_type_of(s->dtype)->greatest : wholes[s->dtype];
  double least = sign ? -most : 0;
  if ((real || bound == floor(bound)) && bound >= least && bound <= most) return true;
  return refuse(l, E209, span,
                "`%s` of synthetic %s is %.17g; it must be a %snumber from %.9g to %.9g", what,
                ir_dtype_name(s->dtype), bound, real ? "" : "whole ", least, most);
}

/* Reads low= and high=, which bound the numbers: [low, high). Without these, floats have a standard
 * normal distribution; integers need both. */
static bool bounds(Lower *l, Datum low, Datum high, Span span, ampc_source *s)
{
  if (low.kind == D_none && high.kind == D_none) {
    if (dtype_is_float(s->dtype)) return true;
    return refuse(l, E205, span, "synthetic %s needs `low` and `high`", ir_dtype_name(s->dtype));
  }
  if (!want_float(l, low.kind == D_none ? d_int(0) : low, span, "`low`", &s->low) ||
      !want_float(l, high, span, "`high`", &s->high) || !bound_fits(l, s, "low", s->low, span) ||
      !bound_fits(l, s, "high", s->high, span))
    return false;
  if (s->low < s->high) return true;
  return refuse(l, E209, span, "synthetic numbers in [%g, %g)", s->low, s->high);
}

/* Runs _synthetic(n, shape, dtype, low, high, seed, part). */
static Datum run_synthetic(Lower *l, Args *args)
{
  ampc_source s = {.kind = AMPC_SOURCE_SYNTHETIC, .path = "synthetic"};
  Span span = args->span;
  if (!in_source(l, span, "synthetic") || !source_part(l, ARG(6), span, &s) ||
      !given_shape(l, ARG(1), ARG(2), ARG(0), span, &s) || !bounds(l, ARG(3), ARG(4), span, &s))
    return d_of(D_error);
  if (!countable(l, &s, span)) return d_of(D_error);
  s.stream = call_site(l, span) << 32 ^ (uint64_t)ARG(5).as.integer;
  return add_source(l, &s, span);
}

/* ---- samples of the calling program ---- */

/* Checks that the name can be the name of an argument in C, and that no other source of the block
 * has it. */
static bool names_argument(Lower *l, const char *name, Span span)
{
  const Run *run = l->run;
  uint32_t first = l->g->blocks.at[run->first].first_source;
  bool good = *name && !(*name >= '0' && *name <= '9');
  for (const char *c = name; *c; c++) good = good && (*c == '_' || isalnum((unsigned char)*c));
  if (!good)
    return refuse(l, E209, span,
                  "the name of `given` is \"%s\"; it needs letters, digits and `_`, and no digit "
                  "at the beginning",
                  name);
  for (uint32_t i = 0; i < run->n_sources; i++)
    if (strcmp(l->g->sources.at[first + i].path, name) == 0)
      return refuse(l, E209, span, "two sources of this block have the name \"%s\"", name);
  return true;
}

/* Runs _given(name, shape, dtype, samples). */
static Datum run_given(Lower *l, Args *args)
{
  ampc_source s = {.kind = AMPC_SOURCE_GIVEN, .path = ARG(0).as.text, .part_end = 1};
  Span span = args->span;
  if (!in_source(l, span, "given") || !names_argument(l, s.path, span) ||
      !given_shape(l, ARG(1), ARG(2), ARG(3), span, &s))
    return d_of(D_error);
  if (!l->look) return add_source(l, &s, span);
  return fail(l, E210, span, "the samples of `given` are not known: a program gives them");
}

const Native source_natives[] = {
    {"file", 7, 7, .internal = true, .run = run_file},
    {"synthetic", 7, 7, .internal = true, .run = run_synthetic},
    {"given", 4, 4, .internal = true, .run = run_given},
    {0},
};
