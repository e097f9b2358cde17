/* Loads libjpeg-turbo and libpng in the versions whose headers this was built with: their structs
 * differ between versions, and each library checks its version. Of libwebp and libtiff, only
 * functions with the same arguments in all versions of that name are called. */
#include "picture_libraries.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include "common/toolkit.h"

#define TEXT(x)   #x
#define NUMBER(x) TEXT(x)
#if JPEG_LIB_VERSION >= 80
#  define JPEG_FILE "libjpeg.so.8"
#else
#  define JPEG_FILE "libjpeg.so." NUMBER(JPEG_LIB_VERSION)
#endif
#define PNG_FILE "libpng" NUMBER(PNG_LIBPNG_VER_SONUM) ".so." NUMBER(PNG_LIBPNG_VER_SONUM)

enum { WHY = 300 };

typedef struct Library {
  const char *file, *needed; /* needed: what a message says if it is missing */
  const ampc_symbol *symbols;
  size_t n;
  void *table;
  atomic_bool tried;
  char why[WHY]; /* empty: the library was loaded */
} Library;

/* Loads a library once; it stays loaded until the process ends. */
static ampc_status use(Library *l)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (!atomic_load(&l->tried)) {
    pthread_mutex_lock(&lock);
    if (!atomic_load(&l->tried)) {
      void *library = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
      const char *missing = library ? ampc_bind(library, l->symbols, l->n, l->table) : NULL;
      if (!library) snprintf(l->why, WHY, "%s", dlerror());
      if (missing) snprintf(l->why, WHY, "%s has no %s", l->file, missing);
      atomic_store(&l->tried, true);
    }
    pthread_mutex_unlock(&lock);
  }
  return *l->why ? ampc_fail(AMPC_RUN_FAILED, "%s: %s", l->needed, l->why) : AMPC_OK;
}

ampc_status picture_jpeg_library(const JpegLibrary **out)
{
#define ROW(name) {#name, offsetof(JpegLibrary, name)},
  static const ampc_symbol symbols[] = {JPEG_FUNCTIONS(ROW)};
#undef ROW
  static JpegLibrary table;
  static Library library = {.file = JPEG_FILE,
                            .needed = "JPEG pictures need libjpeg-turbo (Debian: libjpeg62-turbo)",
                            .symbols = symbols,
                            .n = sizeof symbols / sizeof *symbols,
                            .table = &table};
  *out = &table;
  return use(&library);
}

ampc_status picture_png_library(const PngLibrary **out)
{
#define ROW(name) {#name, offsetof(PngLibrary, name)},
  static const ampc_symbol symbols[] = {PNG_FUNCTIONS(ROW)};
#undef ROW
  static PngLibrary table;
  static Library library = {.file = PNG_FILE,
                            .needed = "PNG pictures need libpng (Debian: libpng16-16)",
                            .symbols = symbols,
                            .n = sizeof symbols / sizeof *symbols,
                            .table = &table};
  *out = &table;
  return use(&library);
}

ampc_status picture_webp_library(const WebpLibrary **out)
{
#define ROW(name) {#name, offsetof(WebpLibrary, name)},
  static const ampc_symbol symbols[] = {WEBP_FUNCTIONS(ROW)};
#undef ROW
  static WebpLibrary table;
  static Library library = {.file = "libwebp.so.7",
                            .needed = "WebP pictures need libwebp (Debian: libwebp7)",
                            .symbols = symbols,
                            .n = sizeof symbols / sizeof *symbols,
                            .table = &table};
  *out = &table;
  return use(&library);
}

ampc_status picture_tiff_library(const TiffLibrary **out)
{
#define ROW(name) {#name, offsetof(TiffLibrary, name)},
  static const ampc_symbol symbols[] = {TIFF_FUNCTIONS(ROW)};
#undef ROW
  static TiffLibrary table;
  static Library library = {.file = "libtiff.so.6",
                            .needed = "TIFF pictures need libtiff 4.5 (Debian: libtiff6)",
                            .symbols = symbols,
                            .n = sizeof symbols / sizeof *symbols,
                            .table = &table};
  *out = &table;
  return use(&library);
}
