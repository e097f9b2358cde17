/* The functions of libjpeg-turbo and libpng that are called, and tables of pointers to them. */
#pragma once
#include <setjmp.h>
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

/* Load a library. AMPC_RUN_FAILED: the library is not on this machine; the message names it. */
ampc_status picture_jpeg_library(const JpegLibrary **out);
ampc_status picture_png_library(const PngLibrary **out);
