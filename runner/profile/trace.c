/* A profile as Chrome's trace events: the JSON that Perfetto shows. Tracks: the
 * training loop with its commands, the other threads of the CPU, or the stream of a GPU. Events of
 * a track nest: a step contains layers, a layer contains commands, a command contains waits. */
#include <math.h>
#include <string.h>
#include "profile.h"

/* The numbers of tracks, which Perfetto shows behind their names: worker 2 is the second thread. */
enum { TRACK_LOOP = 1, TRACK_STREAM = 2 };

typedef struct Trace {
  const Measured *m;
  double begin; /* seconds_now() of the first event */
  json_t *events;
} Trace;

/* Returns nanoseconds since the first event. Rounding keeps the order of begins and ends, so events
 * nest. */
static double since(const Trace *t, double seconds)
{
  return floor((seconds - t->begin) * 1e9 + 0.5);
}

static void add_event(const Trace *t, int track, const char *category, const char *name,
                      double begin, double end, json_t *args)
{
  double from = since(t, begin), to = since(t, end);
  json_t *e = json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o*}", "ph", "X", "cat", category,
                        "name", name, "pid", 1, "tid", track, "ts", from / 1e3, "dur",
                        (to - from) / 1e3, "args", args);
  json_array_append_new(t->events, e);
}

static void name_track(const Trace *t, int track, const char *name)
{
  json_array_append_new(t->events,
                        json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", "thread_name",
                                  "pid", 1, "tid", track, "args", "name", name));
}

static int command_track(const Measured *m)
{
  return m->threads ? TRACK_LOOP : TRACK_STREAM;
}

static json_t *command_args(const ProfileRow *r)
{
  Place place = r->row->place;
  json_t *out = json_object();
  if (place.source)
    json_object_set_new(out, "line", json_sprintf("%s:%u", place.source->shown, place.line));
  facts_into(
      out, &r->row->facts,
      "layer work source types shape nodes measured_us predicted_us memory_us arithmetic_us");
  return out;
}

/* Adds the commands, and around consecutive ones of the same layer an event of that layer. */
static void add_commands(const Trace *t)
{
  const Measured *m = t->m;
  const TimeSpans *all = &m->profile->commands;
  for (size_t i = 0, next; i < all->n; i = next) {
    const ProfileRow *first = m->row_of[all->at[i].which];
    for (next = i + 1; next < all->n; next++) {
      const ProfileRow *r = m->row_of[all->at[next].which];
      if (strcmp(profile_layer(r->row), profile_layer(first->row)) != 0 ||
          all->at[next].begin > all->at[next - 1].end)
        break;
    }
    add_event(t, command_track(m), "layer", profile_layer(first->row), all->at[i].begin,
              all->at[next - 1].end, NULL);
    for (size_t k = i; k < next; k++) {
      const ProfileRow *r = m->row_of[all->at[k].which];
      add_event(t, command_track(m), r->row->facts.work, r->row->facts.name, all->at[k].begin,
                all->at[k].end, command_args(r));
    }
  }
}

static void add_threads(const Trace *t)
{
  const Measured *m = t->m;
  const TimeSpans *all = &m->profile->commands;
  for (uint32_t thread = 0; thread < m->threads; thread++) {
    const TimeSpans *own = &m->profile->thread[thread];
    int track = TRACK_LOOP + (int)thread;
    if (thread && own->n) name_track(t, track, "worker");
    for (size_t i = 0, k = 0; i < own->n; i++) {
      while (k + 1 < all->n && all->at[k].end < own->at[i].end) k++;
      const ProfileRow *r = m->row_of[all->at[k].which];
      add_event(t, track, thread ? r->row->facts.work : "wait",
                thread ? r->row->facts.name : "wait for workers", own->at[i].begin, own->at[i].end,
                NULL);
    }
  }
}

static void add_host(const Trace *t)
{
  static const char *const names[] = {[TIME_load] = "loader",
                                      [TIME_upload] = "copy the batch",
                                      [TIME_step] = "step",
                                      [TIME_wait] = "wait for the device"};
  const Measured *m = t->m;
  const TimeSpans *host = &m->profile->host;
  const ampc_block *blocks = m->in->c->program->blocks;
  for (size_t i = 0; i < host->n; i++) {
    const TimeSpan *s = &host->at[i];
    bool eval = s->kind == TIME_step && blocks[s->which / AMPC_MAX_VARIANTS].kind == AMPC_EVAL;
    add_event(t, TRACK_LOOP, "loop", eval ? "evaluate a batch" : names[s->kind], s->begin, s->end,
              NULL);
  }
  for (uint32_t i = 0; i < m->n_plain; i++)
    add_event(t, TRACK_LOOP, "loop", "a step that is not timed", m->plain[i].begin, m->plain[i].end,
              NULL);
}

json_t *profile_trace(const Measured *m)
{
  Trace t = {.m = m, .events = json_array(), .begin = HUGE_VAL};
  if (m->profile->host.n) t.begin = m->profile->host.at[0].begin;
  if (m->n_plain) t.begin = fmin(t.begin, m->plain[0].begin);
  json_array_append_new(t.events,
                        json_pack("{s:s, s:s, s:i, s:{s:s}}", "ph", "M", "name", "process_name",
                                  "pid", 1, "args", "name", m->in->c->program->source));
  name_track(&t, TRACK_LOOP, "training loop");
  if (!m->threads) name_track(&t, TRACK_STREAM, m->device);
  add_host(&t);
  add_commands(&t);
  add_threads(&t);
  return json_pack("{s:o, s:s}", "traceEvents", t.events, "displayTimeUnit", "ms");
}
