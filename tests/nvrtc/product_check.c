/* Compiles a kernel that the runtime contains as PTX (runtime/cuda/product.cu, kept.cu) with NVRTC.
 *
 *   product_check TEXT PTX KERNEL
 *
 * checks that PTX is what NVRTC makes of TEXT, if this NVRTC made it, and that the kernel spills on
 * no GPU.
 *
 *   product_check --rewrite TEXT
 *
 * prints the PTX.
 *
 * NVRTC's PTX names the PTX version of its own driver. These kernels use only older instructions,
 * so the PTX names an older version, which every driver accepts for every GPU. test_mock_device.c
 * checks that with ptxas. The exit status is 77 without NVRTC. */
#include "cubin.h"
#include "compiler/base/arena.h"
#include "compiler/base/embedded.h"
#include "compiler/nvrtc/nvrtc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, WRONG = 5 };

static const char *const oldest[][2] = {{".version ", "6.3"}, {".target ", "sm_70"}};

static void read_file(const char *path, Text *out)
{
  FILE *f = fopen(path, "rb");
  char part[4096];
  if (!f) {
    fprintf(stderr, "product_check: no %s\n", path);
    exit(WRONG);
  }
  for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) text_add(out, part, n);
  fclose(f);
}

/* Adds a helper of templates/device.cuh. */
static void add_helper(const char *name, Text *out)
{
  char mark[64];
  snprintf(mark, sizeof mark, "// --- %s\n", name);
  const char *from = strstr(embedded_find("device.cuh")->text, mark);
  const char *end = from ? strstr(from + 1, "// --- ") : NULL;
  if (!end) exit(WRONG);
  text_add(out, from, (size_t)(end - from));
}

/* Reads the kernel's text, after the helpers that kept.cu calls. */
static void read_kernel(const char *path, Text *out)
{
  text_puts(out, "#define DEVICE static __device__\ntypedef unsigned philox_word;\n");
  add_helper("ampc_philox", out);
  add_helper("ampc_drawn", out);
  read_file(path, out);
}

static void compile(const char *text, const char *architecture, NvrtcImage *out)
{
  const NvrtcApi *nvrtc;
  char why[AMPC_WHY_ROOM];
  if (!nvrtc_load(&nvrtc, why)) {
    fprintf(stderr, "skipped: %s\n", why);
    exit(SKIPPED);
  }
  if (nvrtc_compile(nvrtc, text, architecture, out)) return;
  fprintf(stderr, "FAILED: %s: %s\n", architecture, out->trouble);
  exit(WRONG);
}

/* Makes NVRTC's PTX without empty lines, with the oldest version and target. */
static void make_ptx(const char *text, Text *out)
{
  NvrtcImage image;
  compile(text, "compute_75", &image);
  const char *end = image.bytes + image.size;
  for (const char *s = image.bytes, *next; s < end && *s; s = next) {
    const char *stop = memchr(s, '\n', (size_t)(end - s));
    size_t n = (size_t)((stop ? stop : end) - s);
    next = s + n + 1;
    for (int i = 0; i < 2; i++)
      if (n > strlen(oldest[i][0]) && memcmp(s, oldest[i][0], strlen(oldest[i][0])) == 0) {
        text_printf(out, "%s%s\n", oldest[i][0], oldest[i][1]);
        n = 0;
      }
    if (n) text_printf(out, "%.*s\n", (int)n, s);
  }
  free(image.bytes);
}

/* True if the lines "// Compiler Build ID: CL-..." are the same. */
static bool same_compiler(const char *a, const char *b)
{
  static const char mark[] = "// Compiler Build ID:";
  a = strstr(a, mark), b = strstr(b, mark);
  return a && b && strcspn(a, "\n") == strcspn(b, "\n") && !memcmp(a, b, strcspn(a, "\n"));
}

static int spills(const char *text, const char *kernel)
{
  static const char *const architectures[] = {"sm_75",  "sm_80",  "sm_87",  "sm_90",
                                              "sm_100", "sm_110", "sm_120", "sm_121"};
  int wrong = 0;
  const NvrtcApi *nvrtc;
  char why[AMPC_WHY_ROOM], known[24];
  for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
    NvrtcImage image;
    KernelNeeds n = {0};
    if (!nvrtc_load(&nvrtc, why) || !nvrtc_architecture(nvrtc, atoi(architectures[i] + 3), known) ||
        strcmp(known, architectures[i]) != 0)
      continue; /* CUDA 12 has no sm_110 */
    compile(text, architectures[i], &image);
    bool found = cubin_needs(image.bytes, image.size, kernel, &n);
    if (!found || n.local || n.registers == 0 || n.registers > 64) {
      fprintf(stderr, "FAILED: %s: %u registers, %u bytes of local memory\n", architectures[i],
              n.registers, n.local);
      wrong++;
    }
    free(image.bytes);
  }
  return wrong;
}

int main(int argc, char **argv)
{
  bool rewrite = argc == 3 && strcmp(argv[1], "--rewrite") == 0;
  if (!rewrite && argc != 4) return 2;
  Arena *arena = arena_create();
  Text text, kept, made;
  text_init(&text, arena);
  text_init(&kept, arena);
  text_init(&made, arena);
  read_kernel(argv[rewrite ? 2 : 1], &text);
  make_ptx(text.at, &made);
  int wrong = 0;
  if (rewrite) {
    fputs(made.at, stdout);
  } else {
    read_file(argv[2], &kept);
    if (same_compiler(kept.at, made.at) && strcmp(kept.at, made.at) != 0) {
      fprintf(stderr, "FAILED: %s is not what NVRTC makes of %s: product_check --rewrite\n",
              argv[2], argv[1]);
      wrong++;
    }
    wrong += spills(text.at, argv[3]);
  }
  arena_destroy(arena);
  return wrong ? WRONG : 0;
}
