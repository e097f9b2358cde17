/* Kernels to PTX or a cubin: `--emit=ptx`, `--emit=cubin`. How NVRTC is found and called stands in
 * runtime/cuda, whose JIT goes the same way. */
#include "emit.h"
#include "cuda/nvrtc_image.h"
#include <stdlib.h>

static bool emit_compiled(Compile *c, bool cubin, Text *out)
{
  const CudaLoaded *cuda;
  char why[CUDA_ERROR_ROOM];
  if (!cuda_load_nvrtc(&cuda, why)) {
    diag_error(c, E210, (Span){0}, "NVRTC is not on this machine, so there is no PTX to make");
    diag_help(c, "%s; or write CUDA C: ampc job.amp -o job.cu", why);
    return false;
  }
  Text text;
  text_init(&text, c->arena);
  emit_kernels(c, &text);
  const char *architecture = c->options.target;
  if (!cubin) /* PTX is for a virtual architecture */
    architecture = arena_printf(c->arena, "compute_%s", c->options.target + 3);
  NvrtcImage image;
  if (nvrtc_compile(cuda, text.at, architecture, &image))
    text_add(out, image.bytes, image.size);
  else
    diag_error(c, E210, (Span){0}, "%s", image.trouble ? image.trouble : "out of memory");
  bool good = image.bytes != NULL;
  free(image.bytes);
  free(image.trouble);
  return good;
}

bool emit_ptx(Compile *c, Text *out)
{
  return emit_compiled(c, false, out);
}

bool emit_cubin(Compile *c, Text *out)
{
  return emit_compiled(c, true, out);
}
