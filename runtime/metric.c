/* Metrics that are computed from statistics: sums over all samples, each kept in STATE as an
 * ampc_metric. Formulas and averages are those of scikit-learn (f1_score, jaccard_score,
 * matthews_corrcoef, confusion_matrix). As there, a ratio with denominator 0 is 0. */
#include "runtime/metric.h"
#include "common/needs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool metric_is_number(const ampc_metric_desc *m)
{
  return m->kind != AMPC_METRIC_CONFUSION && m->kind != AMPC_METRIC_UPDATES;
}

uint32_t metric_classes(const ampc_metric_desc *m)
{
  return (uint32_t)lround(sqrt(m->statistics - 1.0));
}

static double ratio(double a, double b)
{
  return b != 0 ? a / b : 0;
}

/* ---- metrics from counts of classes ---- */

typedef struct Counts { /* counts of samples; entry c of an array is of class c */
  const ampc_metric *right, *predicted, *actual;
  uint32_t n;
} Counts;

static Counts counts_of(const ampc_metric_desc *m, const ampc_metric *slots)
{
  uint32_t n = (m->statistics - 1) / 3;
  return (Counts){slots, slots + n, slots + 2 * n, n};
}

/* Returns Dice's coefficient, which is F1, or with `iou` Jaccard's. `right`, `predicted` and
 * `actual` count the samples of a class that are predicted correctly, predicted, and true. */
static double overlap(bool iou, double right, double predicted, double actual)
{
  return iou ? ratio(right, predicted + actual - right) : ratio(2 * right, predicted + actual);
}

static double sum_of(const ampc_metric *at, uint32_t n)
{
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += at[i].sum;
  return sum;
}

/* Returns the mean over the classes that occur among predictions or labels. `weighted`: each class
 * counts by its number of labels. */
static double over_classes(const Counts *k, bool iou, bool weighted)
{
  double sum = 0, weights = 0;
  for (uint32_t c = 0; c < k->n; c++) {
    double predicted = k->predicted[c].sum, actual = k->actual[c].sum;
    double weight = weighted ? actual : predicted + actual > 0;
    sum += weight * overlap(iou, k->right[c].sum, predicted, actual);
    weights += weight;
  }
  return ratio(sum, weights);
}

static double macro(const Counts *k, bool iou)
{
  return over_classes(k, iou, false);
}

static double weighted(const Counts *k, bool iou)
{
  return over_classes(k, iou, true);
}

static double micro(const Counts *k, bool iou)
{
  return overlap(iou, sum_of(k->right, k->n), sum_of(k->predicted, k->n), sum_of(k->actual, k->n));
}

static double binary(const Counts *k, bool iou)
{
  return overlap(iou, k->right[1].sum, k->predicted[1].sum, k->actual[1].sum);
}

/* Returns R_K of Gorodkin 2004. For two classes it is Matthews' coefficient. */
static double matthews(const Counts *k, bool iou)
{
  (void)iou;
  double all = sum_of(k->actual, k->n), right = sum_of(k->right, k->n);
  double both = 0, predicted = 0, actual = 0;
  for (uint32_t c = 0; c < k->n; c++) {
    both += k->predicted[c].sum * k->actual[c].sum;
    predicted += k->predicted[c].sum * k->predicted[c].sum;
    actual += k->actual[c].sum * k->actual[c].sum;
  }
  return ratio(right * all - both, sqrt(all * all - predicted) * sqrt(all * all - actual));
}

/* The formulas of the kinds that are computed from counts of classes. */
static const struct {
  double (*of)(const Counts *k, bool iou);
  bool iou;
} formulas[AMPC_METRIC_KIND_COUNT] = {
    [AMPC_METRIC_F1_MACRO] = {macro, false},       [AMPC_METRIC_IOU_MACRO] = {macro, true},
    [AMPC_METRIC_F1_WEIGHTED] = {weighted, false}, [AMPC_METRIC_IOU_WEIGHTED] = {weighted, true},
    [AMPC_METRIC_F1_MICRO] = {micro, false},       [AMPC_METRIC_IOU_MICRO] = {micro, true},
    [AMPC_METRIC_F1_BINARY] = {binary, false},     [AMPC_METRIC_IOU_BINARY] = {binary, true},
    [AMPC_METRIC_MATTHEWS] = {matthews, false},
};

/* Returns the correlation coefficient. NaN if all x, or all y, have the same value, as in scipy. */
static double pearson(const ampc_metric *s)
{
  double n = s[0].sum, x = s[1].sum, y = s[2].sum;
  double spread = (n * s[3].sum - x * x) * (n * s[4].sum - y * y);
  return spread > 0 ? (n * s[5].sum - x * y) / sqrt(spread) : NAN;
}

/* Returns the mean over columns of R^2 = 1 - (squared errors) / (squared deviations of the target
 * y), as r2_score with its uniform average. NaN with fewer than two samples, and if the targets of
 * a column are equal, or their mean is over 128 standard deviations away from 0: the deviations are
 * a difference of sums of f32, and half an ulp of these is then up to 128^2 half ulps of it. */
static double r2(const ampc_metric *s, uint32_t columns)
{
  double sum = 0;
  for (uint32_t c = 0; c < columns; c++) {
    double n = s[c].sum, y = s[columns + c].sum, squares = s[2 * columns + c].sum;
    double errors = s[3 * columns + c].sum, spread = squares - y * y / n;
    if (n < 2 || (errors > 0 && !(spread > squares * 0x1p-14))) return NAN;
    sum += errors > 0 ? 1 - errors / spread : 1;
  }
  return sum / columns;
}

/* Returns the fraction of pairs, one sample of each class, in which the sample of class 1 has the
 * higher score; ties count half. NaN if a class has no samples, as in roc_auc_score. */
static double auc(const ampc_metric *slots, uint32_t bins)
{
  double below = 0, pairs = 0, ones = 0;
  for (uint32_t i = 0; i < bins; i++) {
    double zero = slots[i].sum, one = slots[bins + i].sum;
    pairs += one * (below + zero / 2);
    below += zero;
    ones += one;
  }
  return below > 0 && ones > 0 ? pairs / (below * ones) : NAN;
}

static double computed_value(const ampc_metric_desc *m, const ampc_metric *slots)
{
  if (!m->statistics) return slots->count > 0 ? slots->sum / slots->count : NAN;
  if (m->kind == AMPC_METRIC_PERPLEXITY) return exp(slots[0].sum / slots[1].sum);
  if (m->kind == AMPC_METRIC_RMSE) return sqrt(slots[0].sum / slots[1].sum);
  if (m->kind == AMPC_METRIC_PEARSON) return pearson(slots);
  if (m->kind == AMPC_METRIC_R2) return r2(slots, m->statistics / 4);
  if (!metric_is_number(m) || slots[m->statistics - 1].sum > 0) return NAN;
  if (m->kind == AMPC_METRIC_AUC) return auc(slots, (m->statistics - 1) / 2);
  const Counts k = counts_of(m, slots);
  if (!formulas[m->kind].of || sum_of(k.actual, k.n) == 0) return NAN;
  return formulas[m->kind].of(&k, formulas[m->kind].iou);
}

/* Also drops the sign of a computed NaN, which would be printed as "-nan". */
double metric_value(const ampc_metric_desc *m, const ampc_metric *slots)
{
  double value = computed_value(m, slots);
  return isnan(value) ? NAN : value;
}

/* Prints the name of a class and moves *names to the next one. */
static void print_class(FILE *to, const char **names)
{
  size_t n = *names ? strcspn(*names, "\n") : 0;
  if (n) fprintf(to, "  %.*s", (int)n, *names);
  if (n) *names += n + 1;
}

void metric_print_matrix(FILE *to, const ampc_metric_desc *m, const ampc_metric *slots)
{
  uint32_t n = metric_classes(m);
  const char *names = m->classes;
  double most = n;
  for (uint32_t i = 0; i < n * n; i++) most = fmax(most, slots[i].sum);
  int width = 2 + (int)floor(log10(fmax(most, 1))) + 1;
  fprintf(to, "%6s", "true");
  for (uint32_t k = 0; k < n; k++) fprintf(to, "%*u", width, k);
  fputs("  predicted\n", to);
  for (uint32_t i = 0; i < n; i++) {
    fprintf(to, "%6u", i);
    for (uint32_t k = 0; k < n; k++) fprintf(to, "%*.0f", width, slots[i * n + k].sum);
    print_class(to, &names);
    fputc('\n', to);
  }
  if (slots[n * n].sum > 0)
    fprintf(to, "%6s %.0f labels or predictions that are no class\n", "and", slots[n * n].sum);
}

/* ---- metrics of a runtime ---- */

static uint32_t slots_of(const ampc_metric_desc *m)
{
  return ampc_metric_slots(m, 1);
}

ampc_status metric_read(ampc_runtime *rt, uint32_t metric, ampc_metric *out)
{
  const ampc_program *p = rt->program;
  if (metric >= p->n_metrics) return ampc_fail(AMPC_BAD_USAGE, "no metric %u", metric);
  ampc_status status = ampc_wait(rt);
  if (status) return status;
  int64_t at = ampc_state_metric(p->n_optimizers, ampc_metric_slots(p->metrics, metric));
  return ampc_read(rt, (ampc_ref){AMPC_STATE, at}, out,
                   (int64_t)(slots_of(&p->metrics[metric]) * sizeof *out));
}

/* Reads all ampc_metrics of a metric into new memory, which the caller frees. */
static ampc_status slots_read(ampc_runtime *rt, uint32_t metric, ampc_metric **slots)
{
  const ampc_program *p = rt->program;
  if (metric >= p->n_metrics) return ampc_fail(AMPC_BAD_USAGE, "no metric %u", metric);
  *slots = malloc(slots_of(&p->metrics[metric]) * sizeof **slots);
  if (!*slots) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a metric");
  ampc_status status = metric_read(rt, metric, *slots);
  if (status) free(*slots);
  return status;
}

/* Returns a metric with statistics as if a single sample had the metric's value. */
ampc_status ampc_get_metric(ampc_runtime *rt, uint32_t metric, ampc_metric *out)
{
  NEEDS(rt && out);
  ampc_metric *slots;
  ampc_status status = slots_read(rt, metric, &slots);
  if (status) return status;
  const ampc_metric_desc *m = &rt->program->metrics[metric];
  *out = slots[0];
  if (m->statistics) {
    double value = metric_value(m, slots);
    *out = (ampc_metric){.sum = value, .count = slots[0].count > 0, .last = (float)value};
  }
  free(slots);
  return AMPC_OK;
}

ampc_status ampc_get_statistics(ampc_runtime *rt, uint32_t metric, double *out)
{
  NEEDS(rt && out);
  ampc_metric *slots;
  ampc_status status = slots_read(rt, metric, &slots);
  if (status) return status;
  for (uint32_t i = 0; i < rt->program->metrics[metric].statistics; i++) out[i] = slots[i].sum;
  free(slots);
  return AMPC_OK;
}

ampc_status ampc_clear_metrics(ampc_runtime *rt, uint32_t block)
{
  NEEDS(rt);
  const ampc_program *p = rt->program;
  if (block >= p->n_blocks) return ampc_fail(AMPC_BAD_USAGE, "no block %u", block);
  const ampc_block *b = &p->blocks[block];
  uint32_t first = ampc_metric_slots(p->metrics, b->first_metric);
  uint32_t n = ampc_metric_slots(p->metrics + b->first_metric, b->n_metrics);
  static const ampc_metric zero[16];
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i += 16) {
    ampc_ref at = {AMPC_STATE, ampc_state_metric(p->n_optimizers, first + i)};
    uint32_t piece = n - i < 16 ? n - i : 16;
    status = ampc_write(rt, at, zero, (int64_t)(piece * sizeof *zero));
  }
  return status;
}
