/* BMP, WebP and TIFF. Transparency is dropped, as for other pictures. */
#include "picture_whole.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "exif.h"
#include "picture_libraries.h"

static uint32_t little(const uint8_t *b, int bytes)
{
  uint32_t n = 0;
  while (bytes--) n = n << 8 | b[bytes];
  return n;
}

static ampc_status damaged(const WholePicture *p, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: %s", p->path, why);
}

/* ---- BMP ---- */

enum { BMP_HEAD = 14, BMP_CORE = 12, BMP_INFO = 40, BMP_PLAIN = 0, BMP_FIELDS = 3 };

typedef struct Bmp {
  int64_t pixels, row; /* where the rows begin; bytes of a row */
  int bits;
  bool upwards; /* the first row in the file is the lowest one */
  uint8_t palette[256][4];
} Bmp;

/* Reads the colours of a picture of up to 8 bits. A pixel beyond them is black, as in Pillow. */
static void bmp_palette(const WholePicture *p, Bmp *b, int64_t header)
{
  bool core = header == BMP_CORE;
  int64_t entry = core ? 3 : 4, n = core ? 0 : little(p->bytes + 46, 4), most = 1 << b->bits;
  const int64_t at = BMP_HEAD + header;
  if (n == 0 || n > most) n = most;
  if (n > (b->pixels - at) / entry) n = (b->pixels - at) / entry;
  for (int64_t i = 0; i < n; i++) memcpy(b->palette[i], p->bytes + at + i * entry, 3);
}

/* Of masks, only those of 32 bits are read, with blue, green and red bytes in this order. */
static bool is_read_bmp(const WholePicture *p, int bits, uint32_t packed)
{
  bool usual = packed == BMP_FIELDS && bits == 32 && p->size >= BMP_HEAD + BMP_INFO + 12 &&
               little(p->bytes + 54, 4) == 0xff0000 && little(p->bytes + 58, 4) == 0xff00 &&
               little(p->bytes + 62, 4) == 0xff;
  bool known = bits == 1 || bits == 4 || bits == 8 || bits == 24 || bits == 32;
  return known && (packed == BMP_PLAIN || usual);
}

static ampc_status bmp_head(WholePicture *p, Bmp *b)
{
  *b = (Bmp){0};
  int64_t header = p->size >= BMP_HEAD + BMP_CORE ? little(p->bytes + BMP_HEAD, 4) : 0;
  bool core = header == BMP_CORE;
  if ((!core && header < BMP_INFO) || header > p->size - BMP_HEAD)
    return damaged(p, "its header is cut off");
  int32_t height = core ? (int32_t)little(p->bytes + 20, 2) : (int32_t)little(p->bytes + 22, 4);
  uint32_t packed = core ? BMP_PLAIN : little(p->bytes + 30, 4);
  p->width = core ? (int32_t)little(p->bytes + 18, 2) : (int32_t)little(p->bytes + 18, 4);
  p->height = height < 0 ? -(int64_t)height : height;
  b->upwards = height > 0;
  b->bits = (int)little(p->bytes + (core ? 24 : 28), 2);
  b->pixels = little(p->bytes + 10, 4);
  if (p->width < 1 || p->height < 1) return damaged(p, "it has no pixels");
  if (!is_read_bmp(p, b->bits, packed))
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is a BMP of %d bits with compression %u; read are BMPs of 1, 4, 8, 24 and 32 "
        "bits without compression: save it as PNG",
        p->path, b->bits, packed);
  b->row = (p->width * b->bits + 31) / 32 * 4;
  if (b->pixels < BMP_HEAD + header || b->pixels > p->size ||
      b->row > (p->size - b->pixels) / p->height)
    return damaged(p, "it ends too early");
  if (b->bits <= 8) bmp_palette(p, b, header);
  return AMPC_OK;
}

static ampc_status bmp_open(WholePicture *p)
{
  Bmp b;
  return bmp_head(p, &b);
}

static ampc_status bmp_read(WholePicture *p, uint8_t *rgb)
{
  Bmp b;
  ampc_status status = bmp_head(p, &b);
  for (int64_t y = 0; y < p->height && !status; y++) {
    const uint8_t *row = p->bytes + b.pixels + b.row * (b.upwards ? p->height - 1 - y : y);
    for (int64_t x = 0; x < p->width; x++, rgb += 3) {
      int64_t bit = x * b.bits;
      int within =
          b.bits < 8 ? row[bit / 8] >> (8 - b.bits - bit % 8) & ((1 << b.bits) - 1) : row[bit / 8];
      const uint8_t *blue = b.bits > 8 ? row + bit / 8 : b.palette[within];
      rgb[0] = blue[2];
      rgb[1] = blue[1];
      rgb[2] = blue[0];
    }
  }
  return status;
}

/* ---- WebP ---- */

/* Finds Exif's chunk in a RIFF file. */
static int webp_orientation(const WholePicture *p)
{
  static const char begin[] = "Exif\0";
  for (int64_t at = 12; at + 8 <= p->size;) {
    int64_t n = little(p->bytes + at + 4, 4);
    const uint8_t *chunk = p->bytes + at + 8;
    if (n > p->size - at - 8) return 1;
    int64_t skip = n > 6 && memcmp(chunk, begin, 6) == 0 ? 6 : 0;
    if (memcmp(p->bytes + at, "EXIF", 4) == 0) return exif_orientation(chunk + skip, n - skip);
    at += 8 + n + n % 2;
  }
  return 1;
}

static ampc_status webp_open(WholePicture *p)
{
  const WebpLibrary *webp;
  int width = 0, height = 0;
  ampc_status status = picture_webp_library(&webp);
  if (status) return status;
  if (!webp->WebPGetInfo(p->bytes, (size_t)p->size, &width, &height))
    return damaged(p, "libwebp cannot read its header");
  p->width = width;
  p->height = height;
  p->orientation = webp_orientation(p);
  return AMPC_OK;
}

static ampc_status webp_read(WholePicture *p, uint8_t *rgb)
{
  const WebpLibrary *webp;
  ampc_status status = picture_webp_library(&webp);
  if (status) return status;
  size_t bytes = (size_t)(3 * p->width * p->height);
  if (webp->WebPDecodeRGBInto(p->bytes, (size_t)p->size, rgb, bytes, (int)(3 * p->width)))
    return AMPC_OK;
  return damaged(p, "libwebp cannot decode it; animations are not read");
}

/* ---- TIFF ---- */

enum { TAG_WIDTH = 256, TAG_HEIGHT = 257, TAG_ORIENTATION = 274, TAG_EXTRA = 338 };
enum { ALPHA_APPLIED = 1, ALPHA = 2 }; /* kinds of a fourth sample */

static int tiff_error(TIFF *t, void *user, const char *module, const char *format, va_list args)
{
  (void)t;
  (void)module;
  WholePicture *p = user;
  if (!*p->why) vsnprintf(p->why, sizeof p->why, format, args);
  return 1; /* libtiff then prints nothing */
}

static int tiff_warning(TIFF *t, void *user, const char *module, const char *format, va_list args)
{
  (void)t, (void)user, (void)module, (void)format, (void)args;
  return 1;
}

static int64_t tiff_take(void *user, void *to, int64_t n)
{
  WholePicture *p = user;
  if (n > p->size - p->at) n = p->size - p->at;
  if (n > 0) memcpy(to, p->bytes + p->at, (size_t)n);
  p->at += n > 0 ? n : 0;
  return n > 0 ? n : 0;
}

static int64_t tiff_put(void *user, void *from, int64_t n)
{
  (void)user, (void)from, (void)n;
  return 0;
}

static uint64_t tiff_seek(void *user, uint64_t to, int whence)
{
  WholePicture *p = user;
  int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? p->at : p->size;
  if (to > (uint64_t)p->size) to = (uint64_t)p->size;
  p->at = base + (int64_t)to > p->size ? p->size : base + (int64_t)to;
  return (uint64_t)p->at;
}

static int tiff_done(void *user)
{
  (void)user;
  return 0;
}

static uint64_t tiff_size(void *user)
{
  return (uint64_t)((WholePicture *)user)->size;
}

static ampc_status tiff_begin(WholePicture *p, const TiffLibrary **lib, TIFF **out)
{
  ampc_status status = picture_tiff_library(lib);
  if (status) return status;
  TIFFOpenOptions *options = (*lib)->TIFFOpenOptionsAlloc();
  if (!options) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", p->path);
  p->at = 0;
  *p->why = 0;
  (*lib)->TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_error, p);
  (*lib)->TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_warning, p);
  *out = (*lib)->TIFFClientOpenExt(p->path, "rm", p, tiff_take, tiff_put, tiff_seek, tiff_done,
                                   tiff_size, NULL, NULL, options);
  (*lib)->TIFFOpenOptionsFree(options);
  return *out ? AMPC_OK : damaged(p, *p->why ? p->why : "libtiff cannot read it");
}

static ampc_status tiff_open(WholePicture *p)
{
  const TiffLibrary *lib;
  TIFF *t;
  uint32_t width = 0, height = 0;
  uint16_t orientation = 1;
  char why[1024] = "";
  ampc_status status = tiff_begin(p, &lib, &t);
  if (status) return status;
  lib->TIFFGetField(t, TAG_WIDTH, &width);
  lib->TIFFGetField(t, TAG_HEIGHT, &height);
  if (lib->TIFFGetField(t, TAG_ORIENTATION, &orientation) && orientation >= 1 && orientation <= 8)
    p->orientation = orientation;
  p->width = width;
  p->height = height;
  if (!width || !height)
    status = damaged(p, "it has no pixels");
  else if (!lib->TIFFRGBAImageOK(t, why))
    status = ampc_fail(AMPC_BAD_FILE, "%s cannot be read: %.150s; save it as PNG", p->path, why);
  lib->TIFFClose(t);
  return status;
}

static ampc_status tiff_read(WholePicture *p, uint8_t *rgb)
{
  const TiffLibrary *lib;
  TIFF *t;
  uint16_t n = 0, *kinds = NULL;
  int64_t pixels = p->width * p->height;
  ampc_status status = tiff_begin(p, &lib, &t);
  if (status) return status;
  uint32_t *raster = malloc((size_t)pixels * sizeof *raster);
  if (!raster) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", p->path);
  /* libtiff would multiply the colours by alpha; called applied already, alpha changes nothing. */
  if (lib->TIFFGetField(t, TAG_EXTRA, &n, &kinds) && n == 1 && kinds[0] == ALPHA)
    lib->TIFFSetField(t, TAG_EXTRA, 1, &(uint16_t){ALPHA_APPLIED});
  if (!status && !lib->TIFFReadRGBAImageOriented(t, (uint32_t)p->width, (uint32_t)p->height, raster,
                                                 p->orientation, 1))
    status = damaged(p, *p->why ? p->why : "libtiff cannot decode it");
  for (int64_t i = 0; i < pixels && !status; i++)
    for (int c = 0; c < 3; c++) rgb[3 * i + c] = (uint8_t)(raster[i] >> 8 * c);
  free(raster);
  lib->TIFFClose(t);
  return status;
}

const WholeKind *picture_whole(const uint8_t *bytes, int64_t size)
{
  static const struct {
    int at, n;
    const char *magic;
    WholeKind kind;
  } kinds[] = {{0, 2, "BM", {bmp_open, bmp_read}},
               {8, 4, "WEBP", {webp_open, webp_read}},
               {0, 4, "II*\0", {tiff_open, tiff_read}},
               {0, 4, "MM\0*", {tiff_open, tiff_read}}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (size >= kinds[i].at + kinds[i].n &&
        memcmp(bytes + kinds[i].at, kinds[i].magic, (size_t)kinds[i].n) == 0)
      return &kinds[i].kind;
  return NULL;
}
