/* The data of the blocks. They are opened when a block first runs, and stay open if the next
 * program reads the same data in the same way. */
#include "repl.h"
#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* Compares all fields that decide which bytes a source reads and where they are stored. */
static bool same_source(const ampc_source *a, const ampc_source *b)
{
  return a->kind == b->kind && same_text(a->path, b->path) && same_text(a->args, b->args) &&
         a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0 && a->samples == b->samples &&
         a->part_begin == b->part_begin && a->part_end == b->part_end && a->drawn == b->drawn &&
         a->stratify == b->stratify && a->part_seed == b->part_seed && a->limit == b->limit &&
         a->offset == b->offset && a->low == b->low && a->high == b->high && a->stream == b->stream;
}

/* Returns the size of an epoch's last batch. */
static int64_t last_batch(const ampc_block *b)
{
  return b->variant[b->n_variants - 1].batch;
}

/* Whether both programs read the same data in the same order and batches, so that the open files
 * and the prefetching thread can be kept. */
static bool same_reading(const ampc_program *p, const ampc_program *q, uint32_t block)
{
  const ampc_block *a = &p->blocks[block], *b = &q->blocks[block];
  bool same = a->kind == b->kind && a->batch == b->batch && a->shuffle == b->shuffle &&
              a->drop_last == b->drop_last && a->balance == b->balance &&
              a->n_sources == b->n_sources && last_batch(a) == last_batch(b);
  for (uint32_t i = 0; same && i < a->n_sources; i++)
    same = same_source(&p->sources[a->first_source + i], &q->sources[b->first_source + i]);
  return same;
}

/* Closes a feed, which also keeps its program, because the loader's thread reads tables of it. */
static void feed_close(Feed *f)
{
  if (f->batches) ampc_data.close(f->batches);
  compiled_drop(f->from);
  *f = (Feed){0};
}

void feeds_close(Repl *r)
{
  for (uint32_t i = 0; r->feeds && i < r->live->c->program->n_blocks; i++) feed_close(&r->feeds[i]);
  free(r->feeds);
  r->feeds = NULL;
}

/* Finds the next step's block by name in the new program, where its index may differ. */
static void move_position(Repl *r, const ampc_program *p, const ampc_program *q)
{
  uint64_t old = (uint64_t)r->position.block;
  for (uint32_t i = 0; old < p->n_blocks && i < q->n_blocks; i++)
    if (q->blocks[i].kind == AMPC_TRAIN && strcmp(p->blocks[old].name, q->blocks[i].name) == 0) {
      r->position.block = i;
      return;
    }
  r->position = (ampc_data_position){0};
}

/* Moves feeds to the next program, by the index of their block. Feeds that the next program reads
 * in another way are closed, and opened again when they are needed. */
void feeds_move(Repl *r, Compiled *to)
{
  const ampc_program *q = to->c->program;
  Feed *feeds = calloc(q->n_blocks + 1, sizeof *feeds);
  if (!feeds) arena_out_of_memory();
  if (r->live) {
    const ampc_program *p = r->live->c->program;
    for (uint32_t i = 0; i < p->n_blocks && i < q->n_blocks; i++)
      if (r->feeds[i].batches && same_reading(p, q, i)) {
        feeds[i] = r->feeds[i];
        r->feeds[i] = (Feed){0};
      }
    move_position(r, p, q);
    feeds_close(r);
  }
  r->feeds = feeds;
}

/* The seed of the running state decides the order of samples, so the feed is opened again if a
 * checkpoint has changed the seed. */
ampc_status feed_open(void *repl, uint32_t block, ampc_batches **out)
{
  Repl *r = repl;
  Feed *f = &r->feeds[block];
  ampc_state state;
  ampc_status status = ampc_get_state(r->rt, &state);
  uint64_t seed = (uint64_t)state.seed;
  if (!status && f->batches && f->seed != seed) feed_close(f);
  if (!status && !f->batches) {
    status = ampc_data.open(r->live->c->program, block, r->data_dir, seed, &f->batches);
    if (!status) {
      f->from = compiled_keep(r->live);
      f->seed = seed;
    }
  }
  *out = f->batches;
  return status;
}

ampc_status feed_run(Repl *r, ampc_runtime *rt, Run *out)
{
  static const ampc_train_options none = {.steps = 0};
  *out = (Run){.rt = rt,
               .program = r->live->c->program,
               .data = &ampc_data,
               .options = &none,
               .calls = {.context = r, .open = feed_open},
               .position = r->position,
               .per_epoch = r->per_epoch,
               .steps = r->steps};
  return run_open(out);
}
