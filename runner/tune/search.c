/* Chooses the trials.
 *
 * Note [pieces]
 * Rounding errors of different modules are independent, so the squares of their deviations add up.
 * All modules run in 16 bits at first. If that deviates too much, a module may be the cause: then
 * one half of the list deviates as much as the whole. Such modules are raised to f32. If the
 * deviation is spread over the list, it is cut in halves, each half is measured alone, and the half
 * that deviates more is cut again. The pieces with the largest squares for the time that they save
 * are raised to f32, until the sum of the other squares is below a part of the bound's square. A
 * trial of the whole assignment then checks the sum. The list is in the order of the module tree,
 * so a piece is often a module, and few pins give the result.
 *
 * A net with n modules of which k are sensitive takes about 2 k log(n) trials, instead of n. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tune.h"

typedef struct Piece { /* modules list[first, first + n), lowered alone */
  uint32_t first, n;
  double square; /* of its deviation */
  double us;     /* predicted time that it saves */
  bool raised;
} Piece;

typedef struct Search {
  Tune *t;
  uint8_t low;    /* index of the 16-bit kind */
  uint32_t *list; /* units that can run in 16 bits */
  uint32_t n;
  VEC(Piece) pieces;
  Trial *whole; /* the trial in which all of the list is lowered */
} Search;

/* Fractions of the squared bound that the sum of the pieces may use. The first one leaves room for
 * errors that are not independent. */
static const double FIRST_ROOM = 0.8, NEXT_ROOM = 0.5;
enum { ATTEMPTS = 6 };

static double square_of(const Trial *trial)
{
  double d = fmax(trial->from_f32.gradient, trial->from_f32.loss);
  return d * d;
}

static bool is_lost(const Trial *trial)
{
  return !isfinite(trial->from_f32.gradient);
}

/* Measures units list[first, first + n) in 16 bits, all others in f32. */
static ampc_status try_range(Search *s, uint32_t first, uint32_t n, Trial **out)
{
  uint8_t *kinds = arena_array(s->t->arena, uint8_t, s->t->units.n);
  for (uint32_t i = first; i < first + n; i++) kinds[s->list[i]] = s->low;
  return tune_trial(s->t, kinds, out);
}

/* Returns the assignment with all of the list in 16 bits but list[first, first + n). */
static const uint8_t *kinds_without(const Search *s, uint32_t first, uint32_t n)
{
  uint8_t *kinds = arena_array(s->t->arena, uint8_t, s->t->units.n);
  for (uint32_t i = 0; i < s->n; i++)
    if (i < first || i >= first + n) kinds[s->list[i]] = s->low;
  return kinds;
}

/* ---- a cause of its own ---- */

/* Fractions of the deviation of the whole list: a range that deviates by CAUSE of it contains its
 * cause; the rest of the list is sound if it deviates by less than SOUND of it. */
static const double CAUSE = 0.9, SOUND = 0.5;

static bool has_cause(const Search *s, const Trial *trial)
{
  if (is_lost(s->whole)) return is_lost(trial);
  return square_of(trial) >= CAUSE * CAUSE * square_of(s->whole);
}

static bool is_sound(const Search *s, const Trial *trial)
{
  if (is_lost(s->whole)) return !is_lost(trial);
  return square_of(trial) < SOUND * SOUND * square_of(s->whole);
}

/* Finds the smallest range that contains a cause, by halving. It is the whole list if the deviation
 * is spread over it. */
static ampc_status find_cause(Search *s, uint32_t *first, uint32_t *n)
{
  Trial *trial;
  *first = 0, *n = s->n;
  while (*n > 1) {
    uint32_t half = *n / 2;
    ampc_status status = try_range(s, *first, half, &trial);
    if (status) return status;
    if (has_cause(s, trial)) {
      *n = half;
      continue;
    }
    status = try_range(s, *first + half, *n - half, &trial);
    if (status) return status;
    if (!has_cause(s, trial)) break; /* only both halves together have it */
    *first += half;
    *n -= half;
  }
  return AMPC_OK;
}

/* Measures all of the list in 16 bits but list[first, first + n). */
static ampc_status try_without(Search *s, uint32_t first, uint32_t n, Trial **out)
{
  return tune_trial(s->t, kinds_without(s, first, n), out);
}

static uint32_t pins_of(const Search *s, const Trial *trial)
{
  return cover_find(s->t->arena, &s->t->units, s->t->n_kinds, trial->kinds).pins.n;
}

/* Whether trial a needs fewer pins than b or, with equally many, less time. */
static bool is_simpler(const Search *s, const Trial *a, const Trial *b)
{
  uint32_t x = pins_of(s, a), y = pins_of(s, b);
  return x != y ? x < y : a->us < b->us;
}

/* The range has a cause, but each half alone may have none: a module takes the type of its inputs.
 * Keeps the half whose raising is enough; if both are, the one with the simpler result. */
static ampc_status shrink_cause(Search *s, uint32_t *first, uint32_t *n)
{
  while (*n > 1) {
    uint32_t half = *n / 2;
    Trial *a, *b;
    ampc_status status = try_without(s, *first, half, &a);
    if (!status) status = try_without(s, *first + half, *n - half, &b);
    if (status) return status;
    bool left = is_sound(s, a), right = is_sound(s, b);
    if (!left && !right) break;
    if (left && right) right = is_simpler(s, b, a);
    if (right) *first += half;
    *n = right ? *n - half : half;
  }
  return AMPC_OK;
}

static void remove_range(Search *s, uint32_t first, uint32_t n)
{
  for (uint32_t i = first; i < first + n; i++) s->t->units.at[s->list[i]].lost = is_lost(s->whole);
  memmove(&s->list[first], &s->list[first + n], (s->n - first - n) * sizeof *s->list);
  s->n -= n;
}

/* Raises single causes, until the rest keeps the bound or its deviation is spread over it. */
static ampc_status remove_causes(Search *s)
{
  ampc_status status = try_range(s, 0, s->n, &s->whole);
  while (!status && s->n && !trial_holds(s->t, s->whole)) {
    uint32_t first, n;
    status = find_cause(s, &first, &n);
    if (!status && n == s->n && !is_lost(s->whole)) return AMPC_OK;
    if (!status) status = shrink_cause(s, &first, &n);
    if (status) return status;
    remove_range(s, first, n);
    status = try_range(s, 0, s->n, &s->whole);
  }
  return status;
}

/* ---- pieces ---- */

/* Returns the time that the step loses if the piece is raised; the rest of the list is lowered. */
static double time_of(const Search *s, const Piece *p)
{
  const Tune *t = s->t;
  const uint8_t *kinds = kinds_without(s, p->first, p->n);
  Cover cover = cover_find(t->arena, &t->units, t->n_kinds, kinds);
  return tune_predict(t, tune_declaration(t, &cover, 0, NULL)) - s->whole->us;
}

static ampc_status add_piece(Search *s, uint32_t first, uint32_t n)
{
  Piece p = {.first = first, .n = n};
  Trial *trial;
  ampc_status status = try_range(s, first, n, &trial);
  if (status) return status;
  p.square = square_of(trial);
  p.us = time_of(s, &p);
  vec_push(s->t->arena, &s->pieces, p);
  return AMPC_OK;
}

static ampc_status split(Search *s, Piece *piece)
{
  Piece p = *piece;
  uint32_t half = p.n / 2;
  *piece = s->pieces.at[--s->pieces.n];
  ampc_status status = add_piece(s, p.first, half);
  return status ? status : add_piece(s, p.first + half, p.n - half);
}

/* Returns the piece to raise next: the most deviation for the time that it saves. */
static Piece *worst_piece(const Search *s)
{
  Piece *worst = NULL;
  double most = -1, least_us = 0.001 * s->whole->us;
  for (uint32_t i = 0; i < s->pieces.n; i++) {
    Piece *p = &s->pieces.at[i];
    double worth = p->square / fmax(p->us, least_us);
    if (p->raised || worth <= most) continue;
    most = worth;
    worst = p;
  }
  return worst;
}

/* Returns the sum of the pieces that are not raised; it may be infinite. */
static double sum_of_others(const Search *s)
{
  double sum = 0;
  for (uint32_t i = 0; i < s->pieces.n; i++)
    if (!s->pieces.at[i].raised) sum += s->pieces.at[i].square;
  return sum;
}

/* Raises pieces until the others keep `limit`. Returns the largest raised piece that can be split;
 * NULL: all of them are single modules. */
static Piece *raise(Search *s, double limit)
{
  Piece *largest = NULL;
  for (uint32_t i = 0; i < s->pieces.n; i++) s->pieces.at[i].raised = false;
  while (sum_of_others(s) > limit) {
    Piece *p = worst_piece(s);
    if (!p) break;
    p->raised = true;
    if (p->n > 1 && (!largest || p->square > largest->square)) largest = p;
  }
  return largest;
}

/* Returns the assignment in which all pieces but the raised ones are in 16 bits. */
static const uint8_t *assignment(const Search *s)
{
  uint8_t *kinds = arena_array(s->t->arena, uint8_t, s->t->units.n);
  for (uint32_t i = 0; i < s->pieces.n; i++)
    for (uint32_t k = 0; k < s->pieces.at[i].n; k++)
      if (!s->pieces.at[i].raised) kinds[s->list[s->pieces.at[i].first + k]] = s->low;
  return kinds;
}

/* Splits and raises until the trial of the whole assignment keeps the bound. */
static ampc_status settle(Search *s, Trial **out)
{
  double room = FIRST_ROOM, square = s->t->bound * s->t->bound;
  ampc_status status = AMPC_OK;
  *out = s->whole;
  if (trial_holds(s->t, s->whole)) return AMPC_OK;
  vec_push(s->t->arena, &s->pieces, ((Piece){.n = s->n, .square = square_of(s->whole)}));
  s->pieces.at[0].us = time_of(s, &s->pieces.at[0]);
  for (int i = 0; i < ATTEMPTS && !status; i++, room *= NEXT_ROOM) {
    for (Piece *p; !status && (p = raise(s, room * square));) status = split(s, p);
    if (!status) status = tune_trial(s->t, assignment(s), out);
    if (!status && trial_holds(s->t, *out)) break;
  }
  return status;
}

/* ---- tf32 ---- */

static uint8_t tf32_of(const Tune *t)
{
  for (uint8_t k = 1; k < t->n_kinds; k++)
    if (t->kinds[k] == REGION_tf32) return k;
  return 0;
}

static const double LESS = 0.99; /* a smaller gain is none */

static double time_used(const Tune *t, const Trial *trial)
{
  return t->measure ? trial->measured_us : trial->us;
}

/* Tries tf32 instead of f32: products are faster, and its range is that of f32. */
static ampc_status try_tf32(Tune *t, Trial **best)
{
  uint8_t tf32 = tf32_of(t);
  Trial *trial;
  if (!tf32) return AMPC_OK;
  uint8_t *kinds = arena_array(t->arena, uint8_t, t->units.n);
  for (uint32_t i = 0; i < t->units.n; i++) kinds[i] = (*best)->kinds[i] ? (*best)->kinds[i] : tf32;
  ampc_status status = tune_trial(t, kinds, &trial);
  if (!status && trial_holds(t, trial) && time_used(t, trial) < LESS * time_used(t, *best))
    *best = trial;
  return status;
}

/* ---- the search ---- */

/* Whether f16 overflows in this module in a step of f32. */
static bool is_over(const Tune *t, uint8_t kind, const Unit *u)
{
  return t->kinds[kind] == REGION_f16 && u->steps_over;
}

static ampc_status search_kind(Tune *t, uint8_t low, Trial **out)
{
  Search s = {.t = t, .low = low, .list = arena_array(t->arena, uint32_t, t->units.n)};
  for (uint32_t i = 0; i < t->units.n; i++)
    if (t->units.at[i].own && !is_over(t, low, &t->units.at[i])) s.list[s.n++] = i;
  ampc_status status = remove_causes(&s);
  if (!status) status = settle(&s, out);
  if (!status && trial_holds(t, *out)) status = try_tf32(t, out);
  return status;
}

/* Returns the faster of two trials; NULL counts as slow. */
static Trial *faster(const Tune *t, Trial *a, Trial *b)
{
  if (!a || !b) return a ? a : b;
  return time_used(t, b) < time_used(t, a) ? b : a;
}

/* The budget is used up: returns the trial that keeps the bound with the most modules in 16 bits.
 */
static Trial *best_so_far(const Tune *t)
{
  Trial *best = NULL;
  for (uint32_t i = 0; i < t->trials.n; i++) {
    Trial *trial = t->trials.at[i];
    if (!trial_holds(t, trial)) continue;
    if (!best || trial_lowered(t, trial) > trial_lowered(t, best)) best = trial;
  }
  return best;
}

ampc_status tune_search(Tune *t, bool with_f32, Trial **out)
{
  Trial *plain = NULL, *best = NULL;
  ampc_status status = tune_trial(t, arena_array(t->arena, uint8_t, t->units.n), &plain);
  for (uint8_t k = 1; k < t->n_kinds && !status; k++) {
    Trial *found;
    if (t->kinds[k] == REGION_tf32) continue;
    status = search_kind(t, k, &found);
    if (!status && trial_holds(t, found)) best = faster(t, best, found);
  }
  if (!status && !best && with_f32) status = try_tf32(t, &plain);
  if (t->late) status = AMPC_OK;
  if (!best) best = best_so_far(t);
  *out = with_f32 || !best ? faster(t, best, plain) : best;
  if (!status && !*out)
    return ampc_fail(AMPC_RUN_FAILED, "the budget ended before the first trial; give more time");
  return status;
}
