/* The table of the step's commands, and the texts of its kernels. Commands that launch the same
 * kernel share a row. So do commands of a library with equal types, shapes and FLOPs. */
#include "report.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "ampc_rt.h"
#include "compiler/kernel/kernels.h"
#include "compiler/nvrtc/nvrtc.h"

/* ---- rows ---- */

/* Returns the rows of the step, the slowest first. */
static FactRows rows_of(const Report *r)
{
  FactRows rows = {0};
  if (r->e.blocks.n) inspect_facts(&r->in, r->e.blocks.at[0].block, BY_KERNEL, &rows);
  facts_sort(&rows, "predicted_us");
  return rows;
}

json_t *report_kernels(const Report *r)
{
  FactRows rows = rows_of(r);
  json_t *out = json_array();
  for (uint32_t i = 0; i < rows.n; i++) {
    json_t *row = facts_json(&rows.at[i], "name template types shape nodes times read written "
                                          "flops predicted_us line source");
    json_object_set_new(row, "text", json_boolean(rows.at[i].kernel));
    json_array_append_new(out, row);
  }
  return out;
}

/* ---- texts ---- */

/* Whether a line of PTX is shown: comments, .loc lines and empty lines are not. */
static bool is_kept(const char *line, size_t n)
{
  size_t at = strspn(line, " \t");
  return at < n && strncmp(line + at, "//", 2) != 0 && strncmp(line + at, ".loc", 4) != 0;
}

/* Returns the entry of one kernel, from the PTX of all. */
static const char *entry_of(Arena *arena, const char *ptx, const char *name)
{
  const char *line = arena_printf(arena, ".entry %s(", name), *at = strstr(ptx, line);
  const char *end = at ? strstr(at, "\n}") : NULL;
  Text t = text_new(arena);
  for (size_t n; end && at < end + 2; at += n + 1) {
    n = strcspn(at, "\n");
    if (!is_kept(at, n)) continue;
    text_add(&t, at, n);
    text_puts(&t, "\n");
  }
  return t.n ? t.at : "";
}

static json_t *text_json(const Report *r, const Facts *row, const char *ptx)
{
  Compile *c = r->e.c;
  uint32_t kernel = inspect_kernel_index(c->program, row->kernel);
  Text text = text_new(c->arena);
  if (kernel < c->program->n_kernels) emit_kernel(c, kernel, &text);
  return json_pack("[s, s]", text.n ? text.at : "",
                   text.n ? entry_of(c->arena, ptx, c->program->kernels[kernel].name) : "");
}

static int make_ptx(Report *r, Text *out)
{
  Compile *c = r->e.c;
  if (!nvrtc_present()) {
    r->note = "no PTX: NVRTC (CUDA 12 or 13) is not on the machine that made this page";
    return 0;
  }
  Text kernels = text_new(c->arena);
  emit_kernels(c, &kernels);
  return emit_nvrtc(c, &kernels, c->options.target, NVRTC_ptx, out) ? 0 : AMPC_NO_COMPILER;
}

static const char *base64(Arena *arena, const unsigned char *s, size_t n)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *out = arena_array(arena, char, (n + 2) / 3 * 4 + 1), *to = out;
  for (size_t i = 0; i < n; i += 3) {
    unsigned a = s[i], b = i + 1 < n ? s[i + 1] : 0, c = i + 2 < n ? s[i + 2] : 0;
    *to++ = digits[a >> 2];
    *to++ = digits[(a & 3) << 4 | b >> 4];
    *to++ = i + 1 < n ? digits[(b & 15) << 2 | c >> 6] : '=';
    *to++ = i + 2 < n ? digits[c & 63] : '=';
  }
  return out;
}

const char *report_packed(Arena *arena, const json_t *json)
{
  enum { GZIP = 15 + 16, MEMORY = 9 };
  char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6) | JSON_PRESERVE_ORDER);
  z_stream z = {0};
  if (!text || deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY)) {
    free(text);
    return NULL;
  }
  size_t n = strlen(text);
  uLong room = deflateBound(&z, (uLong)n);
  unsigned char *out = arena_array(arena, unsigned char, room);
  z.next_in = (unsigned char *)text;
  z.avail_in = (uInt)n;
  z.next_out = out;
  z.avail_out = (uInt)room;
  bool good = deflate(&z, Z_FINISH) == Z_STREAM_END;
  size_t made = z.total_out;
  deflateEnd(&z);
  free(text);
  return good ? base64(arena, out, made) : NULL;
}

/* Packs the texts of all rows, with PTX for the first `with` rows. NULL: out of memory. */
static const char *pack_texts(const Report *r, const FactRows *rows, const Text *ptx, uint32_t with)
{
  json_t *all = json_array();
  for (uint32_t i = 0; i < rows->n; i++)
    json_array_append_new(all, text_json(r, &rows->at[i], ptx->n && i < with ? ptx->at : ""));
  const char *out = all ? report_packed(r->e.c->arena, all) : NULL;
  json_decref(all);
  return out;
}

int report_texts(Report *r, size_t room, const char **out)
{
  Text ptx = text_new(r->e.c->arena);
  int status = r->no_ptx ? 0 : make_ptx(r, &ptx);
  if (status) return status;
  FactRows rows = rows_of(r);
  uint32_t with = rows.n;
  *out = pack_texts(r, &rows, &ptx, with);
  while (*out && ptx.n && with && strlen(*out) > room) {
    with -= (with + 15) / 16;
    *out = pack_texts(r, &rows, &ptx, with);
  }
  if (ptx.n && with < rows.n)
    r->note =
        arena_printf(r->e.c->arena, "the page shows PTX only for the %u slowest commands", with);
  return *out ? 0 : AMPC_RUN_FAILED;
}
