/* Schedules: functions of t, the number of steps taken, and of their parameters. */
#include "entry.h"

/* x: t, start, end, steps, warmup. Linear from 0 to start in the warm-up, then linear to end. */
ELEMENT(schedule_linear,
        x[0] < x[4] ? x[1] * x[0] / x[4]
                    : x[2] + (x[1] - x[2]) * fmax(0, (x[3] - x[0]) / (x[3] - x[4])),
        fabs(x[1]) + fabs(x[2]))
/* x: t, peak, steps, warmup, floor. Half a cosine from the peak to the floor. */
ELEMENT(schedule_cosine,
        x[0] < x[3]
            ? x[1] * x[0] / x[3]
            : x[4] + (x[1] - x[4]) * pow(cos(M_PI_2 * fmin(1, (x[0] - x[3]) / (x[2] - x[3]))), 2),
        fabs(x[1]) + fabs(x[4]))
/* x: t, peak, steps. PyTorch's OneCycleLR: up from peak / 25 in the first 30 % of the steps, down
 * to peak / 250000 in the rest, each half a cosine. */
ELEMENT(schedule_onecycle,
        x[0] <= 0.3 * x[2] - 1
            ? x[1] / 25 + x[1] * 24 / 25 * pow(sin(M_PI_2 * x[0] / (0.3 * x[2] - 1)), 2)
            : x[1] / 25e4 +
                  (x[1] - x[1] / 25e4) *
                      pow(cos(M_PI_2 * fmin(1, (x[0] - 0.3 * x[2] + 1) / (0.7 * x[2]))), 2),
        fabs(x[1]))
/* x: t, start, end, steps, power, warmup. */
ELEMENT(schedule_polynomial,
        x[0] < x[5] ? x[1] * x[0] / x[5]
                    : x[2] + (x[1] - x[2]) * pow(fmax(0, (x[3] - x[0]) / (x[3] - x[5])), x[4]),
        fabs(x[1]) + fabs(x[2]))
/* x: t, peak, warmup. */
ELEMENT(schedule_inverse_sqrt,
        x[0] < x[2] ? x[1] * x[0] / x[2] : x[1] / sqrt(fmax(x[0], 1) / fmax(x[2], 1)), fabs(r))
/* x: t, start, gamma, every. Keras's ExponentialDecay; PyTorch's ExponentialLR where every is 1. */
ELEMENT(schedule_exponential, x[1] * exp(log(x[2]) * x[0] / x[3]), fabs(r))
/* x: t, start, every, gamma. */
ELEMENT(schedule_step, x[1] * exp(log(x[3]) * floor(x[0] / x[2])), fabs(r))

/* x: t, floor, peak, up, down, shrink, gamma. PyTorch's CyclicLR. */
static double triangle(double t, double up, double down)
{
  double in = fmod(t, up + down);
  return in <= up ? in / up : 1 - (in - up) / down;
}
ELEMENT(schedule_cyclic,
        x[1] + (x[2] - x[1]) * triangle(x[0], x[3], x[4]) * pow(x[5], floor(x[0] / (x[3] + x[4]))) *
                   pow(x[6], x[0]),
        fabs(x[1]) + fabs(x[2]))
/* x: t, peak, period, growth, floor. PyTorch's formula for CosineAnnealingWarmRestarts. */
static double restarted(double t, double period, double growth)
{
  double n = floor(growth == 1 ? t / period : log(t / period * (growth - 1) + 1) / log(growth));
  double begin = growth == 1 ? n : (pow(growth, n) - 1) / (growth - 1);
  return (t - period * begin) / (period * pow(growth, n));
}
ELEMENT(schedule_cosine_restarts,
        x[4] + (x[1] - x[4]) * (1 + cos(M_PI * restarted(x[0], x[2], x[3]))) / 2,
        fabs(x[1]) + fabs(x[4]))
/* x: t, start, gamma, milestone. One milestone of PyTorch's MultiStepLR. */
ELEMENT(schedule_milestone, x[0] < x[3] ? x[1] : x[1] * x[2], fabs(r))

static const OpTest tests[] = {
    {OP_schedule_linear, "nnnnn", "f", MAP(schedule_linear),
     ULPS(3, "four roundings of the sizes of its ends"),
     /* at 0, in the warm-up, at its end, after it, after the last step; without a warm-up */
     CASES("f l:s{0} s{0.1} s{0.01} s{100} s{10}", "f l:s{7} s{0.1} s{0.01} s{100} s{10}",
           "f l:s{10} s{0.1} s{0.01} s{100} s{10}", "f l:s{63} s{0.1} s{0.01} s{100} s{10}",
           "f l:s{101} s{0.1} s{0.01} s{100} s{10}", "f l:s{0} s{0.1} s{0} s{100} s{0}")},
    {OP_schedule_cosine, "nnnnn", "f", MAP(schedule_cosine),
     ULPS(4, "cos 2, its argument and two roundings"),
     CASES("f l:s{3} s{0.1} s{100} s{10} s{0.001}", "f l:s{10} s{0.1} s{100} s{10} s{0.001}",
           "f l:s{41} s{0.1} s{100} s{10} s{0.001}", "f l:s{100} s{0.1} s{100} s{0} s{0}",
           "f l:s{5000} s{0.1} s{100} s{10} s{0.001}")},
    {OP_schedule_onecycle, "nnn", "f", MAP(schedule_onecycle),
     ULPS(6, "cos 2, its argument 2, two roundings"),
     /* on both sides of the peak at step 29, and after the last step */
     CASES("f l:s{0} s{0.1} s{100}", "f l:s{13} s{0.1} s{100}", "f l:s{29} s{0.1} s{100}",
           "f l:s{64} s{0.1} s{100}", "f l:s{99} s{0.1} s{100}", "f l:s{5000} s{0.1} s{100}")},
    {OP_schedule_polynomial, "nnnnnn", "f", MAP(schedule_polynomial),
     ULPS(6, "pow 2 of an argument that has 2 and is at most 1, two roundings"),
     CASES("f l:s{7} s{0.1} s{0.01} s{100} s{2} s{10}",
           "f l:s{10} s{0.1} s{0.01} s{100} s{2} s{10}", "f l:s{63} s{0.1} s{0} s{100} s{0.5} s{0}",
           "f l:s{63} s{0.1} s{0} s{100} s{1} s{10}",
           "f l:s{500} s{0.1} s{0.01} s{100} s{3} s{10}")},
    {OP_schedule_inverse_sqrt, "nnn", "f", MAP(schedule_inverse_sqrt),
     ULPS(3, "a division, a root, a product"),
     CASES("f l:s{0} s{0.1} s{0}", "f l:s{9} s{0.1} s{10}", "f l:s{10} s{0.1} s{10}",
           "f l:s{777} s{0.1} s{10}", "f l:s{2} s{0.1} s{0}")},
    {OP_schedule_exponential, "nnnn", "f", MAP(schedule_exponential),
     ULPS(8, "pow 2 and what the rounded exponent makes of it, one product, relative twice that"),
     CASES("f l:s{0} s{0.1} s{0.5} s{1}", "f l:s{7} s{0.1} s{0.9} s{1}",
           "f l:s{45} s{0.1} s{0.5} s{30}")},
    {OP_schedule_step, "nnnn", "f", MAP(schedule_step),
     ULPS(4, "pow 2, one product, relative twice that"),
     /* the last step before a drop and the first one after it */
     CASES("f l:s{0} s{0.1} s{30} s{0.5}", "f l:s{29} s{0.1} s{30} s{0.5}",
           "f l:s{30} s{0.1} s{30} s{0.1}", "f l:s{95} s{0.1} s{30} s{0.1}")},
    {OP_schedule_cyclic, "nnnnnnn", "f", MAP(schedule_cyclic),
     ULPS(6, "two pow of 2, and three roundings of the sizes of its ends"),
     /* at 0, the peak, beyond it, the floor; the second cycle, a later one; with gamma */
     CASES("f l:s{0} s{0.01} s{0.1} s{20} s{30} s{1} s{1}",
           "f l:s{20} s{0.01} s{0.1} s{20} s{30} s{1} s{1}",
           "f l:s{21} s{0.01} s{0.1} s{20} s{30} s{1} s{1}",
           "f l:s{50} s{0.01} s{0.1} s{20} s{30} s{1} s{1}",
           "f l:s{67} s{0.01} s{0.1} s{20} s{30} s{0.5} s{1}",
           "f l:s{5199} s{0.01} s{0.1} s{20} s{30} s{1} s{1}",
           "f l:s{33} s{0.01} s{0.1} s{20} s{30} s{1} s{0.98}")},
    {OP_schedule_cosine_restarts, "nnnnn", "f", MAP(schedule_cosine_restarts),
     ULPS(4, "cos 2, its argument and two roundings"),
     /* the last step of a period and the first one after it, of equal and of growing periods */
     CASES("f l:s{0} s{0.1} s{10} s{1} s{0.001}", "f l:s{9} s{0.1} s{10} s{1} s{0.001}",
           "f l:s{10} s{0.1} s{10} s{1} s{0.001}", "f l:s{5437} s{0.1} s{10} s{1} s{0.001}",
           "f l:s{29} s{0.1} s{10} s{2} s{0.001}", "f l:s{30} s{0.1} s{10} s{2} s{0.001}",
           "f l:s{12345} s{0.1} s{10} s{2} s{0}", "f l:s{77} s{0.1} s{10} s{3} s{0.001}")},
    {OP_schedule_milestone, "nnnn", "f", MAP(schedule_milestone), ULPS(1, "one product"),
     /* the last step before the milestone, the milestone, a later step */
     CASES("f l:s{29} s{0.1} s{0.3} s{30}", "f l:s{30} s{0.1} s{0.3} s{30}",
           "f l:s{95} s{0.1} s{0.3} s{30}")},
};
FAMILY(schedules)
