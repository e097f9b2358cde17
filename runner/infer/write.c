/* Writes results of `amp infer`: lines of text, NPY files, pictures (pictures.c) or the most
 * probable classes; and the names of the samples. Rows that only pad the last batch are left
 * out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "infer.h"
#include "runtime/base/convert.h"
#include "common/file.h"
#include "common/shown.h"
#include "runtime/plan/types.h"

enum { DEFAULT_TOP = 5, NAME_ROOM = 1024 };

typedef struct Result {
  const ampc_output_desc *desc;
  bool rows;         /* its first axis counts samples */
  int64_t row, size; /* row: elements of a row, or of all if !rows; size: bytes of an element */
  char *bytes;       /* the result of a batch */
  FileWriter file;   /* file of --output, if `open` */
  bool open;
  Pictures *pictures; /* NULL: no --png */
} Result;

struct InferWriter {
  ampc_runtime *rt;
  const ampc_program *program;
  const InferCommand *cmd;
  const ampc_batches *data; /* NULL: the block has no arguments */
  FileWriter sample_names;  /* file of --names */
  bool names_open;
  Result *at;
  uint32_t n;
  int64_t batches, samples; /* samples: written so far */
  uint32_t top;             /* 0: print all numbers */
  char *classes, **names;   /* names point into classes; NULL: the names are not known */
  int64_t n_names;
};

/* ---- opening ---- */

static ampc_status no_memory(void)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for results");
}

/* Opens the results. Without data there are no samples; each result is then printed whole. */
static ampc_status open_results(InferWriter *w)
{
  const ampc_program *p = w->program;
  const ampc_block *b = &p->blocks[0];
  w->at = calloc(p->n_outputs + 1, sizeof *w->at);
  if (!w->at) return no_memory();
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    const ampc_output_desc *o = &p->outputs[i];
    Result *r = &w->at[w->n++];
    int64_t all = ampc_output_elements(o);
    *r = (Result){.desc = o,
                  .rows = b->n_sources && o->rank && o->dim[0] == b->batch,
                  .row = all,
                  .size = ampc_element_size(p, o->dtype)};
    if (r->rows) r->row = all / b->batch;
    r->bytes = malloc((size_t)(all * r->size) + 1);
    if (!r->bytes) return no_memory();
    if (r->rows || w->batches == 1) continue;
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s has no axis of samples, so the data must fit in one batch of %lld; these "
                     "are %lld batches",
                     o->name, (long long)b->batch, (long long)w->batches);
  }
  return AMPC_OK;
}

static ampc_status write_header(Result *r, bool real64, int64_t rows, bool again)
{
  char head[NPY_HEADER];
  npy_header(r->desc->dtype, real64, rows, r->rows, r->desc->rank, r->desc->dim, head);
  return again ? file_put(&r->file, 0, head, NPY_HEADER) : file_add(&r->file, head, NPY_HEADER);
}

static Result *result_for(InferWriter *w, const char *name)
{
  for (uint32_t i = 0; i < w->n; i++)
    if (name ? strcmp(w->at[i].desc->name, name) == 0 : w->n == 1) return &w->at[i];
  return NULL;
}

static ampc_status open_output(InferWriter *w, const InferOutput *o)
{
  Result *r = result_for(w, o->name);
  const char *option = o->png ? "png" : "output";
  size_t n = strlen(o->file);
  if (!r && o->name)
    return ampc_fail(AMPC_BAD_USAGE, "--%s %s=%s: there is no result %s; the first is %s", option,
                     o->name, o->file, o->name, w->at[0].desc->name);
  if (!r)
    return ampc_fail(AMPC_BAD_USAGE, "--%s %s: there are %u results: write NAME=FILE, as %s=%s",
                     option, o->file, w->n, w->at[0].desc->name, o->file);
  if (o->png ? r->pictures != NULL : r->open)
    return ampc_fail(AMPC_BAD_USAGE, "--%s %s: %s is written to another file already", option,
                     o->file, r->desc->name);
  if (o->png) return pictures_begin(w->cmd, r->desc, w->program->real64, o->file, &r->pictures);
  if (n < 5 || strcmp(o->file + n - 4, ".npy") != 0)
    return ampc_fail(AMPC_BAD_USAGE, "--output %s: expected a name that ends in .npy", o->file);
  ampc_status status = file_begin(&r->file, o->file, &file_npy);
  r->open = !status;
  return status ? status : write_header(r, w->program->real64, 0, false);
}

/* Gets the names of the file of --classes, or else those that the weights have. */
static ampc_status get_classes(InferWriter *w, int64_t *out_size)
{
  if (w->cmd->classes) return file_read(FILE_CLASSES, w->cmd->classes, &w->classes, out_size);
  const char *names = w->cmd->known_classes;
  w->classes = names ? strdup(names) : NULL;
  *out_size = w->classes ? (int64_t)strlen(w->classes) : 0;
  return names && !w->classes ? no_memory() : AMPC_OK;
}

/* Reads one name per line; the newline of the last one may be missing. */
static ampc_status read_classes(InferWriter *w)
{
  int64_t size = 0, n = 0;
  ampc_status status = get_classes(w, &size);
  if (status || !w->classes) return status;
  for (int64_t i = 0; i < size; i++) n += w->classes[i] == '\n';
  w->names = calloc((size_t)n + 2, sizeof *w->names);
  if (!w->names) return no_memory();
  for (char *line = w->classes; *line;) {
    char *end = strchrnul(line, '\n'), *next = *end ? end + 1 : end;
    *end = 0;
    if (end > line && end[-1] == '\r') end[-1] = 0;
    w->names[w->n_names++] = line;
    line = next;
  }
  return AMPC_OK;
}

/* Checks --top, which needs one float result with the classes along its last axis. */
static ampc_status check_top(InferWriter *w)
{
  const InferCommand *cmd = w->cmd;
  const Result *r = &w->at[0];
  const ampc_output_desc *o = r->desc;
  bool fits = w->n == 1 && r->rows && o->rank == 2 && ampc_is_float(o->dtype);
  if (!fits)
    return ampc_fail(
        AMPC_BAD_USAGE,
        "--top and --classes need one result float[N, classes]; %s returns %u, the first "
        "of rank %u and type %s",
        w->program->blocks[0].name, w->n, o->rank, ampc_dtype_name(o->dtype));
  if (w->names && w->n_names != o->dim[1] && cmd->classes)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld names, %s has %lld classes", cmd->classes,
                     (long long)w->n_names, o->name, (long long)o->dim[1]);
  if (w->top > o->dim[1]) w->top = (uint32_t)o->dim[1];
  return AMPC_OK;
}

static ampc_status open_writer(InferWriter *w)
{
  const InferCommand *cmd = w->cmd;
  w->top = cmd->top ? cmd->top : cmd->classes ? DEFAULT_TOP : 0;
  ampc_status status = read_classes(w);
  if (!status) status = open_results(w);
  if (!status && w->top) status = check_top(w);
  for (uint32_t i = 0; i < cmd->n_outputs && !status; i++)
    status = open_output(w, &cmd->outputs[i]);
  if (!status && cmd->names) {
    status = file_begin(&w->sample_names, cmd->names, &file_lines);
    w->names_open = !status;
  }
  return status;
}

ampc_status infer_write_begin(ampc_runtime *rt, const InferCommand *cmd, const ampc_batches *data,
                              int64_t batches, InferWriter **out)
{
  InferWriter *w = calloc(1, sizeof *w);
  if (!w) return no_memory();
  *w = (InferWriter){
      .rt = rt, .program = ampc_program_of(rt), .cmd = cmd, .data = data, .batches = batches};
  ampc_status status = open_writer(w);
  *out = status ? NULL : w;
  return status ? infer_write_end(w, status) : AMPC_OK;
}

/* ---- a batch ---- */

/* Returns the name of a row's sample, with control characters escaped; "" if it has no name. */
static const char *name_of_row(const InferWriter *w, int64_t row, char shown[NAME_ROOM])
{
  char name[NAME_ROOM];
  *shown = 0;
  if (!w->data || !ampc_data.sample_name(w->data, w->samples + row, name, sizeof name))
    return shown;
  return ampc_show(shown, NAME_ROOM, name, "");
}

/* Returns the name of class i if the result distinguishes `n` classes and all have names; else
 * "". */
static const char *class_name(const InferWriter *w, int64_t n, int64_t i, char shown[NAME_ROOM])
{
  if (!w->names || n != w->n_names) return "";
  return ampc_show(shown, NAME_ROOM, w->names[i], "");
}

/* Prints a number, or the name of its class: i64 exactly; others as double, with nine digits, which
 * identify any f32. */
static void put_number(const InferWriter *w, const Result *r, int64_t i)
{
  if (r->desc->dtype == AMPC_I64) {
    char shown[NAME_ROOM];
    int64_t v = ((const int64_t *)(const void *)r->bytes)[i];
    const char *name = r->row == 1 ? class_name(w, r->desc->classes, v, shown) : "";
    if (*name) fputs(name, stdout);
    if (!*name) printf("%lld", (long long)v);
    return;
  }
  double v = number_load(r->desc->dtype, w->program->real64, r->bytes, i);
  printf("%.*g", w->program->real64 ? 17 : 9, v);
}

/* Prints a row: "0.1 0.9"; "classify.1: 0.1 0.9" if there are several results; "cats/1.jpg: 0.1
 * 0.9" if the sample has a name. */
static void put_row(const InferWriter *w, const Result *r, int64_t row)
{
  char name[NAME_ROOM];
  if (r->rows && *name_of_row(w, row, name)) printf("%s: ", name);
  if (w->n > 1) printf("%s: ", r->desc->name);
  for (int64_t k = 0; k < r->row; k++) {
    if (k) putchar(' ');
    put_number(w, r, row * r->row + k);
  }
  putchar('\n');
}

/* Returns the class with the largest number that is not taken, the lowest one of equal numbers. NaN
 * counts as the smallest number. */
static int64_t next_best(const double *v, int64_t n, const bool *taken)
{
  int64_t best = -1;
  for (int64_t i = 0; i < n; i++) {
    if (taken[i]) continue;
    if (best < 0 || v[i] > v[best] || (isnan(v[best]) && !isnan(v[i]))) best = i;
  }
  return best;
}

static ampc_status put_top(const InferWriter *w, int64_t row)
{
  const Result *r = &w->at[0];
  int64_t n = r->row;
  double *v = malloc((size_t)n * sizeof *v);
  bool *taken = calloc((size_t)n, sizeof *taken);
  for (int64_t i = 0; i < n && v && taken; i++)
    v[i] = number_load(r->desc->dtype, w->program->real64, r->bytes, row * n + i);
  char sample[NAME_ROOM];
  name_of_row(w, row, sample);
  if (v && taken)
    printf("sample %lld%s%s\n", (long long)(w->samples + row), *sample ? ": " : "", sample);
  for (uint32_t k = 0; k < w->top && v && taken; k++) {
    int64_t i = next_best(v, n, taken);
    char shown[NAME_ROOM];
    const char *name = class_name(w, n, i, shown);
    taken[i] = true;
    printf("  %.6f  %lld%s%s\n", v[i], (long long)i, *name ? "  " : "", name);
  }
  ampc_status status = v && taken ? AMPC_OK : no_memory();
  free(v);
  free(taken);
  return status;
}

static ampc_status save_name(InferWriter *w, int64_t row)
{
  char name[NAME_ROOM];
  if (!*name_of_row(w, row, name))
    return ampc_fail(AMPC_BAD_USAGE,
                     "--names %s: samples of this data have no names; only pictures have names",
                     w->cmd->names);
  ampc_status status = file_add(&w->sample_names, name, (int64_t)strlen(name));
  return status ? status : file_add(&w->sample_names, "\n", 1);
}

/* Appends n elements to the file. Types that NumPy lacks are written as f32. */
static ampc_status save_rows(Result *r, int64_t n)
{
  if (*ampc_type_of(r->desc->dtype)->npy) return file_add(&r->file, r->bytes, n * r->size);
  float *wide = malloc((size_t)n * sizeof *wide + 1);
  if (!wide) return no_memory();
  convert_widen(r->desc->dtype, r->bytes, wide, n);
  ampc_status status = file_add(&r->file, wide, n * (int64_t)sizeof *wide);
  free(wide);
  return status;
}

static ampc_status take_result(InferWriter *w, Result *r, int64_t samples)
{
  int64_t all = ampc_output_elements(r->desc), batch = w->program->blocks[0].batch;
  if (!r->rows && samples != batch)
    return ampc_fail(
        AMPC_BAD_USAGE,
        "%s has no axis of samples, so it needs a full batch of %lld; the data have %lld",
        r->desc->name, (long long)batch, (long long)samples);
  ampc_status status = ampc_read(w->rt, r->desc->place, r->bytes, all * r->size);
  if (!status && r->open) status = save_rows(r, r->rows ? samples * r->row : all);
  if (!status && r->pictures)
    status = pictures_add(r->pictures, r->bytes, r->rows ? samples : r->desc->dim[0]);
  return status;
}

static ampc_status put_sample(InferWriter *w, int64_t row)
{
  ampc_status status = w->names_open ? save_name(w, row) : AMPC_OK;
  if (status || w->top) return status ? status : put_top(w, row);
  for (uint32_t i = 0; i < w->n && !w->cmd->n_outputs; i++)
    if (w->at[i].rows || row == 0) put_row(w, &w->at[i], row);
  return AMPC_OK;
}

ampc_status infer_write_batch(InferWriter *w, int64_t samples)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < w->n && !status; i++) status = take_result(w, &w->at[i], samples);
  for (int64_t row = 0; row < samples && !status; row++) status = put_sample(w, row);
  w->samples += samples;
  return status;
}

/* ---- the end ---- */

ampc_status infer_write_end(InferWriter *w, ampc_status status)
{
  for (uint32_t i = 0; i < w->n; i++) {
    Result *r = &w->at[i];
    if (r->open && !status) status = write_header(r, w->program->real64, w->samples, true);
    if (r->open && !status) status = file_finish(&r->file, false);
    if (r->open) file_abandon(&r->file);
    if (r->pictures) status = pictures_end(r->pictures, status);
    free(r->bytes);
  }
  if (w->names_open && !status) status = file_finish(&w->sample_names, false);
  if (w->names_open) file_abandon(&w->sample_names);
  free(w->at);
  free(w->names);
  free(w->classes);
  free(w);
  return status;
}
