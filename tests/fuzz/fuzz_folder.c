/* Fuzz target for amp import of folders and GGUF files. The input is a GGUF file, or else a
 * config.json. For any bytes, the reader must return a status. If it reads a model, the job must
 * have no syntax error: no name of the file becomes code. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "compiler/cli/options.h"
#include "compiler/driver.h"
#include "runner/folder/folder.h"

static char folder[] = "/tmp/fuzz_folder.XXXXXX", config[64];

static void remove_folder(void)
{
  unlink(config);
  rmdir(folder);
}

/* Writes the input to a file. Returns what to import. */
static const char *write_input(const uint8_t *data, size_t size)
{
  static char path[64];
  static int file = -1;
  if (file < 0) {
    if (!mkdtemp(folder)) abort();
    snprintf(config, sizeof config, "%s/config.json", folder);
    atexit(remove_folder);
    file = memfd_create("input", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  }
  if (size > 4 && memcmp(data, "GGUF", 4) == 0) {
    if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    return path;
  }
  FILE *to = fopen(config, "wb");
  if (!to || fwrite(data, 1, size, to) != size || fclose(to)) abort();
  return folder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  Arena *arena = arena_create();
  Folder f;
  if (folder_open(arena, write_input(data, size), "/nonexistent", &f) == AMPC_OK) {
    const char *text = folder_job(&f);
    Options options = options_default();
    options.silent = true;
    Compile *c = compile_create(&options);
    if (!compile_add_file(c, "fuzz.amp", text, strlen(text))) abort();
    compile_destroy(c);
  }
  folder_close(&f);
  arena_destroy(arena);
  return 0;
}
