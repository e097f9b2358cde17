/* PNG files. libpng reports errors by longjmp, so all that is needed after an error is in Png. */
#include "picture_write.h"
#include <stdlib.h>
#include "picture_libraries.h"

typedef struct Png {
  const PngLibrary *library;
  png_structp writer;
  png_infop info;
  FileWriter *file;
  ampc_status status; /* first failure of file_add or libpng */
} Png;

/* Returns libpng, which is loaded because it has called the caller. */
static const PngLibrary *loaded(void)
{
  const PngLibrary *png;
  if (picture_png_library(&png)) abort();
  return png;
}

static void stop(png_structp writer, png_const_charp why)
{
  const PngLibrary *png = loaded();
  Png *p = png->png_get_error_ptr(writer);
  if (!p->status) p->status = ampc_fail(AMPC_RUN_FAILED, "libpng: %s", why);
  png->png_longjmp(writer, 1);
}

static void say(png_structp writer, png_const_charp why)
{
  (void)writer;
  (void)why;
}

static void give(png_structp writer, png_bytep bytes, size_t n)
{
  const PngLibrary *png = loaded();
  Png *p = png->png_get_io_ptr(writer);
  p->status = file_add(p->file, bytes, (int64_t)n);
  if (p->status) png->png_error(writer, "the file cannot be written");
}

/* Nothing to flush: file_add has passed the bytes to the system. */
static void flush(png_structp writer)
{
  (void)writer;
}

static void write_all(Png *p, const uint8_t *pixels, int64_t width, int64_t height, int channels)
{
  const PngLibrary *png = p->library;
  if (setjmp(*png->png_set_longjmp_fn(p->writer, longjmp, sizeof(jmp_buf)))) return;
  p->info = png->png_create_info_struct(p->writer);
  if (!p->info) png->png_error(p->writer, "out of memory");
  png->png_set_write_fn(p->writer, p, give, flush);
  png->png_set_IHDR(p->writer, p->info, (png_uint_32)width, (png_uint_32)height, 8,
                    channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                    PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png->png_write_info(p->writer, p->info);
  for (int64_t y = 0; y < height; y++) png->png_write_row(p->writer, pixels + y * width * channels);
  png->png_write_end(p->writer, p->info);
}

ampc_status picture_write_png(FileWriter *file, const uint8_t *pixels, int64_t width,
                              int64_t height, int channels)
{
  Png p = {.file = file};
  ampc_status status = picture_png_library(&p.library);
  if (status) return status;
  p.writer = p.library->png_create_write_struct(PNG_LIBPNG_VER_STRING, &p, stop, say);
  if (!p.writer) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a picture");
  write_all(&p, pixels, width, height, channels);
  p.library->png_destroy_write_struct(&p.writer, &p.info);
  return p.status;
}
