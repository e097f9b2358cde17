/* Loads libjpeg-turbo and libpng in the versions whose headers this was built with: their structs
 * differ between versions, and each library checks its version. Of libwebp and libtiff, only
 * functions with the same arguments in all versions of that name are called. */
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

enum { WHY = 300 };
/* Loads a library; it stays loaded until the process ends. On failure `why` has the reason. */
static void load(const char *file, const ampc_symbol *symbols, size_t n, void *table, char *why)
{
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const char *missing = library ? ampc_bind(library, symbols, n, table) : NULL;
  if (!library) snprintf(why, WHY, "%s", dlerror());
  if (missing) snprintf(why, WHY, "%s has no %s", file, missing);
}

/* Defines picture_NAME_library, which loads the library once. */
#define LIBRARY(name, Table, FUNCTIONS, file, needed)                                              \
  static const ampc_symbol name##_symbols[] = {FUNCTIONS(name##_ROW)};                             \
  static Table name;                                                                               \
  static char name##_why[WHY]; /* empty: the library was loaded */                                 \
  static void load_##name(void)                                                                    \
  {                                                                                                \
    load(file, name##_symbols, sizeof name##_symbols / sizeof *name##_symbols, &name, name##_why); \
  }                                                                                                \
  ampc_status picture_##name##_library(const Table **out)                                          \
  {                                                                                                \
    static pthread_once_t once = PTHREAD_ONCE_INIT;                                                \
    pthread_once(&once, load_##name);                                                              \
    *out = &name;                                                                                  \
    if (!*name##_why) return AMPC_OK;                                                              \
    return ampc_fail(AMPC_RUN_FAILED, "%s: %s", needed, name##_why);                               \
  }

#define jpeg_ROW(function) {#function, offsetof(JpegLibrary, function)},
#define png_ROW(function)  {#function, offsetof(PngLibrary, function)},
#define webp_ROW(function) {#function, offsetof(WebpLibrary, function)},
#define tiff_ROW(function) {#function, offsetof(TiffLibrary, function)},
LIBRARY(jpeg, JpegLibrary, JPEG_FUNCTIONS, JPEG_FILE,
        "JPEG pictures need libjpeg-turbo (Debian: libjpeg62-turbo)")
LIBRARY(png, PngLibrary, PNG_FUNCTIONS, PNG_FILE, "PNG pictures need libpng (Debian: libpng16-16)")
LIBRARY(webp, WebpLibrary, WEBP_FUNCTIONS, "libwebp.so.7",
        "WebP pictures need libwebp (Debian: libwebp7)")
LIBRARY(tiff, TiffLibrary, TIFF_FUNCTIONS, "libtiff.so.6",
        "TIFF pictures need libtiff 4.5 (Debian: libtiff6)")
