/* NVRTC without CUDA: it compiles the kernels as C for this machine. It replaces templates/cuda.cuh
 * in the text by templates/cpu.h and columns_cpu.h, and calls the C compiler like the runner does
 * for the CPU, so the results have the bits of the CPU's kernels. Only the real NVRTC can check
 * that the text is CUDA. MOCK_NVRTC_FAIL=1       nothing compiles           MOCK_NVRTC_ARCH=n
 * images are for sm_n MOCK_NVRTC_VERSION=n    13990, which no real one has, because it is part of
 * the cache key */
#include "mock.h"
#include "compiler/base/embedded.h"
#include "runner/jit/toolchain.h"
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PARAMETERS = 512 };
enum { /* NvrtcResult */
       OUT_OF_MEMORY = 1,
       INVALID_INPUT = 3,
       INVALID_PROGRAM = 4,
       INVALID_OPTION = 5,
       COMPILATION = 6,
};

struct _nvrtcProgram {
  char *text, log[1024];
  char *image; /* NULL: the program is not compiled */
  size_t size;
  bool is_virtual; /* the image stands for PTX */
};

static long setting(const char *name, long otherwise)
{
  const char *text = getenv(name);
  return text && *text ? strtol(text, NULL, 10) : otherwise;
}

NvrtcResult nvrtcVersion(int *major, int *minor)
{
  long version = setting("MOCK_NVRTC_VERSION", 13990);
  *major = (int)(version / 1000);
  *minor = (int)(version % 1000 / 10);
  return 0;
}

const char *nvrtcGetErrorString(NvrtcResult result)
{
  static const char *const names[] = {"NVRTC_SUCCESS",
                                      "NVRTC_ERROR_OUT_OF_MEMORY",
                                      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT",
                                      "NVRTC_ERROR_INVALID_PROGRAM",
                                      "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION"};
  return result >= 0 && result <= COMPILATION ? names[result] : "NVRTC_ERROR unknown";
}

/* ---- architectures ---- */

static const int all_archs[] = {70, 75, 80, 86, 87, 89, 90, 100, 120};

/* Lists the version's architectures. CUDA 13 dropped sm_70, CUDA 12.8 added sm_100. */
static int supported(int *out)
{
  long version = setting("MOCK_NVRTC_VERSION", 13990);
  int n = 0;
  for (size_t i = 0; i < sizeof all_archs / sizeof *all_archs; i++) {
    if ((version >= 13000 && all_archs[i] < 75) || (version < 12080 && all_archs[i] >= 100))
      continue;
    if (out) out[n] = all_archs[i];
    n++;
  }
  return n;
}

NvrtcResult nvrtcGetNumSupportedArchs(int *out)
{
  *out = supported(NULL);
  return 0;
}

NvrtcResult nvrtcGetSupportedArchs(int *out)
{
  supported(out);
  return 0;
}

/* ---- programs ---- */

NvrtcResult nvrtcCreateProgram(NvrtcProgram *out, const char *text, const char *name, int n_headers,
                               const char *const *headers, const char *const *names)
{
  (void)name;
  if (!text || n_headers || headers || names) return INVALID_INPUT;
  NvrtcProgram p = calloc(1, sizeof *p);
  if (!p) return OUT_OF_MEMORY;
  p->text = strdup(text);
  *out = p;
  return p->text ? 0 : OUT_OF_MEMORY;
}

NvrtcResult nvrtcDestroyProgram(NvrtcProgram *program)
{
  if (!program || !*program) return INVALID_PROGRAM;
  free((*program)->text);
  free((*program)->image);
  free(*program);
  *program = NULL;
  return 0;
}

static NvrtcResult complain(NvrtcProgram p, NvrtcResult result, const char *what,
                            const char *detail)
{
  snprintf(p->log, sizeof p->log, "mock nvrtc: %s %s", what, detail);
  return result;
}

/* ---- from CUDA to C ---- */

/* Macros of templates/cuda.cuh for several parts in one launch, which cpu.h lacks. */
static const char only_cuda[] =
    "#define ON_BLOCK(k) \\\n"
    "  if (block_index == (k)) \\\n"
    "    for (unsigned on_k = block_index, on_n = (block_index = 0, block_count), \\\n"
    "                  on_once = (block_count = 1); \\\n"
    "         on_once; on_once = 0, block_index = on_k, block_count = on_n)\n"
    "#define LEAVE_FROM_BLOCK(k) \\\n"
    "  if (block_index >= (k)) return\n";

/* The macros of templates/tiles_cuda.cuh for a block of one thread: first the one that a kernel
 * without tiles may use, too. tiles_cpu.h counts in vectors and cannot replace it, because tiles
 * have the sizes that suit a GPU. */
static const char one_thread_room[] =
    "\n#undef BLOCK_ROOM\n"
    "#define BLOCK_ROOM(T, name, n) T name[n] __attribute__((aligned(64)))\n";
static const char one_thread_tiles[] =
    "#define UNUSED __attribute__((unused))\n#undef BLOCK_LOOP\n#undef BLOCK_EACH\n#undef "
    "BLOCK_CELLS\n"
    "#undef TILE_SUMS\n#undef TILE_CLEAR\n#undef TILE_EACH\n"
    "#define BLOCK_LOOP(T, unit, n) for (T unit = (T)block_index; unit < (n); unit += "
    "block_count)\n"
    "#define BLOCK_EACH(i, n) for (int i = 0; i < (n); i++)\n"
    "#define BLOCK_CELLS(row, c, rows, columns) \\\n"
    "  for (int row = 0; row < (rows); row++) for (int c = 0; c < (columns); c++)\n"
    "#define TILE_SUMS(T, name, rows, lanes) T name[(rows) * (lanes)]\n"
    "#define TILE_CLEAR(name, rows, lanes) \\\n"
    "  for (int name##_at = 0; name##_at < (rows) * (lanes); name##_at++) name[name##_at] = 0\n"
    "#define TILE_EACH(row, lane, at, rows, used, lanes, width, ...) \\\n"
    "  for (int row = 0; row < (used); row++) \\\n"
    "    for (int lane = 0; lane < (width); lane++) { \\\n"
    "      const int at UNUSED = row * (lanes) + lane; \\\n"
    "      __VA_ARGS__ \\\n"
    "    }\n"
    "static void whole_product(int rows, int used, int lanes, int width, int depth, real *sum,\n"
    "                          const real *a, int a_row, int a_step, const real *b)\n"
    "{\n"
    "  (void)rows;\n"
    "  for (int i = 0; i < used; i++)\n"
    "    for (int k = 0; k < depth; k++)\n"
    "      for (int j = 0; j < width; j++)\n"
    "        sum[i * lanes + j] =\n"
    "            ampc_fma(a[i * a_row + k * a_step], b[k * lanes + j], sum[i * lanes + j]);\n"
    "}\n"
    "static void all_lanes_most(real *most, const real *tile, int used, int lanes, int width)\n"
    "{\n"
    "  for (int i = 0; i < used; i++)\n"
    "    for (int j = 0; j < width; j++) most[j] = ampc_max(tile[i * lanes + j], most[j]);\n"
    "}\n"
    "static void all_lanes_add(real *total, const real *tile, int used, int lanes, int width)\n"
    "{\n"
    "  for (int i = 0; i < used; i++)\n"
    "    for (int j = 0; j < width; j++) total[j] += tile[i * lanes + j];\n"
    "}\n"
    "#define tile_product whole_product\n"
    "#define tile_most all_lanes_most\n"
    "#define tile_add all_lanes_add\n";

/* Writes the text after the prelude. The macros for one thread follow the text's own. */
static void put_rest(FILE *out, const char *text)
{
  const char *kernels = strstr(text, "\n__global__ void ");
  if (!kernels || !strstr(text, "#define BLOCK_ROOM(")) {
    fputs(text, out);
    return;
  }
  fputs("static const struct { unsigned x; } threadIdx;\n", out);
  fwrite(text, 1, (size_t)(kernels - text), out);
  fputs(one_thread_room, out);
  if (strstr(text, "#define BLOCK_LOOP(")) fputs(one_thread_tiles, out);
  fputs(kernels, out);
}

/* Writes the C text, with cpu.h as the prelude. */
static bool put_c_text(FILE *out, const char *text)
{
  const char *from = strstr(text, "#define DEVICE static __device__ __forceinline__\n");
  const char *to =
      from ? strstr(from, "/* the code below is the same on every machine */\n") : NULL;
  if (!to) return false;
  fwrite(text, 1, (size_t)(from - text), out);
  for (const EmbeddedFile *f = embedded_files; f->name; f++) fwrite(f->text, 1, f->size, out);
  fputs(only_cuda, out);
  fputs("#define __launch_bounds__(...)\n", out);
  put_rest(out, to);
  return true;
}

/* Writes a function that calls `void NAME(type *a, unsigned n)` with an array of arguments, and the
 * alignment of each argument (0 for a number). */
static void put_thunk(FILE *out, const char *name, size_t n, const char *parameters)
{
  int count = 0;
  bool number[MOST_PARAMETERS];
  fprintf(out, "static const unsigned char %.*s_align[] = {", (int)n, name);
  for (const char *s = parameters; *s != ')'; count++) {
    size_t type = strcspn(s, "*,)"), size = strcspn(s, ",)");
    number[count] = type == size;
    if (number[count])
      fputs("0, ", out);
    else
      fprintf(out, "_Alignof(%.*s), ", (int)type, s);
    s += size;
    s += *s == ',';
  }
  fprintf(out, "0};\nstatic void %.*s_run(void *const *a, unsigned block, unsigned n)\n{\n", (int)n,
          name);
  fprintf(out, "  block_index = block;\n  block_count = n;\n  %.*s(", (int)n, name);
  for (int i = 0; i < count; i++)
    fprintf(out, "%s%sa[%d]", i ? ", " : "", number[i] ? "(unsigned)(unsigned long)" : "", i);
  fputs(");\n}\n", out);
}

/* Calls `put` for each kernel of the text, with its name and its parameters. */
static void each_kernel(FILE *out, const char *text,
                        void (*put)(FILE *out, const char *name, size_t n, const char *parameters))
{
  static const char start[] = "\n__global__ void ";
  for (const char *s = text; (s = strstr(s, start));) {
    const char *name = s + sizeof start - 1;
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_') n++;
    s = name + n;
    put(out, name, n, s + 1);
  }
}

static void put_entry(FILE *out, const char *name, size_t n, const char *parameters)
{
  (void)parameters;
  fprintf(out, "  {\"%.*s\", %.*s_run, sizeof %.*s_align - 1, %.*s_align},\n", (int)n, name, (int)n,
          name, (int)n, name, (int)n, name);
}

static bool translate(const struct _nvrtcProgram *p, int arch, char **out, size_t *size)
{
  const char *text = p->text;
  FILE *f = open_memstream(out, size);
  bool known = f && put_c_text(f, text);
  if (known) {
    each_kernel(f, text, put_thunk);
    fprintf(f, "const int mock_arch[] = {%d, %d, %ld};\n", arch, p->is_virtual,
            setting("MOCK_NVRTC_VERSION", 13990));
    fputs("const struct {\n  const char *name;\n  void (*run)(void *const *, unsigned, unsigned);\n"
          "  unsigned n;\n  const unsigned char *align;\n} mock_kernels[] = {\n",
          f);
    each_kernel(f, text, put_entry);
    fputs("  {0, 0, 0, 0}};\n", f);
  }
  if (f) fclose(f);
  return known;
}

/* ---- compiling ---- */

/* Returns the architecture, or 0 with a log. Requires --fmad=false, because the CPU's kernels do
 * not contract products. */
static int read_options(NvrtcProgram p, int n, const char *const *options)
{
  static const char real[] = "--gpu-architecture=sm_";
  static const char virtual[] = "--gpu-architecture=compute_";
  int arch = 0;
  bool exact = false;
  for (int i = 0; i < n; i++) {
    const char *o = options[i];
    bool is_virtual = strncmp(o, virtual, sizeof virtual - 1) == 0;
    p->is_virtual |= is_virtual;
    if (is_virtual || strncmp(o, real, sizeof real - 1) == 0)
      arch = atoi(strchr(o, '_') + 1);
    else if (strcmp(o, "--fmad=false") == 0)
      exact = true;
    else if (strcmp(o, "--std=c++17") != 0 && strcmp(o, "-lineinfo") != 0)
      return complain(p, 0, "unknown option", o);
  }
  if (!exact) return complain(p, 0, "without --fmad=false the bits are not those of the CPU", "");
  int known[16], count = supported(known);
  for (int i = 0; i < count; i++)
    if (known[i] == arch) return arch;
  return complain(p, 0, "invalid value for --gpu-architecture", "");
}

static bool read_image(NvrtcProgram p, const char *path)
{
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0) return false;
  if (fstat(file, &about) == 0) p->image = malloc((size_t)about.st_size);
  p->size = p->image ? (size_t)about.st_size : 0;
  bool good = p->image && read(file, p->image, p->size) == (ssize_t)p->size;
  close(file);
  return good;
}

static bool build(NvrtcProgram p, const char *text, size_t size)
{
  char path[] = "/tmp/mock-image-XXXXXX";
  int file = mkstemp(path);
  const Toolchain *compiler;
  if (file < 0) return false;
  close(file);
  bool good = toolchain_find(&compiler) == AMPC_OK &&
              toolchain_build(compiler, text, size, path, NULL) == AMPC_OK && read_image(p, path);
  unlink(path);
  return good;
}

NvrtcResult nvrtcCompileProgram(NvrtcProgram program, int n, const char *const *options)
{
  if (!program) return INVALID_PROGRAM;
  int arch = read_options(program, n, options);
  if (!arch) return INVALID_OPTION;
  if (setting("MOCK_NVRTC_FAIL", 0))
    return complain(program, COMPILATION, "kernels.cu(1): a planted mistake", "");
  char *text = NULL;
  size_t size = 0;
  NvrtcResult result = 0;
  if (!translate(program, (int)setting("MOCK_NVRTC_ARCH", arch), &text, &size))
    result = complain(program, COMPILATION, "the text has no prelude of templates/cuda.cuh", "");
  else if (!build(program, text, size))
    result = complain(program, COMPILATION, "as C:", ampc_last_error());
  free(text);
  return result;
}

/* ---- results ---- */

NvrtcResult nvrtcGetProgramLogSize(NvrtcProgram program, size_t *out)
{
  *out = strlen(program->log) + 1;
  return 0;
}

NvrtcResult nvrtcGetProgramLog(NvrtcProgram program, char *out)
{
  memcpy(out, program->log, strlen(program->log) + 1);
  return 0;
}

static NvrtcResult image_size(NvrtcProgram p, bool is_virtual, size_t *out)
{
  bool have = p->image && p->is_virtual == is_virtual;
  *out = have ? p->size + (is_virtual ? 1 : 0) : 0;
  return have ? 0 : INVALID_PROGRAM;
}

static NvrtcResult image(NvrtcProgram p, bool is_virtual, char *out)
{
  if (!p->image || p->is_virtual != is_virtual) return INVALID_PROGRAM;
  memcpy(out, p->image, p->size);
  if (is_virtual) out[p->size] = 0; /* PTX is text, so its size includes a final NUL */
  return 0;
}

NvrtcResult nvrtcGetCUBINSize(NvrtcProgram program, size_t *out)
{
  return image_size(program, false, out);
}

NvrtcResult nvrtcGetCUBIN(NvrtcProgram program, char *out)
{
  return image(program, false, out);
}

NvrtcResult nvrtcGetPTXSize(NvrtcProgram program, size_t *out)
{
  return image_size(program, true, out);
}

NvrtcResult nvrtcGetPTX(NvrtcProgram program, char *out)
{
  return image(program, true, out);
}
