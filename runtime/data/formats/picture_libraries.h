/* The functions of libjpeg-turbo, libpng, libwebp and libtiff that are called, and tables of
 * pointers to them. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
/* stdio.h comes first: jpeglib.h needs it */
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>
#include "ampc_plan.h"

/* The functions, declared as in their headers. */
#define JPEG_FUNCTIONS(ROW)                                                                        \
  ROW(jpeg_std_error)                                                                              \
  ROW(jpeg_CreateDecompress)                                                                       \
  ROW(jpeg_destroy_decompress)                                                                     \
  ROW(jpeg_mem_src)                                                                                \
  ROW(jpeg_save_markers)                                                                           \
  ROW(jpeg_read_header)                                                                            \
  ROW(jpeg_start_decompress)                                                                       \
  ROW(jpeg_crop_scanline)                                                                          \
  ROW(jpeg_skip_scanlines)                                                                         \
  ROW(jpeg_read_scanlines)                                                                         \
  ROW(jpeg_finish_decompress)

#define PNG_FUNCTIONS(ROW)                                                                         \
  ROW(png_create_read_struct)                                                                      \
  ROW(png_create_info_struct)                                                                      \
  ROW(png_destroy_read_struct)                                                                     \
  ROW(png_set_longjmp_fn)                                                                          \
  ROW(png_longjmp)                                                                                 \
  ROW(png_get_error_ptr)                                                                           \
  ROW(png_set_read_fn)                                                                             \
  ROW(png_get_io_ptr)                                                                              \
  ROW(png_error)                                                                                   \
  ROW(png_read_info)                                                                               \
  ROW(png_get_eXIf_1)                                                                              \
  ROW(png_get_image_width)                                                                         \
  ROW(png_get_image_height)                                                                        \
  ROW(png_set_expand)                                                                              \
  ROW(png_set_strip_16)                                                                            \
  ROW(png_set_strip_alpha)                                                                         \
  ROW(png_set_gray_to_rgb)                                                                         \
  ROW(png_set_interlace_handling)                                                                  \
  ROW(png_read_update_info)                                                                        \
  ROW(png_read_row)                                                                                \
  ROW(png_read_end)                                                                                \
  ROW(png_create_write_struct)                                                                     \
  ROW(png_destroy_write_struct)                                                                    \
  ROW(png_set_write_fn)                                                                            \
  ROW(png_set_IHDR)                                                                                \
  ROW(png_write_info)                                                                              \
  ROW(png_write_row)                                                                               \
  ROW(png_write_end)

/* libwebp and libtiff: their headers are not needed to build. */
typedef struct tiff TIFF;
typedef struct TIFFOpenOptions TIFFOpenOptions;
typedef int TiffSay(TIFF *t, void *user, const char *module, const char *format, va_list args);
int WebPGetInfo(const uint8_t *bytes, size_t size, int *width, int *height);
uint8_t *WebPDecodeRGBInto(const uint8_t *bytes, size_t size, uint8_t *to, size_t room, int stride);
TIFFOpenOptions *TIFFOpenOptionsAlloc(void);
void TIFFOpenOptionsFree(TIFFOpenOptions *o);
void TIFFOpenOptionsSetErrorHandlerExtR(TIFFOpenOptions *o, TiffSay *say, void *user);
void TIFFOpenOptionsSetWarningHandlerExtR(TIFFOpenOptions *o, TiffSay *say, void *user);
TIFF *TIFFClientOpenExt(const char *name, const char *mode, void *user,
                        int64_t (*read)(void *user, void *to, int64_t n),
                        int64_t (*write)(void *user, void *from, int64_t n),
                        uint64_t (*seek)(void *user, uint64_t to, int whence),
                        int (*close)(void *user), uint64_t (*size)(void *user),
                        int (*map)(void *user, void **base, uint64_t *size),
                        void (*unmap)(void *user, void *base, uint64_t size), TIFFOpenOptions *o);
void TIFFClose(TIFF *t);
int TIFFGetField(TIFF *t, uint32_t tag, ...);
int TIFFSetField(TIFF *t, uint32_t tag, ...);
int TIFFRGBAImageOK(TIFF *t, char why[1024]);
int TIFFReadRGBAImageOriented(TIFF *t, uint32_t width, uint32_t height, uint32_t *to,
                              int orientation, int stop_on_error);

#define WEBP_FUNCTIONS(ROW)                                                                        \
  ROW(WebPGetInfo)                                                                                 \
  ROW(WebPDecodeRGBInto)

#define TIFF_FUNCTIONS(ROW)                                                                        \
  ROW(TIFFOpenOptionsAlloc)                                                                        \
  ROW(TIFFOpenOptionsFree)                                                                         \
  ROW(TIFFOpenOptionsSetErrorHandlerExtR)                                                          \
  ROW(TIFFOpenOptionsSetWarningHandlerExtR)                                                        \
  ROW(TIFFClientOpenExt)                                                                           \
  ROW(TIFFClose)                                                                                   \
  ROW(TIFFGetField)                                                                                \
  ROW(TIFFSetField)                                                                                \
  ROW(TIFFRGBAImageOK)                                                                             \
  ROW(TIFFReadRGBAImageOriented)

typedef struct JpegLibrary {
#define ROW(name) __typeof__(&(name)) name;
  JPEG_FUNCTIONS(ROW)
#undef ROW
} JpegLibrary;

typedef struct PngLibrary {
#define ROW(name) __typeof__(&(name)) name;
  PNG_FUNCTIONS(ROW)
#undef ROW
} PngLibrary;

typedef struct WebpLibrary {
#define ROW(name) __typeof__(&(name)) name;
  WEBP_FUNCTIONS(ROW)
#undef ROW
} WebpLibrary;

typedef struct TiffLibrary {
#define ROW(name) __typeof__(&(name)) name;
  TIFF_FUNCTIONS(ROW)
#undef ROW
} TiffLibrary;

/* Load a library. AMPC_RUN_FAILED: the library is not on this machine; the message names it. */
ampc_status picture_jpeg_library(const JpegLibrary **out);
ampc_status picture_png_library(const PngLibrary **out);
ampc_status picture_webp_library(const WebpLibrary **out);
ampc_status picture_tiff_library(const TiffLibrary **out);
