/* Reads the reports of ptxas about kernels. Caches them and the PTX, since compiling a few hundred
 * kernels takes seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/cache.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/kernel/kernels.h"
#include "inspect.h"

/* ---- reading the report ---- */

/* Returns the integer before `word` in a line; -1: the line does not contain the word. */
static int number_before(const char *line, size_t size, const char *word)
{
  const char *at = memmem(line, size, word, strlen(word));
  if (!at) return -1;
  while (at > line && at[-1] >= '0' && at[-1] <= '9') at--;
  return atoi(at);
}

/* Returns the first row that launches the kernel of this name. */
static CommandRow *row_of(Inspection *in, const char *name, size_t size)
{
  for (uint32_t i = 0; i < in->rows.n; i++) {
    CommandRow *row = &in->rows.at[i];
    if (row->facts.kernel && strlen(row->facts.kernel) == size &&
        memcmp(row->facts.kernel, name, size) == 0)
      return row;
  }
  return NULL;
}

/* Copies the usage to all rows that launch the same kernel. */
static void spread(Inspection *in, uint32_t arch)
{
  for (uint32_t i = 0; i < in->rows.n; i++) {
    CommandRow *row = &in->rows.at[i];
    if (row->facts.kernel)
      row->usage[arch] = row_of(in, row->facts.kernel, strlen(row->facts.kernel))->usage[arch];
  }
}

/* Reads a line: "Function properties for NAME"; after it, the line of spills and that of
 * registers. */
static void read_line(Inspection *in, const char *line, size_t size, uint32_t arch,
                      CommandRow **current)
{
  static const char head[] = "Function properties for ";
  const char *name = memmem(line, size, head, sizeof head - 1);
  if (name) {
    name += sizeof head - 1;
    *current = row_of(in, name, strcspn(name, " \r\n"));
    return;
  }
  if (!*current) return;
  Usage *u = &(*current)->usage[arch];
  int stores = number_before(line, size, " bytes spill stores");
  int loads = number_before(line, size, " bytes spill loads");
  if (stores >= 0 && loads >= 0) u->spilled = stores + loads;
  int registers = number_before(line, size, " registers");
  if (registers < 0) return;
  int shared = number_before(line, size, " bytes smem");
  *u = (Usage){true, registers, shared > 0 ? shared : 0, u->spilled};
  *current = NULL;
}

/* Reads a report. False: it lacks a kernel, so it is truncated or belongs to another program. */
static bool read_report(Inspection *in, const char *report, uint32_t arch)
{
  CommandRow *current = NULL;
  for (const char *s = report; *s;) {
    size_t size = strcspn(s, "\n");
    read_line(in, s, size, arch, &current);
    s += size + (s[size] == '\n');
  }
  spread(in, arch);
  bool all = true;
  for (uint32_t i = 0; i < in->rows.n; i++)
    all &= !in->rows.at[i].facts.kernel || in->rows.at[i].usage[arch].known;
  return all;
}

/* ---- making the report ---- */

enum { MANY_KERNELS = 50 };

/* What NVRTC makes of the kernels. The caller initializes both texts. */
typedef struct Compiled {
  Text report, ptx;
} Compiled;

/* Compiles the kernels. For a large job this takes seconds, so a note on stderr explains the wait.
 */
static bool compile_kernels(Inspection *in, const Text *kernels, const char *arch, Compiled *out)
{
  if (in->c->program->n_kernels >= MANY_KERNELS && nvrtc_present())
    fprintf(stderr, "amp: note: ptxas compiles %u kernels for %s; the result is cached\n",
            in->c->program->n_kernels, arch);
  return emit_report(in->c, kernels, arch, &out->report, &out->ptx);
}

/* Reads a text of an earlier run. False: it is not cached. */
static bool read_kept(const char *path, Text *out)
{
  char *bytes;
  size_t size;
  if (!cache_read(path, &bytes, &size)) return false;
  text_add(out, bytes, size);
  free(bytes);
  return true;
}

/* Returns the identity for the key: another ptxas may report other numbers for the same text. */
static const char *identity_of(Inspection *in, const char *arch)
{
  const NvrtcApi *nvrtc;
  char why[AMPC_WHY_ROOM], made[100] = "";
  if (nvrtc_load(&nvrtc, why)) nvrtc_identity(nvrtc, made, sizeof made);
  return arena_printf(in->c->arena, "ampc %s, ptxas %s, %s", AMPC_VERSION, arch, made);
}

/* The texts are in the cache of kernels, under the hash of the text of the kernels. */
int inspect_usage(Inspection *in, const char *arch, Text *ptx)
{
  Compiled made = {text_new(in->c->arena), text_new(in->c->arena)};
  char key[33], report_path[CACHE_PATH], ptx_path[CACHE_PATH];
  Text kernels = text_new(in->c->arena);
  emit_kernels(in->c, &kernels);
  Cache cache;
  bool cached = cache_open(&cache) == AMPC_OK;
  cache_key(kernels.at, kernels.n, identity_of(in, arch), key);
  if (cached) cache_path(&cache, key, "txt", report_path);
  if (cached) cache_path(&cache, key, "ptx", ptx_path);
  bool known = cached && read_kept(report_path, &made.report) &&
               (!ptx || read_kept(ptx_path, &made.ptx)) &&
               read_report(in, made.report.at, in->n_archs);
  if (!known) made = (Compiled){text_new(in->c->arena), text_new(in->c->arena)};
  int status = known || compile_kernels(in, &kernels, arch, &made) ? 0 : AMPC_NO_COMPILER;
  if (!known && status == 0 && !read_report(in, made.report.at, in->n_archs)) {
    fprintf(stderr, "amp: error: the report of NVRTC lacks the registers of a kernel\n");
    status = AMPC_NO_COMPILER;
  } else if (!known && status == 0 && cached) {
    /* a failure of the cache is ignored: the numbers are known */
    cache_write(&cache, report_path, made.report.at, made.report.n);
    cache_write(&cache, ptx_path, made.ptx.at, made.ptx.n);
  }
  if (cached && cache.temporary) unlink(report_path), unlink(ptx_path);
  if (cached) cache_close(&cache);
  if (ptx) *ptx = made.ptx;
  in->arch[in->n_archs++] = arch;
  return status;
}
