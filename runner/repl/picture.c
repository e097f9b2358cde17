/* Draws images in the terminal. A character shows two pixels, one above the other: as an upper half
 * block in two colours, or without colours as one grey sign. */
#include "repl.h"
#include "runner/job/plot.h"
#include "runtime/plan/types.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum Ink { INK_grey, INK_256, INK_24bit } Ink;

typedef struct Picture {
  const HostTensor *t;
  int64_t n, h, w, channels;           /* n: images */
  int64_t image, row, column, channel; /* elements from one to the next */
  int64_t shown;                       /* images that are drawn, side by side */
  int width, height;                   /* of a drawn image, in pixels */
  double low, high;                    /* black and white */
} Picture;

/* A drawn pixel: the mean of those pixels of the image that it covers. */
typedef struct Pixel {
  double rgb[3]; /* 0 to 1 */
  bool bad;      /* one of them is not finite */
} Pixel;

static Ink ink(void)
{
  const char *no = getenv("NO_COLOR"), *colors = getenv("COLORTERM"), *term = getenv("TERM");
  if (!isatty(STDOUT_FILENO) || (no && *no)) return INK_grey;
  if (colors && (strcmp(colors, "truecolor") == 0 || strcmp(colors, "24bit") == 0))
    return INK_24bit;
  return term && strstr(term, "256color") ? INK_256 : INK_grey;
}

/* ---- shapes ---- */

static bool is_color(int64_t n)
{
  return n == 1 || n == 3;
}

/* Finds images in a shape: [h, w], [c, h, w] or [h, w, c] with 1 or 3 channels. An axis before
 * these counts images. */
static bool find_images(const HostTensor *t, Picture *out)
{
  uint32_t rank = t->rank;
  const int64_t *dim = t->dim + rank; /* dim[-1]: the last axis */
  *out = (Picture){.t = t, .n = 1, .channels = 1};
  if (rank < 2 || rank > 4 || !t->elements) return false;
  bool last = rank > 2 && is_color(dim[-1]), first = rank > 2 && !last && is_color(dim[-3]);
  out->channels = last ? dim[-1] : first ? dim[-3] : 1;
  out->h = dim[last ? -3 : -2];
  out->w = dim[last ? -2 : -1];
  out->column = last ? out->channels : 1;
  out->row = out->w * out->column;
  out->channel = last ? 1 : out->h * out->w;
  out->image = out->h * out->w * out->channels;
  if (rank == 4) out->n = last || first ? dim[-4] : dim[-3]; /* else: channels of the first */
  if (rank == 3 && !last && !first) out->n = dim[-3];
  return true;
}

/* Whether the shape is typical for images, unlike rows of features, tokens or classes. */
static bool is_likely(const Picture *p)
{
  enum { LEAST = 8, LONGEST = 4 };
  const HostTensor *t = p->t;
  bool numbers = ampc_is_float(t->dtype) || t->dtype == AMPC_U8;
  return numbers && p->h >= LEAST && p->w >= LEAST && p->h <= LONGEST * p->w &&
         p->w <= LONGEST * p->h;
}

/* Chooses the size: one pixel a column, but smaller if the terminal is too narrow or the image very
 * tall, and larger for a single small image. */
static void choose_size(Picture *p, int columns)
{
  enum { SMALL = 40, TALL = 200 };
  double w = (double)p->w, h = (double)p->h;
  double times = p->n > 1 ? 1 : floor(fmin(columns / w, SMALL / h));
  double scale = fmin(fmax(times, 1), fmin(columns / w, TALL / h));
  p->width = (int)fmax(1, w * scale + 0.5);
  p->height = (int)fmax(1, h * scale + 0.5);
  p->shown = (columns + 1) / (p->width + 1);
  if (p->shown > p->n) p->shown = p->n;
}

/* ---- pixels ---- */

static double element(const Picture *p, int64_t image, int64_t y, int64_t x, int64_t channel)
{
  return p->t->at[image * p->image + y * p->row + x * p->column + channel * p->channel];
}

static void find_range(Picture *p)
{
  p->low = INFINITY;
  p->high = -INFINITY;
  for (int64_t i = 0; i < p->shown * p->image; i++) {
    if (!isfinite(p->t->at[i])) continue;
    p->low = fmin(p->low, p->t->at[i]);
    p->high = fmax(p->high, p->t->at[i]);
  }
}

/* Returns the mean of `rows` drawn pixels of an image, from (x, y) down. */
static Pixel pixel(const Picture *p, int64_t image, int y, int x, int rows)
{
  Pixel out = {.bad = false};
  int64_t top = y * p->h / p->height, end = (y + rows) * p->h / p->height, n = 0;
  int64_t left = x * p->w / p->width, right = (x + 1) * p->w / p->width;
  if (end > p->h) end = p->h;
  if (end <= top) end = top + 1;
  if (right <= left) right = left + 1;
  for (int64_t i = top; i < end; i++)
    for (int64_t k = left; k < right; k++, n++)
      for (int c = 0; c < 3; c++) {
        double v = element(p, image, i, k, p->channels == 3 ? c : 0);
        out.bad = out.bad || !isfinite(v);
        out.rgb[c] += p->high > p->low ? (v - p->low) / (p->high - p->low) : 0.5;
      }
  for (int c = 0; c < 3; c++) out.rgb[c] = fmin(fmax(out.rgb[c] / (double)n, 0), 1);
  if (out.bad) memcpy(out.rgb, (double[3]){1, 0, 0.5}, sizeof out.rgb);
  return out;
}

/* ---- characters ---- */

/* Returns the colour in the table of 256: a cube of 6 by 6 by 6 from 16 on, then 24 greys. */
static int color_256(const Pixel *p)
{
  const double *c = p->rgb;
  if (c[0] == c[1] && c[1] == c[2]) return 232 + (int)(c[0] * 23 + 0.5);
  return 16 + 36 * (int)(c[0] * 5 + 0.5) + 6 * (int)(c[1] * 5 + 0.5) + (int)(c[2] * 5 + 0.5);
}

/* Selects the colour of the character (plane 38) or of what is behind it (48). */
static void put_color(Ink with, int plane, const Pixel *p)
{
  if (with == INK_256)
    printf("\033[%d;5;%dm", plane, color_256(p));
  else
    printf("\033[%d;2;%d;%d;%dm", plane, (int)(p->rgb[0] * 255 + 0.5), (int)(p->rgb[1] * 255 + 0.5),
           (int)(p->rgb[2] * 255 + 0.5));
}

static void put_grey(const Pixel *p)
{
  static const char signs[] = " .:-=+*#%@";
  double light = 0.299 * p->rgb[0] + 0.587 * p->rgb[1] + 0.114 * p->rgb[2];
  putchar(p->bad ? '?' : signs[(int)(light * (sizeof signs - 2) + 0.5)]);
}

static void put_line(const Picture *p, Ink with, int64_t image, int y)
{
  for (int x = 0; x < p->width; x++) {
    Pixel above = pixel(p, image, y, x, with == INK_grey ? 2 : 1);
    if (with == INK_grey) {
      put_grey(&above);
      continue;
    }
    put_color(with, 38, &above);
    if (y + 1 < p->height) {
      Pixel below = pixel(p, image, y + 1, x, 1);
      put_color(with, 48, &below);
    }
    fputs("\u2580", stdout);
  }
  if (with != INK_grey) fputs("\033[0m", stdout);
}

bool picture_draw(const HostTensor *t, bool likely)
{
  Picture p;
  Ink with = ink();
  if (!find_images(t, &p) || (likely && !is_likely(&p))) return false;
  choose_size(&p, plot_columns());
  find_range(&p);
  if (!(p.low <= p.high)) return false;
  for (int y = 0; y < p.height; y += 2)
    for (int64_t i = 0; i < p.shown; i++) {
      put_line(&p, with, i, y);
      putchar(i + 1 < p.shown ? ' ' : '\n');
    }
  char type[AMPC_TYPE_ROOM];
  printf("%s, black %.4g, white %.4g", ampc_type_text(type, t->dtype, t->rank, t->dim), p.low,
         p.high);
  if (p.shown < p.n) printf(", %lld of %lld images", (long long)p.shown, (long long)p.n);
  putchar('\n');
  return true;
}
