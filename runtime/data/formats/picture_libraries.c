/* Loads libjpeg-turbo and libpng in the versions whose headers this was built with. Their structs
 * differ between versions, and each library checks its version. */
#include "picture_libraries.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include "runtime/plan/toolkit.h"

#define TEXT(x)   #x
#define NUMBER(x) TEXT(x)
#if JPEG_LIB_VERSION >= 80
#  define JPEG_FILE "libjpeg.so.8"
#else
#  define JPEG_FILE "libjpeg.so." NUMBER(JPEG_LIB_VERSION)
#endif
#define PNG_FILE "libpng" NUMBER(PNG_LIBPNG_VER_SONUM) ".so." NUMBER(PNG_LIBPNG_VER_SONUM)

static const ampc_symbol jpeg_symbols[] = {
#define ROW(name) {#name, offsetof(JpegLibrary, name)},
    JPEG_FUNCTIONS(ROW)
#undef ROW
};
static const ampc_symbol png_symbols[] = {
#define ROW(name) {#name, offsetof(PngLibrary, name)},
    PNG_FUNCTIONS(ROW)
#undef ROW
};

enum { WHY = 300 };
static JpegLibrary jpeg;
static PngLibrary png;
static char jpeg_why[WHY], png_why[WHY]; /* empty: the library was loaded */
static pthread_once_t jpeg_once = PTHREAD_ONCE_INIT, png_once = PTHREAD_ONCE_INIT;

/* Loads a library; it stays loaded until the process ends. On failure `why` has the reason. */
static void load(const char *file, const ampc_symbol *symbols, size_t n, void *table, char *why)
{
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const char *missing = library ? ampc_bind(library, symbols, n, table) : NULL;
  if (!library) snprintf(why, WHY, "%s", dlerror());
  if (missing) snprintf(why, WHY, "%s has no %s", file, missing);
}

static void load_jpeg(void)
{
  load(JPEG_FILE, jpeg_symbols, sizeof jpeg_symbols / sizeof *jpeg_symbols, &jpeg, jpeg_why);
}

static void load_png(void)
{
  load(PNG_FILE, png_symbols, sizeof png_symbols / sizeof *png_symbols, &png, png_why);
}

ampc_status picture_jpeg_library(const JpegLibrary **out)
{
  pthread_once(&jpeg_once, load_jpeg);
  *out = &jpeg;
  if (!*jpeg_why) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED,
                   "JPEG pictures need libjpeg-turbo (Debian: libjpeg62-turbo): %s", jpeg_why);
}

ampc_status picture_png_library(const PngLibrary **out)
{
  pthread_once(&png_once, load_png);
  *out = &png;
  if (!*png_why) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED, "PNG pictures need libpng (Debian: libpng16-16): %s", png_why);
}
