/* A profile as JSON. */
#include "profile.h"

static json_t *busy_json(const Measured *m, const ProfileRow *r)
{
  json_t *out = json_array();
  for (uint32_t t = 0; t < m->threads; t++) json_array_append_new(out, json_real(r->busy[t]));
  return out;
}

/* Returns what amp inspect --json says about the commands, and their times. */
static json_t *commands_json(const Measured *m, const ProfileBlock *b)
{
  json_t *out = json_array();
  for (const ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++) {
    json_t *row = inspect_row_json(m->in, r->row);
    facts_into(row, &r->row->facts,
               "runs measured_us least_us predicted_us memory_us arithmetic_us limit_us idle_us");
    json_object_set_new(row, "busy_us", busy_json(m, r));
    json_array_append_new(out, row);
  }
  return out;
}

static json_t *sums_json(const Measured *m, const ProfileBlock *b, InspectSum by)
{
  FactRows rows = {0};
  inspect_facts(m->in, b->block, by, &rows);
  facts_sort(&rows, "measured_us");
  return inspect_groups_json(by, &rows,
                             "measured_us predicted_us memory_us arithmetic_us limit_us idle_us");
}

static json_t *block_json(const Measured *m, const ProfileBlock *b)
{
  bool train = m->in->c->graph->blocks.at[b->block].kind == AMPC_TRAIN;
  json_t *out = inspect_block_json(m->in, b->block);
  json_t *more =
      json_pack("{s:b, s:I, s:f, s:f, s:f, s:f, s:f}", "train", train, "runs", (json_int_t)b->runs,
                "measured_us", b->us, "step_us", b->step_us, "loader_us", b->load_us, "upload_us",
                b->upload_us, "wait_us", b->wait_us);
  json_object_update_new(out, more);
  json_object_set_new(out, "by_work", sums_json(m, b, BY_WORK));
  json_object_set_new(out, "by_layer", sums_json(m, b, BY_LAYER));
  json_object_set_new(out, "by_line", sums_json(m, b, BY_LINE));
  json_object_set_new(out, "commands", commands_json(m, b));
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
