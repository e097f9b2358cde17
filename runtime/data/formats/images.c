/* Folders of pictures as u8 [3, height, width], or the numbers of their classes: `of` selects
 * "image" or "label".
 *
 * Without `train` a picture is scaled so that its shorter side is `resize`, and the middle is cut
 * out: torchvision's Resize and CenterCrop. With `train` and `scale`, an area of random size and
 * shape is cut out and scaled to `height` x `width`: RandomResizedCrop(scale, ratio). It is
 * mirrored with probability `hflip`. Random choices depend only on seed, epoch and sample.
 *
 * A damaged picture ends the run. With `skip` the next picture of its class replaces it, so the
 * label stays right and no other picture moves. A file that cannot be opened or read always ends
 * the run. Whether a picture counts as damaged does not depend on the area that is cut out. So the
 * same ones are left out in every epoch and with any number of threads. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "bytes.h"
#include "draw.h"
#include "folder.h"
#include "header.h"
#include "picture.h"
#include "resize.h"
#include "common/number.h"
#include "common/shown.h"

enum { MOST_SIDE = 1 << 14, TRIES = 10, PATH = 4096, TEXT = 64 /* of an argument */ };

typedef struct Settings {
  int64_t height, width, resize;
  bool labels, train, crops, skip;
  bool upright, upright_said; /* upright: turned as Exif says; upright_said: the job gives `exif` */
  double scale[2], ratio[2], hflip;
} Settings;

struct ampc_reader {
  Settings is;
  Folder folder;
  const char *path;
  uint64_t seed, stream;
  atomic_uchar *damaged; /* for each file: it is damaged, and that was reported */
  atomic_llong left_out;
  atomic_bool told_of_turned;
};

/* ---- arguments ---- */

/* Reads a number. Accepts infinity and NaN, too, so that the message about them can name them. */
static bool read_number(const char *text, double *to)
{
  if (ampc_read_real(text, to)) return true;
  bool infinite = strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0;
  *to = infinite ? (*text == '-' ? -INFINITY : INFINITY) : NAN;
  return infinite || strcmp(text, "nan") == 0;
}

static bool is_given(const char *args, const char *name)
{
  int n;
  return args_next(args, name, NULL, &n) != NULL;
}

/* Reads one number, or two. Returns false if the argument is neither. */
static bool read_two(const char *args, const char *name, double to[2])
{
  int n;
  char text[64];
  int count = 0;
  for (const char *at = args_next(args, name, NULL, &n); at; at = args_next(args, name, at, &n)) {
    if (count == 2 || n >= (int)sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", n, at);
    if (!read_number(text, &to[count++])) return false;
  }
  if (count == 1) to[1] = to[0];
  return count > 0;
}

static bool is_side(double d)
{
  return d >= 1 && d <= MOST_SIDE && d == floor(d);
}

static ampc_status check_random(const Settings *s)
{
  if (s->crops && !(s->scale[0] > 0 && s->scale[0] <= s->scale[1] && s->scale[1] <= 1))
    return ampc_fail(AMPC_BAD_USAGE,
                     "`scale` of images is [%g, %g]; it needs [least, most] within (0, 1]",
                     s->scale[0], s->scale[1]);
  if (s->crops && !(s->ratio[0] > 0 && s->ratio[0] <= s->ratio[1] && s->ratio[1] < 1e6))
    return ampc_fail(AMPC_BAD_USAGE,
                     "`ratio` of images is [%g, %g]; it needs [least, most] above 0", s->ratio[0],
                     s->ratio[1]);
  return AMPC_OK;
}

static ampc_status read_size(const char *args, Settings *s)
{
  char text[TEXT] = "";
  double size[2] = {0}, resize = 0;
  if (!read_two(args, "size", size) || !is_side(size[0]) || !is_side(size[1]))
    return ampc_fail(AMPC_BAD_USAGE,
                     "`size` of images is a whole number or [height, width], from 1 "
                     "to %d",
                     MOST_SIDE);
  s->height = (int64_t)size[0];
  s->width = (int64_t)size[1];
  s->resize = s->height > s->width ? s->height : s->width;
  if (!is_given(args, "resize")) return AMPC_OK;
  args_text(args, "resize", text, sizeof text);
  if (!read_number(text, &resize) || !is_side(resize) || resize < (double)s->resize)
    return ampc_fail(AMPC_BAD_USAGE,
                     "`resize` of images is %s; it must be a whole number from %lld, the larger "
                     "side of `size`, to %d",
                     text, (long long)s->resize, MOST_SIDE);
  s->resize = (int64_t)resize;
  return AMPC_OK;
}

static ampc_status read_arguments(const char *args, Settings *s)
{
  char text[TEXT] = "", corrupt[TEXT] = "";
  *s = (Settings){.train = args_integer(args, "train") != 0};
  args_text(args, "of", text, sizeof text);
  s->labels = strcmp(text, "label") == 0;
  ampc_status status = read_size(args, s);
  if (status) return status;
  args_text(args, "corrupt", corrupt, sizeof corrupt);
  s->skip = strcmp(corrupt, "skip") == 0;
  s->upright_said = is_given(args, "exif");
  s->upright = args_integer(args, "exif") != 0;
  s->crops = is_given(args, "scale");
  if (!read_two(args, "scale", s->scale)) s->scale[0] = NAN;
  if (!read_two(args, "ratio", s->ratio)) s->ratio[0] = NAN;
  if (args_text(args, "hflip", text, sizeof text)) read_number(text, &s->hflip);
  return check_random(s);
}

static ampc_header header_of(const Settings *s)
{
  return s->labels ? (ampc_header){.dtype = AMPC_I64}
                   : (ampc_header){.dtype = AMPC_U8, .rank = 3, .dim = {3, s->height, s->width}};
}

static ampc_status images_probe(const ampc_format *f, const char *path, const char *args,
                                ampc_header *out)
{
  (void)f;
  Settings s;
  Folder folder;
  ampc_status status = read_arguments(args, &s);
  *out = header_of(&s);
  if (status || !path) return status;
  status = folder_list(path, args, &folder);
  out->samples = folder.n;
  folder_free(&folder);
  return status;
}

/* ---- the area that is cut out ---- */

/* One axis of a cut: the `length` pixels from `from` on are scaled to `full` pixels. Of these the
 * `size` pixels from `begin` on are kept. */
typedef struct CutAxis {
  int64_t from, length, full, begin, size;
} CutAxis;

typedef struct Cut {
  CutAxis x, y;
} Cut;

/* Draws an area as torchvision's RandomResizedCrop.get_params does. */
static PictureArea random_area(const Settings *s, Draw *d, int64_t width, int64_t height)
{
  double low = log(s->ratio[0]), high = log(s->ratio[1]), area = (double)(width * height);
  for (int i = 0; i < TRIES; i++) {
    double wanted = area * draw_between(d, s->scale[0], s->scale[1]),
           ratio = exp(draw_between(d, low, high));
    int64_t w = llrint(sqrt(wanted * ratio)), h = llrint(sqrt(wanted / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    int64_t y = draw_below(d, height - h + 1), x = draw_below(d, width - w + 1);
    return (PictureArea){x, y, w, h};
  }
  double ratio = (double)width / (double)height;
  int64_t w = ratio > s->ratio[1] ? llrint((double)height * s->ratio[1]) : width,
          h = ratio < s->ratio[0] ? llrint((double)width / s->ratio[0]) : height;
  w = w < 1 ? 1 : w;
  h = h < 1 ? 1 : h;
  return (PictureArea){(width - w) / 2, (height - h) / 2, w, h};
}

static Cut random_cut(const Settings *s, Draw *d, int64_t width, int64_t height)
{
  PictureArea a = random_area(s, d, width, height);
  return (Cut){{a.x, a.width, s->width, 0, s->width}, {a.y, a.height, s->height, 0, s->height}};
}

/* As torchvision, truncates the longer side to whole pixels and rounds half pixels to even. */
static Cut middle_cut(const Settings *s, int64_t width, int64_t height)
{
  int64_t x = width > height ? s->resize * width / height : s->resize;
  int64_t y = width > height ? s->resize : s->resize * height / width;
  return (Cut){{0, width, x, llrint((double)(x - s->width) / 2), s->width},
               {0, height, y, llrint((double)(y - s->height) / 2), s->height}};
}

/* Converts a cut to pixels of the shrunk picture, which has `most` of them instead of `all`. */
static ResizeAxis axis_of(const CutAxis *c, int64_t all, int64_t most)
{
  double ratio = (double)most / (double)all, length = (double)c->length * ratio;
  double step = length / (double)c->full, first = (double)c->from * ratio;
  double support = step > 1 ? step : 1, low = first + ((double)c->begin + 0.5) * step - support - 1,
         high = first + ((double)(c->begin + c->size) - 0.5) * step + support + 1;
  ResizeAxis a = {.begin = first + (double)c->begin * step, .scale = step, .size = c->size};
  a.first = llrint(floor(low > first ? low : first));
  a.last = llrint(ceil(high < first + length ? high : first + length));
  if (a.last > most) a.last = most;
  if (a.first >= a.last) a.first = a.last - 1;
  return a;
}

/* Returns 2, 4 or 8 to decode a picture at that fraction of its size, if it is then still twice as
 * large as needed; else 1. So ampc's filter decides what the result looks like. */
static int shrink_of(const Picture *p, const Cut *c)
{
  int shrink = 1;
  while (picture_shrinks(p, 2 * shrink) && c->x.length >= 4 * shrink * c->x.full &&
         c->y.length >= 4 * shrink * c->y.full)
    shrink *= 2;
  return shrink;
}

/* ---- one picture ---- */

/* Writes the name of a file: "cats/1.jpg", or "1.jpg" for a picture in the folder itself. */
static void name_of(const ampc_reader *r, const FolderFile *f, char *to, size_t size)
{
  const char *class = r->folder.class[f->class];
  bool named = strcmp(class, ".") != 0;
  snprintf(to, size, "%s%s%s", named ? class : "", named ? "/" : "", f->name);
}

static ampc_status draw_picture(const ampc_reader *r, const char *path, Picture *p, int64_t sample,
                                int64_t epoch, uint8_t *to)
{
  const Settings *s = &r->is;
  int64_t width = picture_width(p), height = picture_height(p);
  Draw d = draw_begin(r->seed, r->stream, epoch, sample);
  bool train = s->train && epoch != AMPC_AS_STORED;
  bool mirrored = train && draw_unit(&d) < s->hflip;
  Cut c = train && s->crops ? random_cut(s, &d, width, height) : middle_cut(s, width, height);
  int shrink = shrink_of(p, &c);
  int64_t columns = (width + shrink - 1) / shrink, rows = (height + shrink - 1) / shrink;
  ResizeAxis x = axis_of(&c.x, width, columns), y = axis_of(&c.y, height, rows);
  x.mirrored = mirrored;
  PictureArea area = {x.first, y.first, x.last - x.first, y.last - y.first};
  uint8_t *pixels = malloc((size_t)(3 * area.width * area.height));
  if (!pixels) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  ampc_status status = picture_read(p, shrink, area, pixels);
  if (!status && !resize(pixels, &x, &y, to))
    status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  free(pixels);
  return status;
}

/* Prints a note about orientation, once. A job that gives `exif` gets no note. */
static void tell_of_turned(ampc_reader *r, const char *path, int orientation)
{
  if (r->is.upright_said || orientation == 1 || atomic_exchange(&r->told_of_turned, true)) return;
  char shown[PATH];
  fprintf(stderr,
          "note: %s has Exif orientation %d, but is read as it is stored; exif=true turns such "
          "pictures upright, exif=false accepts them as they are\n",
          ampc_show(shown, sizeof shown, path, ""), orientation);
}

/* Reads file `i` with the random draws of `sample`. *out_damaged: its bytes are not a picture. */
static ampc_status read_file(ampc_reader *r, int64_t i, int64_t sample, int64_t epoch, uint8_t *to,
                             bool *out_damaged)
{
  char path[PATH];
  const FolderFile *f = &r->folder.files[i];
  Bytes bytes;
  Picture *p = NULL;
  char name[PATH];
  *out_damaged = false;
  name_of(r, f, name, sizeof name);
  int used = snprintf(path, sizeof path, "%s/%s", r->folder.root, name);
  if (used >= PATH) return ampc_fail(AMPC_BAD_FILE, "%.200s...: the path is too long", path);
  ampc_status status = bytes_open(&(DataFile){path, "a picture", true}, 0, -1, false, &bytes);
  if (status) return status;
  status = bytes.held ? picture_open(path, bytes.held, bytes.size, r->is.upright, &p)
                      : ampc_fail(AMPC_BAD_FILE, "%s is damaged: it has %lld bytes", path,
                                  (long long)bytes.size);
  if (!status) tell_of_turned(r, path, picture_orientation(p));
  if (!status) status = draw_picture(r, path, p, sample, epoch, to);
  *out_damaged = status == AMPC_BAD_FILE;
  picture_close(p);
  bytes_close(&bytes);
  return status;
}

/* Marks a file as damaged, and reports each damaged file once. */
static void leave_out(ampc_reader *r, int64_t i)
{
  if (atomic_exchange(&r->damaged[i], 1)) return;
  long long n = atomic_fetch_add(&r->left_out, 1) + 1;
  char why[1024];
  fprintf(stderr, "note: left out %lld of %lld pictures: %s\n", n, (long long)r->folder.n,
          ampc_show(why, sizeof why, ampc_last_error(), ""));
}

/* Reads the file of the sample, or the next intact one of its class. */
static ampc_status read_sample(ampc_reader *r, int64_t sample, int64_t epoch, uint8_t *to)
{
  const FolderFile *f = &r->folder.files[sample];
  int64_t size = r->folder.size[f->class];
  const char *class = r->folder.class[f->class];
  for (int64_t k = 0; k < size; k++) {
    int64_t i = r->folder.members[f->class][(f->rank + k) % size];
    if (atomic_load(&r->damaged[i])) continue;
    bool damaged;
    ampc_status status = read_file(r, i, sample, epoch, to, &damaged);
    if (!damaged) return status;
    if (!r->is.skip)
      return ampc_fail(status, "%s; with corrupt=\"skip\" the next picture of class %s replaces it",
                       ampc_last_error(), class);
    leave_out(r, i);
  }
  return ampc_fail(AMPC_BAD_FILE, "all %lld pictures of class %s in %s are damaged",
                   (long long)size, class, r->path);
}

/* Writes the name of the file that read_sample has used. */
static bool images_name(const ampc_reader *r, int64_t sample, char *text, size_t size)
{
  const FolderFile *f = &r->folder.files[sample];
  int64_t n = r->folder.size[f->class], k = 0;
  const int64_t *members = r->folder.members[f->class];
  if (r->is.labels) return false;
  while (k < n && atomic_load(&r->damaged[members[(f->rank + k) % n]])) k++;
  name_of(r, &r->folder.files[members[(f->rank + k) % n]], text, size);
  return true;
}

/* ---- the row of the table ---- */

/* Prints which files of the folder are not read. A block opens pictures and labels, and other
 * blocks may read the same folder: one note is enough. */
static void tell_of_others(const Folder *f, const char *path)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char told[PATH];
  char others[200], shown[PATH], ends[400];
  int64_t n = folder_others(f, others, sizeof others);
  pthread_mutex_lock(&lock);
  bool again = strncmp(told, path, PATH - 1) == 0;
  snprintf(told, sizeof told, "%s", path);
  pthread_mutex_unlock(&lock);
  if (!n || again) return;
  fprintf(stderr,
          "note: images leaves out %lld of %lld files in %s: %s; it reads " FOLDER_READS "\n",
          (long long)n, (long long)(n + f->n), ampc_show(shown, sizeof shown, path, ""),
          ampc_show(ends, sizeof ends, others, ""));
}

static void images_close(ampc_reader *r)
{
  if (!r) return;
  folder_free(&r->folder);
  free(r->damaged);
  free(r);
}

static ampc_status images_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples)
{
  const char *path = o->path;
  *out = NULL;
  ampc_reader *r = calloc(1, sizeof *r);
  if (!r) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  r->path = path;
  r->seed = o->seed;
  r->stream = o->desc->stream;
  ampc_status status = read_arguments(o->desc->args, &r->is);
  if (!status) status = folder_list(path, o->desc->args, &r->folder);
  ampc_header h = header_of(&r->is);
  h.samples = r->folder.n;
  if (!status) status = header_check(&h, path, o->desc);
  if (!status) r->damaged = calloc((size_t)r->folder.n, sizeof *r->damaged);
  if (!status && !r->damaged) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  if (status) {
    images_close(r);
    return status;
  }
  tell_of_others(&r->folder, path);
  *out_samples = r->folder.n;
  *out = r;
  return AMPC_OK;
}

/* `r` is const although this changes the reader's marks of damaged files, which are atomic. */
static ampc_status images_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch,
                               void *to)
{
  const Settings *s = &r->is;
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < n && !status; i++) {
    if (s->labels) {
      ((int64_t *)to)[i] = r->folder.files[first + i].class;
    } else {
      status = read_sample((ampc_reader *)r, first + i, epoch,
                           (uint8_t *)to + i * 3 * s->height * s->width);
    }
  }
  return status;
}

const ampc_format ampc_format_images = {
    .kind = AMPC_SOURCE_IMAGES,
    .name = "images",
    .types = {AMPC_U8, AMPC_I64},
    .n_types = 2,
    .works = true,
    .alone = true, /* each folder would number its own classes */
    .draws = true,
    .known = true,
    .probe = images_probe,
    .open = images_open,
    .copy = images_copy,
    .sample_name = images_name,
    .close = images_close,
};
