/* Pictures of all kinds, recognized by their first bytes. All colours are converted to red, green
 * and blue: grey three times, CMYK by multiplication with black; transparency is dropped.
 *
 * The libraries report errors by longjmp. So each of their calls is in a function that sets the
 * jump target, and everything that is needed afterwards is in the Picture. */
#include "picture.h"
#include <stdlib.h>
#include <string.h>
#include "exif.h"
#include "picture_libraries.h"
#include "picture_whole.h"

enum { WHY = JMSG_LENGTH_MAX };
#define MOST_PIXELS ((int64_t)1 << 27)

struct Picture {
  const char *path;
  const uint8_t *bytes;
  int64_t size, at; /* size: of the file; at: position of the PNG reader */
  bool is_jpeg;
  int64_t width, height; /* size of the stored picture */
  int orientation;       /* Exif's number */
  bool upright;          /* turn the picture as `orientation` says */
  jmp_buf place;         /* target of longjmp after an error */
  char why[WHY];         /* message of the error; empty: no error */
  bool no_memory;        /* memory ran out: the picture may be good */

  const JpegLibrary *jpeg;
  struct jpeg_decompress_struct decoder;
  struct jpeg_error_mgr manager;

  const PngLibrary *png;
  png_structp reader;
  png_infop info;

  const WholeKind *kind; /* another kind than JPEG and PNG; or NULL */
  WholePicture whole;

  uint8_t *row; /* the pixels of a whole row, as the decoder writes them */
};

static ampc_status out_of_memory(const Picture *p)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", p->path);
}

static ampc_status damaged(const Picture *p)
{
  if (p->no_memory) return out_of_memory(p);
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: %s", p->path, p->why);
}

/* ---- JPEG ---- */

static void jpeg_stop(j_common_ptr decoder)
{
  Picture *p = decoder->client_data;
  decoder->err->format_message(decoder, p->why);
  p->no_memory = decoder->err->msg_code == JERR_OUT_OF_MEMORY;
  longjmp(p->place, 1);
}

/* Keeps warnings that mean lost pixels. Other warnings do not concern the pixels. */
static void jpeg_warn(j_common_ptr decoder, int level)
{
  Picture *p = decoder->client_data;
  int code = decoder->err->msg_code;
  bool lost = code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_JPEG_EOF ||
              code == JWRN_MUST_RESYNC || code == JWRN_BOGUS_PROGRESSION ||
              code == JWRN_NOT_SEQUENTIAL;
  if (level < 0 && lost && !*p->why) decoder->err->format_message(decoder, p->why);
}

static void jpeg_say(j_common_ptr decoder)
{
  (void)decoder;
}

/* Finds Exif's marker among the markers with the same number. */
static int jpeg_orientation(const Picture *p)
{
  static const uint8_t exif[] = {'E', 'x', 'i', 'f', 0, 0};
  for (jpeg_saved_marker_ptr m = p->decoder.marker_list; m; m = m->next)
    if (m->data_length > sizeof exif && memcmp(m->data, exif, sizeof exif) == 0)
      return exif_orientation(m->data + sizeof exif, (int64_t)(m->data_length - sizeof exif));
  return 1;
}

static ampc_status jpeg_open(Picture *p)
{
  ampc_status status = picture_jpeg_library(&p->jpeg);
  if (status) return status;
  p->decoder.err = p->jpeg->jpeg_std_error(&p->manager);
  p->manager.error_exit = jpeg_stop;
  p->manager.emit_message = jpeg_warn;
  p->manager.output_message = jpeg_say;
  p->decoder.client_data = p;
  if (setjmp(p->place)) return damaged(p);
  p->jpeg->jpeg_CreateDecompress(&p->decoder, JPEG_LIB_VERSION, sizeof p->decoder);
  p->decoder.client_data = p;
  p->jpeg->jpeg_mem_src(&p->decoder, p->bytes, (unsigned long)p->size);
  p->jpeg->jpeg_save_markers(&p->decoder, JPEG_APP0 + 1, 0xffff);
  p->jpeg->jpeg_read_header(&p->decoder, TRUE);
  p->orientation = jpeg_orientation(p);
  p->width = p->decoder.image_width;
  p->height = p->decoder.image_height;
  return AMPC_OK;
}

/* Converts CMYK. `inverted`: as Adobe's programs store it. */
static void cmyk_to_rgb(const uint8_t *from, int64_t n, bool inverted, uint8_t *to)
{
  for (int64_t i = 0; i < n; i++)
    for (int c = 0; c < 3; c++) {
      int ink = inverted ? from[4 * i + c] : 255 - from[4 * i + c],
          black = inverted ? from[4 * i + 3] : 255 - from[4 * i + 3];
      to[3 * i + c] = (uint8_t)((ink * black + 127) / 255);
    }
}

/* Decodes an area. The rows before and after it are not computed, which saves most of the work;
 * their bits are still decoded. In each row, the whole blocks around the area are computed. */
static void jpeg_rows(Picture *p, PictureArea area, uint8_t *to)
{
  struct jpeg_decompress_struct *d = &p->decoder;
  JDIMENSION x = (JDIMENSION)area.x, width = (JDIMENSION)area.width;
  if (area.width < d->output_width) p->jpeg->jpeg_crop_scanline(d, &x, &width);
  if (area.y > 0) p->jpeg->jpeg_skip_scanlines(d, (JDIMENSION)area.y);
  int64_t before = area.x - (int64_t)x;
  bool cmyk = d->out_color_space == JCS_CMYK;
  for (int64_t i = 0; i < area.height; i++) {
    JSAMPROW row = p->row;
    uint8_t *line = to + 3 * area.width * i;
    p->jpeg->jpeg_read_scanlines(d, &row, 1);
    if (cmyk) {
      cmyk_to_rgb(p->row + 4 * before, area.width, d->saw_Adobe_marker, line);
    } else {
      memcpy(line, p->row + 3 * before, (size_t)(3 * area.width));
    }
  }
  JDIMENSION left = d->output_height - d->output_scanline;
  JSAMPROW row = p->row;
  if (left > 1)
    p->jpeg->jpeg_skip_scanlines(d, left - 1); /* skipping all that are left would not check their
                                                  bits */
  if (left) p->jpeg->jpeg_read_scanlines(d, &row, 1);
  p->jpeg->jpeg_finish_decompress(d);
}

static ampc_status jpeg_read(Picture *p, int shrink, PictureArea area, uint8_t *to)
{
  struct jpeg_decompress_struct *d = &p->decoder;
  if (setjmp(p->place)) return damaged(p);
  bool cmyk = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
  d->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  d->scale_num = 1;
  d->scale_denom = (unsigned)shrink;
  p->jpeg->jpeg_start_decompress(d);
  p->row = malloc((size_t)d->output_width * 4);
  if (!p->row) return out_of_memory(p);
  jpeg_rows(p, area, to);
  return *p->why ? damaged(p) : AMPC_OK;
}

/* ---- PNG ---- */

static void png_stop(png_structp reader, png_const_charp why)
{
  const PngLibrary *png;
  if (picture_png_library(&png)) abort(); /* libpng has called us */
  Picture *p = png->png_get_error_ptr(reader);
  snprintf(p->why, sizeof p->why, "%s", why);
  p->no_memory = strcasestr(why, "out of memory") || strcasestr(why, "insufficient memory");
  png->png_longjmp(reader, 1);
}

static void png_say(png_structp reader, png_const_charp why)
{
  (void)reader;
  (void)why;
}

static void png_take(png_structp reader, png_bytep to, size_t n)
{
  const PngLibrary *png;
  if (picture_png_library(&png)) abort(); /* libpng has called us */
  Picture *p = png->png_get_io_ptr(reader);
  if ((int64_t)n > p->size - p->at) png->png_error(reader, "it ends too early");
  memcpy(to, p->bytes + p->at, n);
  p->at += (int64_t)n;
}

#define PNG_PLACE(p) (*(p)->png->png_set_longjmp_fn((p)->reader, longjmp, sizeof(jmp_buf)))

static ampc_status png_open(Picture *p)
{
  ampc_status status = picture_png_library(&p->png);
  if (status) return status;
  p->reader = p->png->png_create_read_struct(PNG_LIBPNG_VER_STRING, p, png_stop, png_say);
  if (!p->reader) return out_of_memory(p);
  if (setjmp(PNG_PLACE(p))) return damaged(p);
  p->info = p->png->png_create_info_struct(p->reader);
  if (!p->info) return out_of_memory(p);
  p->png->png_set_read_fn(p->reader, p, png_take);
  p->png->png_read_info(p->reader, p->info);
  png_uint_32 size = 0;
  png_bytep exif = NULL;
  if (p->png->png_get_eXIf_1(p->reader, p->info, &size, &exif) && exif)
    p->orientation = exif_orientation(exif, (int64_t)size);
  p->width = p->png->png_get_image_width(p->reader, p->info);
  p->height = p->png->png_get_image_height(p->reader, p->info);
  return AMPC_OK;
}

/* Decodes all rows, because each depends on the one before it. An interlaced picture needs all rows
 * at once, in each of `passes` passes. */
static void png_rows(Picture *p, int passes, PictureArea area, uint8_t *to)
{
  size_t width = (size_t)p->width * 3;
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < p->height; y++) {
      uint8_t *row = passes > 1 ? p->row + width * (size_t)y : p->row;
      p->png->png_read_row(p->reader, row, NULL);
      bool inside = pass == passes - 1 && y >= area.y && y < area.y + area.height;
      if (inside)
        memcpy(to + 3 * area.width * (y - area.y), row + 3 * area.x, (size_t)(3 * area.width));
    }
  p->png->png_read_end(p->reader, NULL);
}

static ampc_status png_read(Picture *p, PictureArea area, uint8_t *to)
{
  if (setjmp(PNG_PLACE(p))) return damaged(p);
  p->png->png_set_expand(p->reader);
  p->png->png_set_strip_16(p->reader);
  p->png->png_set_strip_alpha(p->reader);
  p->png->png_set_gray_to_rgb(p->reader);
  int passes = p->png->png_set_interlace_handling(p->reader);
  p->png->png_read_update_info(p->reader, p->info);
  p->row = malloc((size_t)(p->width * 3 * (passes > 1 ? p->height : 1)));
  if (!p->row) return out_of_memory(p);
  png_rows(p, passes, area, to);
  return AMPC_OK;
}

/* ---- pictures that are decoded as a whole ---- */

static ampc_status whole_open(Picture *p)
{
  p->whole = (WholePicture){.path = p->path, .bytes = p->bytes, .size = p->size, .orientation = 1};
  ampc_status status = p->kind->open(&p->whole);
  p->width = p->whole.width;
  p->height = p->whole.height;
  p->orientation = p->whole.orientation;
  return status;
}

static ampc_status whole_read(Picture *p, PictureArea area, uint8_t *to)
{
  p->row = malloc((size_t)(3 * p->width * p->height));
  if (!p->row) return out_of_memory(p);
  ampc_status status = p->kind->read(&p->whole, p->row);
  for (int64_t y = 0; y < area.height && !status; y++)
    memcpy(to + 3 * area.width * y, p->row + 3 * (p->width * (area.y + y) + area.x),
           (size_t)(3 * area.width));
  return status;
}

/* ---- all kinds ---- */

/* Returns which other kind of picture the bytes begin like, such as GIF; NULL: unknown. */
static const char *other_kind(const uint8_t *bytes, int64_t size)
{
  static const struct {
    int at, n;
    const char *magic, *name;
  } kinds[] = {
      {0, 4, "GIF8", "a GIF"}, {4, 8, "ftypavif", "an AVIF"}, {4, 8, "ftypheic", "a HEIC"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (size >= kinds[i].at + kinds[i].n &&
        memcmp(bytes + kinds[i].at, kinds[i].magic, (size_t)kinds[i].n) == 0)
      return kinds[i].name;
  return NULL;
}

static ampc_status no_picture(const char *path, const uint8_t *bytes, int64_t size)
{
  const char *other = other_kind(bytes, size);
  if (other)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is %s despite its name; JPEG, PNG, BMP, WebP and TIFF are read", path,
                     other);
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: %s", path,
                   size ? "it begins like no picture" : "it is empty");
}

ampc_status picture_open(const char *path, const uint8_t *bytes, int64_t size, bool upright,
                         Picture **out)
{
  static const uint8_t png_magic[] = {0x89, 'P', 'N', 'G'};
  *out = NULL;
  bool is_jpeg = size > 3 && bytes[0] == 0xff && bytes[1] == 0xd8,
       is_png = size > 4 && memcmp(bytes, png_magic, sizeof png_magic) == 0;
  const WholeKind *kind = picture_whole(bytes, size);
  if (!is_jpeg && !is_png && !kind) return no_picture(path, bytes, size);
  Picture *p = calloc(1, sizeof *p);
  if (!p) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  p->path = path;
  p->bytes = bytes;
  p->size = size;
  p->is_jpeg = is_jpeg;
  p->kind = kind;
  p->orientation = 1;
  p->upright = upright;
  ampc_status status = kind ? whole_open(p) : is_jpeg ? jpeg_open(p) : png_open(p);
  if (!status && p->width * p->height > MOST_PIXELS)
    status = ampc_fail(AMPC_BAD_FILE, "%s has %lld x %lld pixels; up to 2^27 are read", path,
                       (long long)p->width, (long long)p->height);
  if (status) {
    picture_close(p);
  } else {
    *out = p;
  }
  return status;
}

static bool is_turned(const Picture *p)
{
  return p->upright && p->orientation != 1;
}

int64_t picture_width(const Picture *p)
{
  return is_turned(p) && exif_swaps(p->orientation) ? p->height : p->width;
}

int64_t picture_height(const Picture *p)
{
  return is_turned(p) && exif_swaps(p->orientation) ? p->width : p->height;
}

int picture_orientation(const Picture *p)
{
  return p->orientation;
}

bool picture_shrinks(const Picture *p, int shrink)
{
  return p->is_jpeg && (shrink == 2 || shrink == 4 || shrink == 8);
}

static ampc_status read_stored(Picture *p, int shrink, PictureArea area, uint8_t *to)
{
  if (p->kind) return whole_read(p, area, to);
  return p->is_jpeg ? jpeg_read(p, shrink, area, to) : png_read(p, area, to);
}

ampc_status picture_read(Picture *p, int shrink, PictureArea area, uint8_t *to)
{
  if (!is_turned(p)) return read_stored(p, shrink, area, to);
  PictureArea stored = exif_stored(p->orientation, area, (p->width + shrink - 1) / shrink,
                                   (p->height + shrink - 1) / shrink);
  uint8_t *pixels = malloc((size_t)(3 * area.width * area.height));
  if (!pixels) return out_of_memory(p);
  ampc_status status = read_stored(p, shrink, stored, pixels);
  if (!status) exif_turn(p->orientation, pixels, area, to);
  free(pixels);
  return status;
}

void picture_close(Picture *p)
{
  if (!p) return;
  if (p->jpeg && p->decoder.mem) p->jpeg->jpeg_destroy_decompress(&p->decoder);
  if (p->reader) p->png->png_destroy_read_struct(&p->reader, &p->info, NULL);
  free(p->row);
  free(p);
}
