/* Lists of spans that grow. A list that cannot grow notes the loss; the step goes on. */
#include "profile.h"
#include <stdlib.h>
#include <string.h>

Profile *profile_create(void)
{
  Profile *p = aligned_alloc(PROFILE_LINE, sizeof *p);
  if (p) memset(p, 0, sizeof *p);
  return p;
}

void profile_free(Profile *p)
{
  if (!p) return;
  free(p->host.at);
  free(p->commands.at);
  for (int i = 0; i < PROFILE_THREADS; i++) free(p->thread[i].at);
  free(p);
}

void profile_clear(Profile *p)
{
  p->host.n = p->commands.n = 0;
  for (int i = 0; i < PROFILE_THREADS; i++) p->thread[i].n = 0;
}

bool profile_lost(const Profile *p)
{
  bool lost = p->host.lost || p->commands.lost;
  for (int i = 0; i < PROFILE_THREADS; i++) lost = lost || p->thread[i].lost;
  return lost;
}

void time_add(TimeSpans *s, TimeSpan span)
{
  if (s->n == s->room) {
    size_t room = s->room ? 2 * s->room : 256;
    TimeSpan *at = realloc(s->at, room * sizeof *at);
    if (!at) {
      s->lost = true;
      return;
    }
    s->at = at;
    s->room = room;
  }
  s->at[s->n++] = span;
}

/* Ends the ranges of the last command and begins those of the next one, or none. Consecutive
 * commands of a layer are in one range. */
static void turn_ranges(Profile *p, const RangeName *next)
{
  const RangeName *last = p->range;
  bool same = last && next && strcmp(last->layer, next->layer) == 0;
  if (last) p->nvtx->pop();
  if (last && !same) p->nvtx->pop();
  if (next && !same) p->nvtx->push(next->layer);
  if (next) p->nvtx->push(next->command);
  p->range = next;
}

void profile_ranges(Profile *p, int64_t command)
{
  if (p->nvtx) turn_ranges(p, command == MARK_END ? NULL : &p->names[command]);
}

void profile_mark(Profile *p, int64_t command, double now)
{
  TimeSpans *s = &p->commands;
  if (s->n && s->at[s->n - 1].end == 0) s->at[s->n - 1].end = now;
  if (command != MARK_END) time_add(s, (TimeSpan){now, 0, TIME_command, (uint32_t)command});
}
