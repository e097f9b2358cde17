/* Compiles kernels to PTX or a cubin: `--emit=ptx`, `--emit=cubin`. compiler/nvrtc finds and calls
 * NVRTC, for this file and for the JIT. */
#include "kernels.h"
#include "compiler/diag/diag.h"
#include "compiler/nvrtc/nvrtc.h"
#include <stdlib.h>
#include <string.h>

/* Reports a message. A message of ampc is one line; NVRTC may return a log of many lines. */
static void report_trouble(Compile *c, const char *trouble)
{
  int n = (int)strcspn(trouble, "\n");
  diag_error(c, E210, (Span){0}, "%.*s", n, trouble);
  while (trouble[n]) {
    trouble += n + 1;
    n = (int)strcspn(trouble, "\n");
    if (n) diag_note(c, (Span){0}, "%.*s", n, trouble);
  }
}

/* Compiles for `arch`; `report` may be NULL. compiler/nvrtc allocates the image, the report and the
 * message with malloc; this function frees them. */
bool emit_report(Compile *c, const Text *kernels, const char *arch, Text *report, Text *out)
{
  const NvrtcApi *nvrtc;
  char why[AMPC_WHY_ROOM];
  if (!nvrtc_load(&nvrtc, why)) {
    diag_error(c, E210, (Span){0}, "NVRTC is not on this machine, so there is no PTX to make");
    diag_help(c, "%s; or write CUDA C: ampc job.amp -o job.cu", why);
    return false;
  }
  NvrtcImage image;
  bool good = report ? nvrtc_report(nvrtc, kernels->at, arch, &image)
                     : nvrtc_compile(nvrtc, kernels->at, arch, &image);
  if (good)
    text_add(out, image.bytes, image.size);
  else if (!image.trouble || !emit_own_mistakes(c, image.trouble))
    report_trouble(c, image.trouble ? image.trouble : "out of memory");
  if (good && report) text_puts(report, image.report);
  free(image.bytes);
  free(image.report);
  free(image.trouble);
  return good;
}

bool emit_nvrtc(Compile *c, const Text *kernels, const char *arch, NvrtcKind kind, Text *out)
{
  if (kind == NVRTC_ptx) /* PTX is for a virtual architecture */
    arch = arena_printf(c->arena, "compute_%s", arch + strlen("sm_"));
  return emit_report(c, kernels, arch, NULL, out);
}

static bool emit_compiled(Compile *c, NvrtcKind kind, Text *out)
{
  Text kernels = text_new(c->arena);
  emit_kernels(c, &kernels);
  return emit_nvrtc(c, &kernels, c->options.target, kind, out);
}

bool emit_ptx(Compile *c, Text *out)
{
  return emit_compiled(c, NVRTC_ptx, out);
}

bool emit_cubin(Compile *c, Text *out)
{
  return emit_compiled(c, NVRTC_cubin, out);
}
