/* The search for NVIDIA's libraries: its order, the folder layouts, the message if a library is
 * missing. The test builds a library of its own; each place has a copy that returns a different
 * answer. */
#include "runner/jit/toolchain.h"
#include "common/toolkit.h"
#include <fcntl.h>
#include "temp.h"

typedef struct Table {
  int (*answer)(void);
} Table;
static const ampc_symbol symbols[] = {{"answer", offsetof(Table, answer)}};

/* Builds a library in a folder below the temporary one. */
static void put(const char *folder, const char *file, int answer)
{
  char command[600], text[200], path[600];
  const Toolchain *toolchain;
  snprintf(command, sizeof command, "mkdir -p '%s/%s'", temp_folder, folder);
  MUST(system(command) == 0);
  snprintf(path, sizeof path, "%s/%s/%s", temp_folder, folder, file);
  snprintf(text, sizeof text, "int answer(void) { return %d; }\n", answer);
  MUST(toolchain_find(&toolchain) == AMPC_OK);
  MUST(toolchain_build(toolchain, text, strlen(text), path, NULL) == AMPC_OK);
}

/* Makes a library one for another processor: changes e_machine of its ELF header. */
static void make_foreign(const char *path)
{
  int file = open(temp_path(path), O_RDWR);
  unsigned char machine;
  MUST(pread(file, &machine, 1, 18) == 1);
  machine ^= 0x55;
  MUST(pwrite(file, &machine, 1, 18) == 1 && close(file) == 0);
}

static void set(const char *name, const char *folder)
{
  setenv(name, temp_path(folder), 1);
}

static char why[AMPC_WHY_ROOM];

/* Returns the answer of the library that the search finds; 0: none is found. */
static int found(const char *stem)
{
  Table table;
  const ampc_library l = {stem, symbols, 1, 13, 12, "its package"};
  return ampc_library_open(&l, &table, why) ? table.answer() : 0;
}

/* Checks the order. Each line adds a place that the search tries before the previous one. */
static void test_order(void)
{
  put("py/bin", "python3", 0); /* any executable */
  put("py/lib/python3.11/site-packages/nvidia/some/lib", "libampca.so.12", 1);
  put("py/lib/python3.11/site-packages/nvidia/cu13/lib", "libampca.so.13", 2);
  put("py/lib/python3.9/site-packages/nvidia/cu13/lib", "libampca.so.13", 8);
  put("venv/lib64/python3.12/site-packages/nvidia/cu13/lib", "libampca.so.13", 3);
  put("home/targets/another-linux/lib", "libampca.so.13", 4);
  put("home/targets/x-linux/lib", "libampca.so.13", 9); /* is tried first */
  make_foreign("home/targets/x-linux/lib/libampca.so.13");
  put("path[1]/targets/aarch64-linux/lib", "libampca.so.13", 5);
  put("path[1]/targets/sbsa-linux/lib", "libampca.so.13", 9); /* the same processor */
  MUST(symlink("targets/aarch64-linux/lib", temp_path("path[1]/lib64")) == 0);
  put("given/nvidia/some/lib", "libampca.so.12", 6);
  CHECK(found("libampca") == 0);
  char *path = strdup(getenv("PATH"));
  set("PATH", "py/bin");
  CHECK(found("libampca") == 2); /* the newer library */
  set("VIRTUAL_ENV", "venv");
  CHECK(found("libampca") == 3);
  set("CUDA_HOME", "home");
  CHECK(found("libampca") == 4);
  set("CUDA_PATH", "path[1]");
  CHECK(found("libampca") == 5);
  ampc_toolkit_path(temp_path("given"));
  CHECK(found("libampca") == 6); /* an older version, but the option names it */
  char venv[300];
  snprintf(venv, sizeof venv, "%s/venv", temp_folder);
  ampc_toolkit_path(venv);
  CHECK(found("libampca") == 3);
  setenv("PATH", path, 1);
  free(path);
}

/* Checks that a file that is not a library does not end the search. */
static void test_damaged(void)
{
  put("damaged", "libampcb.so.13", 0);
  temp_write(temp_path("damaged/libampcb.so.13"), "nothing", 7);
  put("home/lib64", "libampcb.so.13", 7);
  ampc_toolkit_path(temp_path("damaged"));
  CHECK(found("libampcb") == 7);
}

static void test_nowhere(void)
{
  static const char *const told[] = {
      ("libampcnone.so.13 or .12 is not on this machine: install its "
       "package, or "),
      "--cuda-path /given",
      "the loader (LD_LIBRARY_PATH)",
      "CUDA_PATH /one",
      "CUDA_HOME /two",
      "VIRTUAL_ENV /three",
      "/usr/local/cuda*"};
  setenv("CUDA_PATH", "/one", 1);
  setenv("CUDA_HOME", "/two", 1);
  setenv("VIRTUAL_ENV", "/three", 1);
  ampc_toolkit_path("/given");
  CHECK(found("libampcnone") == 0);
  for (size_t i = 0; i < sizeof told / sizeof *told; i++)
    CHECK_MSG(strstr(why, told[i]), "no `%s` in: %s", told[i], why);
  const ampc_symbol lacks = {"question", 0};
  Table table;
  ampc_toolkit_path(temp_path("home"));
  CHECK(!ampc_library_open(&(ampc_library){"libampcb", &lacks, 1, 13, 12, ""}, &table, why));
  CHECK_MSG(strstr(why, "has no function question"), "%s", why);
}

/* Checks that the driver's limit changes only the advice about the toolkit's libraries. */
static void test_limit(void)
{
  Table table;
  const ampc_library l = {"libampcnone", symbols, 1, 9, 9, "its package"};
  ampc_toolkit_limit(12040);
  CHECK(!ampc_toolkit_open(&l, &table, why));
  CHECK_MSG(strstr(why, "libampcnone.so.12 is") && strstr(why, "newer driver") &&
                strstr(why, "CUDA 12.4"),
            "%s", why);
  CHECK(!ampc_library_open(&l, &table, why));
  CHECK_MSG(!strstr(why, "driver") && strstr(why, "install its package, or"), "%s", why);
  ampc_toolkit_limit(13000);
  CHECK(!ampc_toolkit_open(&l, &table, why));
  CHECK_MSG(strstr(why, ".so.13 or .12 is") && !strstr(why, "driver"), "%s", why);
}

int main(void)
{
  temp_open();
  unsetenv("CUDA_PATH");
  unsetenv("CUDA_HOME");
  unsetenv("VIRTUAL_ENV");
  test_order();
  test_damaged();
  test_nowhere();
  test_limit();
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", temp_folder);
  return system(command) != 0 || check_done();
}
