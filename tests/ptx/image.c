/* Compiles kernels to PTX and decodes them: see image.h. */
#include "image.h"
#include "compiler/kernel/kernels.h"
#include "compiler/nvrtc/nvrtc.h"
#include "tests/simt/build.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  char name[PTX_TARGETS][24];
  uint32_t n;
} targets;

static unsigned n_calling; /* kernels that call functions */

uint32_t ptx_choose(const char *list)
{
  const NvrtcApi *nvrtc;
  char why[AMPC_WHY_ROOM], best[24], *end;
  if (!nvrtc_load(&nvrtc, why)) {
    fprintf(stderr, "skipped: %s\n", why);
    return 0;
  }
  for (const char *s = list; strncmp(s, "sm_", 3) == 0 && targets.n < PTX_TARGETS; s = end + 1) {
    int capability = (int)strtol(s + 3, &end, 10);
    char *name = targets.name[targets.n];
    snprintf(name, sizeof targets.name[0], "sm_%d", capability);
    if (nvrtc_architecture(nvrtc, capability, best) && strcmp(best, name) == 0)
      targets.n++;
    else
      fprintf(stderr, "skipped: this NVRTC does not know %s\n", name);
    if (*end != ',') break;
  }
  return targets.n;
}

const char *ptx_target(uint32_t n)
{
  return targets.name[n];
}

/* Returns the text of a kernel after its name. */
static const char *text_of(const char *text, const char *name, size_t *out_size)
{
  size_t n = strlen(name);
  for (const char *s = text; (s = strstr(s, ".entry ")) != NULL;) {
    s += strlen(".entry ");
    if (strncmp(s, name, n) != 0 || s[n] != '(') continue;
    const char *end = strstr(s, "\n}");
    *out_size = end ? (size_t)(end - s) : 0;
    return end ? s : NULL;
  }
  return NULL;
}

static bool same_text(const char *a, const char *b, const char *name)
{
  size_t n = 0, m = 0;
  const char *s = text_of(a, name, &n), *t = text_of(b, name, &m);
  return s && t && n == m && memcmp(s, t, n) == 0;
}

/* Copies a text without its functions and the kernels that call them, which the interpreter cannot
 * execute: for sin of a large f64 CUDA has a function with local memory. */
static const char *without_calls(Arena *arena, const char *text)
{
  Text out = text_new(arena);
  if (!strstr(text, "\n.func ")) return text;
  while (*text) {
    size_t n = strcspn(text, "\n") + 1;
    bool function = strncmp(text, ".func ", 6) == 0;
    if (function || strncmp(text, ".visible .entry ", 16) == 0) {
      const char *brace = strstr(text, "\n}"), *end = function ? strstr(text, "\n;") : NULL;
      if (!end || (brace && brace < end)) end = brace;
      n = end ? (size_t)(end - text) + 2 : strlen(text);
      if (function || memmem(text, n, "\tcall", 5)) text += n, n = 0;
    }
    text_add(&out, text, n);
    text += n;
  }
  return out.at;
}

unsigned ptx_calling(void)
{
  return n_calling;
}

static ampc_status find_image(Arena *arena, const PtxText *ptx, const char *name, PtxImage *out)
{
  const char *why = "not in the PTX";
  const PtxKernel *k = ptx_find(ptx, name);
  if (k && ptx_decode(arena, k, out, &why)) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED, "ptx: %s: %s", name, why);
}

ampc_status ptx_load_text(Arena *arena, const char *text, const char *name, PtxImage *out)
{
  PtxText ptx;
  const char *why;
  if (!ptx_read(arena, text, &ptx, &why)) return ampc_fail(AMPC_RUN_FAILED, "ptx: %s", why);
  return find_image(arena, &ptx, name, out);
}

void ptx_add_text(Compile *c, uint32_t target, uint32_t n, Text *out)
{
  const char *was = c->options.target;
  simt_use_target(c, targets.name[target]);
  text_printf(out, "%s:", targets.name[target]);
  emit_some_kernels(c, 0, n, out);
  for (uint32_t k = 0; k < n; k++) {
    Geometry at = command_of(c->graph, kernel_owner(c->graph, k))->whole.at;
    text_printf(out, " %u %u", at.grid, at.block);
  }
  simt_use_target(c, was);
}

ampc_status ptx_load(Compile *c, TextEdit *edit, void *data, const char *const names[], uint32_t n,
                     const PtxImage **images[PTX_TARGETS])
{
  Text text[PTX_TARGETS];
  const char *was = c->options.target, *why;
  ampc_status status = AMPC_OK;
  const Graph *g = c->graph;
  Geometry *at = arena_array(c->arena, Geometry, n + 1);
  for (uint32_t t = 0; t < targets.n && !status; t++) {
    Text kernels = text_new(c->arena);
    PtxText ptx;
    size_t size;
    text_init(&text[t], c->arena);
    simt_use_target(c, targets.name[t]);
    emit_some_kernels(c, 0, n, &kernels);
    bool good = emit_nvrtc(c, &kernels, targets.name[t], NVRTC_ptx, &text[t]);
    for (uint32_t k = 0; k < n; k++) at[k] = command_of(g, kernel_owner(g, k))->whole.at;
    simt_use_target(c, was);
    if (!good) return ampc_fail(AMPC_RUN_FAILED, "%s: NVRTC refuses the kernels", targets.name[t]);
    if (edit) edit(&text[t], data);
    if (!ptx_read(c->arena, without_calls(c->arena, text[t].at), &ptx, &why))
      return ampc_fail(AMPC_RUN_FAILED, "ptx for %s: %s", targets.name[t], why);
    images[t] = arena_array(c->arena, const PtxImage *, n + 1);
    for (uint32_t k = 0; k < n && !status; k++) {
      uint32_t same = 0;
      while (same < t && !same_text(text[same].at, text[t].at, names[k])) same++;
      PtxImage *image = arena_new(c->arena, PtxImage);
      bool calls = !ptx_find(&ptx, names[k]) && text_of(text[t].at, names[k], &size);
      n_calling += calls;
      if (same < t || calls) continue;
      status = find_image(c->arena, &ptx, names[k], image), images[t][k] = image;
      image->grid = at[k].grid;
      image->block = at[k].block;
    }
  }
  return status;
}
