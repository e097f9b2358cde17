/* A profile as JSON. */
#include "profile.h"

static json_t *known(double us)
{
  return us < 0 ? json_null() : json_real(us);
}

static json_t *busy_json(const Measured *m, const ProfileRow *r)
{
  json_t *out = json_array();
  for (uint32_t t = 0; t < m->threads; t++) json_array_append_new(out, json_real(r->busy[t]));
  return out;
}

/* Returns what amp inspect --json says about the command, and its times. */
static json_t *row_json(const Measured *m, const ProfileBlock *b, const ProfileRow *r)
{
  json_t *out = inspect_row_json(m->in, r->row);
  json_t *more = json_pack(
      "{s:s, s:s, s:s, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "layer", r->layer, "work", r->work,
      "source", inspect_line_text(m->in, r->row->place), "runs", (double)r->runs / (double)b->runs,
      "us", r->us, "least_us", r->least, "predicted_us", known(r->predicted), "memory_us",
      known(r->memory), "arithmetic_us", known(r->arithmetic), "busy_us", busy_json(m, r),
      "idle_us", known(profile_idle(m, r)));
  json_object_update_new(out, more);
  return out;
}

static json_t *sums_json(const Measured *m, const ProfileBlock *b, SumBy by)
{
  json_t *out = json_array();
  ProfileSums sums = profile_sums(m, b, by);
  for (uint32_t i = 0; i < sums.n; i++) {
    const ProfileSum *s = &sums.at[i];
    json_t *row =
        json_pack("{s:s, s:i, s:f, s:o, s:o, s:o, s:o, s:o}", sum_names[by], s->name, "commands",
                  (int)s->commands, "us", s->us, "predicted_us", known(s->predicted), "memory_us",
                  known(s->memory), "arithmetic_us", known(s->arithmetic), "limit_us",
                  known(s->limit), "idle_us", known(s->idle));
    if (by == BY_LINE)
      json_object_set_new(row, "source", json_string(inspect_line_text(m->in, s->first->place)));
    json_array_append_new(out, row);
  }
  return out;
}

static json_t *block_json(const Measured *m, const ProfileBlock *b)
{
  const BlockInfo *info = &m->in->c->graph->blocks.at[b->block];
  json_t *commands = json_array();
  for (uint32_t i = b->first; i < b->first + b->n; i++)
    json_array_append_new(commands, row_json(m, b, &m->rows[i]));
  json_t *out = json_pack(
      "{s:s, s:b, s:I, s:b, s:o, s:I, s:f, s:f, s:f, s:f, s:f}", "name", info->name, "train",
      info->kind == AMPC_TRAIN, "batch", (json_int_t)info->batch, "remainder", info->remainder,
      "every", inspect_fires_json(info), "runs", (json_int_t)b->runs, "us", b->us, "step_us",
      b->step_us, "loader_us", b->load_us, "upload_us", b->upload_us, "wait_us", b->wait_us);
  for (SumBy by = 0; by < SUM_BY_COUNT; by++)
    json_object_set_new(out, arena_printf(m->in->c->arena, "by_%s", sum_names[by]),
                        sums_json(m, b, by));
  json_object_set_new(out, "commands", commands);
  return out;
}

json_t *profile_json(const Measured *m)
{
  const ampc_program *p = m->in->c->program;
  json_t *blocks = json_array();
  for (uint32_t i = 0; i < m->n_blocks; i++)
    json_array_append_new(blocks, block_json(m, &m->blocks[i]));
  return json_pack("{s:s, s:s, s:s, s:s?, s:i, s:i, s:f, s:f, s:o}", "profile", p->source,
                   "precision", p->precision, "device", m->device, "predicted_for",
                   m->gpu ? m->gpu->model : NULL, "threads", (int)m->threads, "steps",
                   (int)m->steps, "plain_us", m->plain_us, "timed_us", m->timed_us, "blocks",
                   blocks);
}
