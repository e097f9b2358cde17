/* Writes results of `amp infer` as PNG: a grid of all samples or one file per sample. The grid is
 * as in torchvision's make_grid: 8 columns, 2 black pixels around each picture, no border around a
 * single picture. As in save_image, a number v becomes the byte floor(255 x + 0.5) with x = (v -
 * low) / (high - low). u8 is not converted. Numbers outside the range are clipped, and a warning
 * reports them. */
#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "infer.h"
#include "runtime/base/convert.h"
#include "runtime/data/formats/picture_write.h"
#include "runtime/plan/types.h"

enum { COLUMNS = 8, GAP = 2 };
#define MOST_PIXELS ((int64_t)1 << 27) /* like the limit for reading pictures */

struct Pictures {
  const char *path;
  const ampc_output_desc *result;
  bool real64, folder, ranged;
  double low, high;
  int64_t columns, height, width;
  int channels;
  uint8_t *pixels;     /* all samples of a grid, or one sample; [height, width, channels] each */
  int64_t n, room;     /* samples so far; capacity of `pixels` */
  int64_t numbers;     /* floats so far */
  int64_t beyond, nan; /* beyond: number of values outside the range; nan: number of NaN */
  double least, most;  /* smallest and largest of the values outside the range */
};

static ampc_status no_memory(void)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for pictures");
}

/* ---- the beginning ---- */

static ampc_status no_pictures(const Pictures *p, const char *why)
{
  const ampc_output_desc *o = p->result;
  char type[AMPC_TYPE_ROOM];
  return ampc_fail(AMPC_BAD_USAGE,
                   "--png %s: %s is %s%s; pictures are float or u8[N, 1, height, width], "
                   "[N, 3, height, width] or [N, height, width]",
                   p->path, o->name, ampc_type_text(type, o->dtype, o->rank, o->dim), why);
}

static ampc_status check_shape(Pictures *p)
{
  const ampc_output_desc *o = p->result;
  bool number = ampc_is_float(o->dtype) || o->dtype == AMPC_U8;
  bool colour = o->rank == 4 && (o->dim[1] == 1 || o->dim[1] == 3);
  if (!number || !(colour || o->rank == 3)) return no_pictures(p, "");
  p->channels = o->rank == 4 ? (int)o->dim[1] : 1;
  p->height = o->dim[o->rank - 2];
  p->width = o->dim[o->rank - 1];
  if (p->height > PICTURE_LONGEST || p->width > PICTURE_LONGEST ||
      p->height * p->width > MOST_PIXELS)
    return no_pictures(p, ", of more than 2^27 pixels or with a side of more than 1000000");
  return AMPC_OK;
}

static ampc_status check(Pictures *p)
{
  const ampc_output_desc *o = p->result;
  size_t n = strlen(p->path);
  ampc_status status = check_shape(p);
  if (status) return status;
  if (p->ranged && o->dtype == AMPC_U8)
    return ampc_fail(AMPC_BAD_USAGE, "--range: %s is u8, from 0 to 255 already", o->name);
  if (!p->folder && (n < 5 || strcmp(p->path + n - 4, ".png") != 0))
    return ampc_fail(AMPC_BAD_USAGE,
                     "--png %s: expected a name that ends in .png, or in / for one file per sample",
                     p->path);
  return AMPC_OK;
}

static ampc_status make_folder(const char *path)
{
  if (mkdir(path, 0777) == 0 || errno == EEXIST) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "cannot create folder %s: %s", path, strerror(errno));
}

static bool is_folder(const char *path)
{
  struct stat info;
  size_t n = strlen(path);
  return (n && path[n - 1] == '/') || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

ampc_status pictures_begin(const InferCommand *cmd, const ampc_output_desc *result, bool real64,
                           const char *path, Pictures **out)
{
  Pictures *p = calloc(1, sizeof *p);
  if (!p) return no_memory();
  *p = (Pictures){.path = path,
                  .result = result,
                  .real64 = real64,
                  .folder = is_folder(path),
                  .ranged = cmd->ranged,
                  .low = cmd->ranged ? cmd->low : 0,
                  .high = cmd->ranged ? cmd->high : 1,
                  .columns = cmd->columns ? cmd->columns : COLUMNS,
                  .least = INFINITY,
                  .most = -INFINITY};
  ampc_status status = check(p);
  if (!status) status = p->folder ? make_folder(path) : file_check_writable(path, &file_png);
  if (status) {
    free(p);
  } else {
    *out = p;
  }
  return status;
}

/* ---- samples ---- */

static uint8_t byte_of(Pictures *p, const void *samples, int64_t i)
{
  double v = number_load(p->result->dtype, p->real64, samples, i);
  if (p->result->dtype == AMPC_U8) return (uint8_t)v;
  p->numbers++;
  if (isnan(v)) {
    p->nan++;
    return 0;
  }
  if (v < p->low || v > p->high) {
    p->beyond++;
    p->least = fmin(p->least, v);
    p->most = fmax(p->most, v);
  }
  double x = (v - p->low) / (p->high - p->low);
  return (uint8_t)(255 * fmin(fmax(x, 0), 1) + 0.5);
}

/* Converts sample `from` of a batch from planes of channels to interleaved channels. */
static void put_sample(Pictures *p, const void *samples, int64_t from, uint8_t *to)
{
  int64_t plane = p->height * p->width;
  for (int64_t i = 0; i < plane; i++)
    for (int c = 0; c < p->channels; c++)
      *to++ = byte_of(p, samples, (from * p->channels + c) * plane + i);
}

static ampc_status save(const char *path, const uint8_t *pixels, int64_t width, int64_t height,
                        int channels)
{
  FileWriter file;
  ampc_status status = file_begin(&file, path, &file_png);
  if (status) return status;
  status = picture_write_png(&file, pixels, width, height, channels);
  if (!status) status = file_finish(&file, false);
  file_abandon(&file);
  return status;
}

static ampc_status save_one(Pictures *p)
{
  char name[32];
  snprintf(name, sizeof name, "%06lld.png", (long long)p->n);
  char *path = file_join(p->path, name);
  ampc_status status = path ? save(path, p->pixels, p->width, p->height, p->channels) : no_memory();
  free(path);
  return status;
}

/* Makes space for one more sample. A folder needs space for only one sample at a time. */
static ampc_status make_room(Pictures *p)
{
  int64_t size = p->height * p->width * p->channels, room = p->room ? 2 * p->room : 1;
  if (p->room > (p->folder ? 0 : p->n)) return AMPC_OK;
  uint8_t *more = realloc(p->pixels, (size_t)(room * size));
  if (!more) return no_memory();
  p->pixels = more;
  p->room = room;
  return AMPC_OK;
}

ampc_status pictures_add(Pictures *p, const void *samples, int64_t n)
{
  int64_t size = p->height * p->width * p->channels;
  ampc_status status = AMPC_OK;
  if (!p->folder && (p->n + n) * p->height * p->width > MOST_PIXELS)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--png %s: a grid has at most %lld pictures of %lld x %lld pixels: use fewer, "
                     "or one file per sample: --png FOLDER/",
                     p->path, (long long)(MOST_PIXELS / (p->height * p->width)),
                     (long long)p->width, (long long)p->height);
  for (int64_t i = 0; i < n && !status; i++) {
    status = make_room(p);
    if (status) return status;
    put_sample(p, samples, i, p->pixels + (p->folder ? 0 : p->n * size));
    if (p->folder) status = save_one(p);
    p->n++;
  }
  return status;
}

/* ---- the end ---- */

/* Copies sample i to its position in a grid that is `width` pixels wide. */
static void place(const Pictures *p, int64_t i, int64_t columns, int64_t width, uint8_t *grid)
{
  int64_t row = p->width * p->channels;
  int64_t x = GAP + i % columns * (p->width + GAP), y = GAP + i / columns * (p->height + GAP);
  const uint8_t *from = p->pixels + i * p->height * row;
  for (int64_t k = 0; k < p->height; k++)
    memcpy(grid + ((y + k) * width + x) * p->channels, from + k * row, (size_t)row);
}

static ampc_status save_grid(const Pictures *p)
{
  int64_t columns = p->n < p->columns ? p->n : p->columns, rows = (p->n + columns - 1) / columns;
  int64_t width = columns * (p->width + GAP) + GAP, height = rows * (p->height + GAP) + GAP;
  if (p->n == 1) return save(p->path, p->pixels, p->width, p->height, p->channels);
  if (width > PICTURE_LONGEST || height > PICTURE_LONGEST)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--png %s: %lld columns make %lld x %lld pixels, but a side has at most %d: "
                     "change --columns",
                     p->path, (long long)columns, (long long)width, (long long)height,
                     PICTURE_LONGEST);
  uint8_t *grid = calloc((size_t)(width * height), (size_t)p->channels);
  if (!grid) return no_memory();
  for (int64_t i = 0; i < p->n; i++) place(p, i, columns, width, grid);
  ampc_status status = save(p->path, grid, width, height, p->channels);
  free(grid);
  return status;
}

/* Warns of NaN and of numbers outside the range, because a picture does not show them. */
static void warn(const Pictures *p)
{
  double all = (double)p->numbers;
  if (p->nan)
    fprintf(stderr, "warning: --png %s: %lld numbers (%.2g %%) are nan and become black\n", p->path,
            (long long)p->nan, 100 * (double)p->nan / all);
  if (!p->beyond) return;
  fprintf(stderr, "warning: --png %s: %.2g %% of the numbers are outside %g to %g and are clipped",
          p->path, 100 * (double)p->beyond / all, p->low, p->high);
  if (p->least >= -1 && p->most <= 1 && !p->ranged) {
    fprintf(stderr, ": use --range=-1,1 for the output of a tanh\n");
  } else {
    fprintf(stderr, "; they range from %g to %g\n", p->least, p->most);
  }
}

ampc_status pictures_end(Pictures *p, ampc_status status)
{
  if (!status && !p->folder && p->n) status = save_grid(p);
  if (!status) warn(p);
  free(p->pixels);
  free(p);
  return status;
}
