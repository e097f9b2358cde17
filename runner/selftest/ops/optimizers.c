/* Optimizers: the trainings of suite step, and the formula of each optimizer from the documentation
 * of torch.optim, in plain double arithmetic. */
#include "entry.h"
#include "runner/selftest/step.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OpTest tests[] = {
    {OP_sgd_update, NO_CASES("suite step: formula sgd")},
    {OP_adam_update, NO_CASES("suite step: formula adam")},
    {OP_rmsprop_update, NO_CASES("suite step: formula rmsprop")},
    {OP_adagrad_update, NO_CASES("suite step: formula adagrad")},
    {OP_adadelta_update, NO_CASES("suite step: formula adadelta")},
    {OP_adamax_update, NO_CASES("suite step: formula adamax")},
    {OP_nadam_update, NO_CASES("suite step: formula nadam")},
    {OP_radam_update, NO_CASES("suite step: formula radam")},
    {OP_lion_update, NO_CASES("suite step: formula lion")},
    {OP_lamb_moments, NO_CASES("suite step: formula lamb")},
    {OP_trust_ratio, NO_CASES("suite step: formula lamb_whole")},
    {OP_lamb_update, NO_CASES("suite step: formula lamb_whole")},
    {OP_muon_moments, NO_CASES("suite step: formula muon")},
    {OP_muon_update, NO_CASES("suite step: formula muon_whole")},
};
FAMILY(optimizers)

/* Letters of a plan, one for each body:
 *   n  a usual batch
 *   N  a batch a hundred times larger, which clipping must cut or `skip` leave out
 *   i  a gradient overflows while the loss stays finite
 *   a  a NaN among the inputs
 *   f  an infinite input of the product
 *
 * With a and f the loss is not finite either. After i, a or f a scaler skips the update and lowers
 * the scale; without a scaler, no body updates anything from then on. */
const Recipe recipes[] = {
    {"sgd", OPT_SGD, "lr=0.1", "f32", "nnN"},
    {"sgd momentum", OPT_SGD, "lr=0.1 momentum=0.9 weight_decay=0.01", "f32", "nnnn"},
    {"sgd dampening", OPT_SGD, "lr=0.05 momentum=0.5 dampening=0.25", "bf16", "nnnn"},
    {"sgd nesterov, scaler", OPT_SGD,
     "lr=0.1 momentum=0.9 weight_decay=0.001 nesterov scaler=1024,2,0.5,3,256,4096", "f16",
     "nninnnnnnnnnniiiiiinn"},
    {"sgd first body overflows", OPT_SGD,
     "lr=0.1 momentum=0.9 dampening=0.5 scaler=65536,2,0.5,2000,1,16777216", "f16", "iinnn"},
    {"sgd lost losses", OPT_SGD, "lr=0.1 momentum=0.9 scaler=8,2,0.5,2,2,64", "f16",
     "nanfnnaaaanfnn"},
    {"sgd clip", OPT_SGD, "lr=0.1 clip=1 scaler=512,4,0.25,2,1,65536", "f16", "nNnNinn"},
    {"sgd skip", OPT_SGD, "lr=0.1 momentum=0.9 skip=100", "f32", "nNnNNn"},
    {"sgd clip, skip", OPT_SGD, "lr=0.1 clip=1 skip=100 scaler=512,4,0.25,2,1,65536", "f16",
     "nNniNNnn"},
    {"adam", OPT_Adam, "lr=0.01 beta1=0.9 beta2=0.999 eps=1e-8", "f32", "nnNnnin"},
    {"adam decay", OPT_Adam,
     "lr=0.01 beta1=0.8 beta2=0.95 eps=1e-3 weight_decay=0.1 scaler=1024,2,0.5,2,1,65536", "f16",
     "ninnfnn"},
    {"adamw", OPT_AdamW, "lr=0.01 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0.1", "bf16", "nnan"},
    {"adamw clip", OPT_AdamW,
     "lr=0.01 beta1=0.9 beta2=0.99 eps=1e-6 weight_decay=0.05 clip=0.5 "
     "scaler=2048,2,0.25,2,1024,65536",
     "f16", "niiinnn"},
    {"rmsprop", OPT_RMSprop, "lr=0.01 alpha=0.99 eps=1e-8", "f32", "nnNnnin"},
    {"rmsprop momentum", OPT_RMSprop,
     "lr=0.01 alpha=0.9 eps=1e-3 weight_decay=0.1 momentum=0.9 clip=0.5 "
     "scaler=2048,2,0.25,2,1024,65536",
     "f16", "niiinnn"},
    {"sgd maximize, clamp", OPT_SGD,
     "lr=0.1 momentum=0.9 maximize clamp=-0.3,0.5 scaler=1024,2,0.5,2,256,4096", "f16", "nninnN"},
    {"adam amsgrad, clip_value, ema", OPT_Adam,
     "lr=0.01 beta1=0.9 beta2=0.9 eps=1e-8 amsgrad clip_value=0.75 ema=0.75 "
     "scaler=1024,2,0.5,2,256,4096",
     "f16", "inNnninn"},
    {"adamw clips, clamp, ema", OPT_AdamW,
     "lr=0.1 beta1=0.9 beta2=0.99 eps=1e-6 weight_decay=0.05 clip=2 clip_value=0.25 ema=0.99 "
     "clamp=-0.25,0.25",
     "bf16", "nnnnn"},
    {"rmsprop centered", OPT_RMSprop,
     "lr=0.01 alpha=0.9 eps=1e-3 weight_decay=0.1 momentum=0.9 centered ema=0.5", "f32", "nnNnn"},
    {"adagrad", OPT_Adagrad,
     "lr=0.1 lr_decay=0.1 weight_decay=0.01 initial_accumulator_value=0.1 eps=1e-10 clip_value=1 "
     "scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninn"},
    {"adagrad clamp", OPT_Adagrad, "lr=0.05 eps=1e-3 maximize clamp=-1,1", "f32", "nNn"},
    {"adadelta", OPT_Adadelta, "lr=1 rho=0.9 eps=1e-6", "f32", "nnNnnin"},
    {"adadelta decay, clips, ema, clamp", OPT_Adadelta,
     "lr=0.5 rho=0.75 eps=1e-3 weight_decay=0.1 maximize clip=2 clip_value=0.5 ema=0.75 "
     "clamp=-0.5,0.5 scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninn"},
    {"adamax", OPT_Adamax, "lr=0.01 beta1=0.9 beta2=0.999 eps=1e-8", "f32", "nnNnnin"},
    {"adamax decay, clip, ema, clamp", OPT_Adamax,
     "lr=0.01 beta1=0.8 beta2=0.5 eps=1e-3 weight_decay=0.1 maximize clip_value=0.5 ema=0.75 "
     "clamp=-0.5,0.5 scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninn"},
    {"nadam", OPT_NAdam, "lr=0.01 beta1=0.9 beta2=0.999 eps=1e-8 momentum_decay=0.004", "f32",
     "nnNnnin"},
    {"nadam decay, clip, ema", OPT_NAdam,
     "lr=0.01 beta1=0.8 beta2=0.9 eps=1e-3 weight_decay=0.1 momentum_decay=0.5 maximize clip=2 "
     "clip_value=0.5 ema=0.75 clamp=-0.5,0.5 scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninn"},
    {"nadam decoupled", OPT_NAdam,
     "lr=0.01 beta1=0.9 beta2=0.99 eps=1e-6 weight_decay=0.1 decoupled_weight_decay", "bf16",
     "nnan"},
    /* with beta2 = 0.999 the sixth update is the first that divides by the root */
    {"radam", OPT_RAdam, "lr=0.01 beta1=0.9 beta2=0.999 eps=1e-8", "f32", "nnNnnnnn"},
    {"radam decay, clip, ema", OPT_RAdam,
     "lr=0.01 beta1=0.8 beta2=0.9 eps=1e-3 weight_decay=0.1 maximize clip=2 "
     "clip_value=0.5 ema=0.75 clamp=-0.5,0.5 scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninnnnnn"},
    {"radam decoupled", OPT_RAdam,
     "lr=0.01 beta1=0.9 beta2=0.5 eps=1e-6 weight_decay=0.1 decoupled_weight_decay", "bf16",
     "nnan"},
    {"lion", OPT_Lion, "lr=0.01 beta1=0.9 beta2=0.99", "f32", "nnNnnin"},
    {"lion decay, clip, ema, clamp", OPT_Lion,
     "lr=0.01 beta1=0.5 beta2=0.75 weight_decay=0.1 maximize clip_value=0.5 ema=0.75 "
     "clamp=-0.5,0.5 scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninn"},
    {"lamb", OPT_LAMB,
     "lr=0.01 beta1=0.9 beta2=0.999 eps=1e-6 weight_decay=0.1 bias_correction always_adapt", "f32",
     "nnNnnin"},
    /* the clamp sets padding to 0.125, which must not count in a norm */
    {"lamb clip, scaler, ema, clamp", OPT_LAMB,
     "lr=0.05 beta1=0.8 beta2=0.9 eps=1e-3 bias_correction always_adapt maximize clip=2 ema=0.75 "
     "clamp=0.125,0.5 scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninn"},
    {"lamb that is not corrected", OPT_LAMB,
     "lr=0.01 beta1=0.9 beta2=0.99 eps=1e-6 weight_decay=0.01 clip_value=0.5", "bf16", "nnan"},
    {"lamb that does not adapt", OPT_LAMB, "lr=0.01 beta1=0.9 beta2=0.99 eps=1e-6 bias_correction",
     "f32", "nnn"},
    {"muon", OPT_Muon, "lr=0.02 weight_decay=0.1 momentum=0.95 nesterov", "f32", "nnNnnin"},
    {"muon clip, scaler, ema, clamp", OPT_Muon,
     "lr=0.05 momentum=0.5 match_rms_adamw maximize clip=2 clip_value=0.5 ema=0.75 clamp=-0.25,0.5 "
     "scaler=1024,2,0.5,2,256,4096",
     "f16", "inNninn"},
    {"muon, bf16", OPT_Muon, "lr=0.01 momentum=0.75 nesterov", "bf16", "nnan"},
    {.label = NULL},
};

/* Finds the word `name`, with or without numbers after it. */
static bool find_word(const Recipe *r, const char *name, RowWord *out)
{
  for (const char *s = r->words; row_word(&s, out);) {
    size_t n = out->key ? out->key : out->size;
    if (strlen(name) == n && strncmp(out->at, name, n) == 0) return true;
  }
  return false;
}

bool recipe_flag(const Recipe *r, const char *name)
{
  RowWord word;
  return find_word(r, name, &word);
}

double recipe_number(const Recipe *r, const char *name, int i)
{
  RowWord word;
  double value = 0;
  if (!find_word(r, name, &word)) return 0;
  char *s = (char *)(uintptr_t)(word.at + word.key);
  for (int k = 0; k <= i; k++) value = strtod(s + 1, &s);
  return value;
}

double recipe_setting(const Recipe *r, const char *name)
{
  return number_round(AMPC_F32, recipe_number(r, name, 0));
}

Scaler recipe_scaler(const Recipe *r)
{
  double n[6];
  for (int i = 0; i < 6; i++) n[i] = recipe_number(r, "scaler", i);
  return (Scaler){n[0], n[1], n[2], (int64_t)n[3], n[4], n[5]};
}

/* ---- formulas: the expected value of an element, and the size that rounds ---- */

/* Computes SGD. The first step that is not skipped sets the buffer to the undampened gradient. */
static void sgd(const Recipe *r, Update *u)
{
  double lr = recipe_setting(r, "lr"), momentum = recipe_setting(r, "momentum");
  double g = u->g + recipe_setting(r, "weight_decay") * u->weight, buffer = u->moment[0];
  if (momentum > 0) {
    u->moment_size[0] = fabs(momentum * buffer) + fabs(g);
    double fresh = 1 - recipe_setting(r, "dampening");
    buffer = u->taken == 0 ? g : momentum * buffer + fresh * g;
    u->moment[0] = buffer;
    bool nesterov = recipe_flag(r, "nesterov");
    g = nesterov ? g + momentum * buffer : buffer;
  }
  u->weight_size = fabs(u->weight) + lr * (fabs(g) + fabs(buffer) + fabs(u->g));
  u->weight -= lr * g;
}

/* Returns the gradient with the decay added, or without it if the decay shrinks the weight. */
static double decayed(const Recipe *r, Update *u, bool decoupled)
{
  double decay = recipe_setting(r, "weight_decay") * u->weight;
  if (!decoupled) return u->g + decay;
  u->weight -= recipe_setting(r, "lr") * decay;
  return u->g;
}

/* Computes Adam, which adds the decay to the gradient, or AdamW, which shrinks the weight. The
 * rounded terms are as large as the moments and the weight. Root and division put the change a few
 * ulps off. */
static void adam(const Recipe *r, Update *u)
{
  double lr = recipe_setting(r, "lr"), t = u->taken + 1;
  double beta1 = recipe_setting(r, "beta1"), beta2 = recipe_setting(r, "beta2");
  double g = decayed(r, u, r->kind == OPT_AdamW);
  double m = beta1 * u->moment[0] + (1 - beta1) * g;
  double v = beta2 * u->moment[1] + (1 - beta2) * g * g;
  double greatest = v;
  if (recipe_flag(r, "amsgrad")) {
    u->moment[2] = greatest = fmax(u->moment[2], v);
    u->moment_size[2] = 2 * greatest;
  }
  double root = sqrt(greatest / (1 - pow(beta2, t)));
  double change = lr * m / (1 - pow(beta1, t)) / (root + recipe_setting(r, "eps"));
  u->moment[0] = m;
  u->moment[1] = v;
  u->moment_size[0] = fabs(m) + fabs(g);
  u->moment_size[1] = 2 * v;
  u->weight_size = fabs(u->weight) + 2 * fabs(change);
  u->weight -= change;
}

/* Computes RMSprop. The gradient and the decay may cancel, so errors are as large as `terms`, not
 * as their sum. */
static void rmsprop(const Recipe *r, Update *u)
{
  double lr = recipe_setting(r, "lr"), alpha = recipe_setting(r, "alpha");
  double momentum = recipe_setting(r, "momentum");
  double decay = recipe_setting(r, "weight_decay") * u->weight;
  double g = u->g + decay, terms = fabs(u->g) + fabs(decay);
  double v = alpha * u->moment[1] + (1 - alpha) * g * g;
  double under = v, mean = 0;
  if (recipe_flag(r, "centered")) {
    mean = alpha * u->moment[2] + (1 - alpha) * g;
    under = v - mean * mean;
    u->moment_size[2] = fabs(u->moment[2]) + terms;
    u->moment[2] = mean;
  }
  double root = sqrt(under) + recipe_setting(r, "eps"), change = g / root;
  /* v and the square of the mean may cancel: the difference has the absolute error of both, and the
   * root halves the relative error */
  double size = terms / root * (1 + (under < v ? 2 * v / under : 0));
  u->moment[1] = v;
  u->moment_size[1] = v + (1 - alpha) * fabs(g) * terms;
  if (momentum > 0) {
    size += fabs(momentum * u->moment[0]);
    change += momentum * u->moment[0];
    u->moment[0] = change;
    u->moment_size[0] = size;
  }
  u->weight_size = fabs(u->weight) + 2 * lr * size;
  u->weight -= lr * change;
}

static void adagrad(const Recipe *r, Update *u)
{
  double step = recipe_setting(r, "lr") / (1 + u->taken * recipe_setting(r, "lr_decay"));
  double decay = recipe_setting(r, "weight_decay") * u->weight;
  double g = u->g + decay, terms = fabs(u->g) + fabs(decay);
  double sum = u->taken == 0 ? recipe_setting(r, "initial_accumulator_value") : u->moment[1];
  double root = sqrt(sum + g * g) + recipe_setting(r, "eps");
  u->moment[1] = sum + g * g;
  u->moment_size[1] = sum + fabs(g) * terms;
  u->weight_size = fabs(u->weight) + 2 * step * terms / root;
  u->weight -= step * g / root;
}

/* Computes Adadelta. A root halves the relative error of its operand. The gradient is off by an ulp
 * of `terms`. */
static void adadelta(const Recipe *r, Update *u)
{
  double rho = recipe_setting(r, "rho"), eps = recipe_setting(r, "eps");
  double lr = recipe_setting(r, "lr"), decay = recipe_setting(r, "weight_decay") * u->weight;
  double g = u->g + decay, terms = fabs(u->g) + fabs(decay);
  double v = rho * u->moment[1] + (1 - rho) * g * g;
  double ratio = sqrt(u->moment[0] + eps) / sqrt(v + eps), change = ratio * g;
  u->moment[0] = rho * u->moment[0] + (1 - rho) * change * change;
  u->moment[1] = v;
  u->moment_size[0] = u->moment[0] + 2 * (1 - rho) * fabs(change) * ratio * terms;
  u->moment_size[1] = v + (1 - rho) * fabs(g) * terms;
  u->weight_size = fabs(u->weight) + 2 * lr * ratio * terms;
  u->weight -= lr * change;
}

static void adamax(const Recipe *r, Update *u)
{
  double beta1 = recipe_setting(r, "beta1"), decay = recipe_setting(r, "weight_decay") * u->weight;
  double step = recipe_setting(r, "lr") / (1 - pow(beta1, u->taken + 1));
  double g = u->g + decay, terms = fabs(u->g) + fabs(decay);
  double now = fabs(g) + recipe_setting(r, "eps"), m = beta1 * u->moment[0] + (1 - beta1) * g;
  u->moment_size[0] = fabs(beta1 * u->moment[0]) + terms;
  u->moment[0] = m;
  u->moment[1] = fmax(recipe_setting(r, "beta2") * u->moment[1], now);
  u->moment_size[1] = u->moment[1] + terms;
  u->weight_size = fabs(u->weight) + 3 * step * u->moment_size[0] / u->moment[1];
  u->weight -= step * m / u->moment[1];
}

/* Updates both moments of Adam's relatives. Returns the gradient, whose size is in *terms. */
static double two_moments(const Recipe *r, Update *u, double *terms)
{
  double beta1 = recipe_setting(r, "beta1"), beta2 = recipe_setting(r, "beta2");
  bool decoupled = recipe_flag(r, "decoupled_weight_decay");
  *terms = fabs(u->g) + (decoupled ? 0 : fabs(recipe_setting(r, "weight_decay") * u->weight));
  double g = decayed(r, u, decoupled);
  u->moment_size[0] = fabs(beta1 * u->moment[0]) + *terms;
  u->moment[0] = beta1 * u->moment[0] + (1 - beta1) * g;
  u->moment[1] = beta2 * u->moment[1] + (1 - beta2) * g * g;
  u->moment_size[1] = 2 * u->moment[1] + (1 - beta2) * fabs(g) * *terms;
  return g;
}

/* Computes NAdam. moment[2] is 1 minus the product of all mu. */
static void nadam(const Recipe *r, Update *u)
{
  double lr = recipe_setting(r, "lr"), beta1 = recipe_setting(r, "beta1"), t = u->taken + 1, terms;
  double fall = recipe_setting(r, "momentum_decay"), g = two_moments(r, u, &terms);
  double mu = beta1 * (1 - 0.5 * pow(0.96, t * fall));
  double next = beta1 * (1 - 0.5 * pow(0.96, (t + 1) * fall));
  double product = (1 - u->moment[2]) * mu;
  double root = sqrt(u->moment[1] / (1 - pow(recipe_setting(r, "beta2"), t)));
  double of_g = lr * (1 - mu) / (1 - product) / (root + recipe_setting(r, "eps"));
  double of_m = lr * next / (1 - product * next) / (root + recipe_setting(r, "eps"));
  u->moment[2] = 1 - product;
  u->moment_size[2] = 1;
  u->weight_size = fabs(u->weight) + 3 * (of_g * terms + of_m * u->moment_size[0]);
  u->weight -= of_g * g + of_m * u->moment[0];
}

/* Computes RAdam. The root of (n - 4) (n - 2) magnifies the rounding of n, which is at least 5. */
static void radam(const Recipe *r, Update *u)
{
  double beta1 = recipe_setting(r, "beta1"), beta2 = recipe_setting(r, "beta2"), terms;
  double t = u->taken + 1, correct2 = 1 - pow(beta2, t), most = 2 / (1 - beta2) - 1;
  double n = most - 2 * t * pow(beta2, t) / correct2;
  double step = recipe_setting(r, "lr") / (1 - pow(beta1, t));
  two_moments(r, u, &terms);
  if (n > 5)
    step *= sqrt((n - 4) * (n - 2) * most / ((most - 4) * (most - 2) * n)) * sqrt(correct2) /
            (sqrt(u->moment[1]) + recipe_setting(r, "eps"));
  u->weight_size = fabs(u->weight) + 6 * step * u->moment_size[0];
  u->weight -= step * u->moment[0];
}

/* Computes Lion. A sum near 0 has no certain sign: there both steps are right. */
static void lion(const Recipe *r, Update *u)
{
  double beta1 = recipe_setting(r, "beta1"), beta2 = recipe_setting(r, "beta2");
  double lr = recipe_setting(r, "lr"), g = decayed(r, u, true), m = u->moment[0];
  double sum = beta1 * m + (1 - beta1) * g, size = fabs(beta1 * m) + fabs((1 - beta1) * g);
  bool certain = fabs(sum) > 0x1p-20 * size || size == 0;
  u->weight_size = fabs(u->weight) + lr * (certain ? 1 : 0x1p24);
  u->weight -= lr * ((sum > 0) - (sum < 0));
  u->moment[0] = beta2 * m + (1 - beta2) * g;
  u->moment_size[0] = fabs(m) + fabs(g);
}

/* Computes LAMB up to the change. The term of the gradient and the decay may cancel, so errors are
 * as large as the sum of their sizes. */
static void lamb(const Recipe *r, Update *u)
{
  double beta1 = recipe_setting(r, "beta1"), beta2 = recipe_setting(r, "beta2");
  double t = u->taken + 1, decay = recipe_setting(r, "weight_decay") * u->weight;
  double m = beta1 * u->moment[0] + (1 - beta1) * u->g;
  double v = beta2 * u->moment[1] + (1 - beta2) * u->g * u->g;
  u->moment_size[0] = fabs(m) + fabs(u->g);
  u->moment_size[1] = 2 * v;
  u->moment[0] = m;
  u->moment[1] = v;
  if (recipe_flag(r, "bias_correction")) {
    m /= 1 - pow(beta1, t);
    v /= 1 - pow(beta2, t);
  }
  double part = m / (sqrt(v) + recipe_setting(r, "eps"));
  u->change = part + decay;
  u->change_size = (fabs(m) + fabs(u->g)) / (sqrt(v) + recipe_setting(r, "eps")) + fabs(decay);
}

static void lamb_whole(const Recipe *r, Update *u, int n)
{
  double weights = 0, changes = 0, ratio = 1;
  for (int i = 0; i < n; i++) {
    weights += u[i].weight * u[i].weight;
    changes += u[i].change * u[i].change;
  }
  bool adapts = recipe_flag(r, "always_adapt") || recipe_setting(r, "weight_decay") != 0;
  if (adapts && weights > 0 && changes > 0) ratio = sqrt(weights) / sqrt(changes);
  for (int i = 0; i < n; i++) {
    double step = recipe_setting(r, "lr") * ratio;
    u[i].weight_size = fabs(u[i].weight) + 2 * step * u[i].change_size;
    u[i].weight -= step * u[i].change;
  }
}

/* Computes Muon up to the change before it is orthogonalized. */
static void muon(const Recipe *r, Update *u)
{
  double momentum = recipe_setting(r, "momentum"), before = u->moment[0];
  double m = momentum * before + (1 - momentum) * u->g;
  bool nesterov = recipe_flag(r, "nesterov");
  u->moment[0] = m;
  u->moment_size[0] = fabs(before) + fabs(u->g);
  u->change = nesterov ? (1 - momentum) * u->g + momentum * m : m;
  u->change_size = u->moment_size[0];
}

/* A matrix of one row has one singular value, its norm. Five polynomials move it from 1 to `value`.
 * In 16 bits each product rounds with the precision of the type. */
static void muon_whole(const Recipe *r, Update *u, int n)
{
  double norm = 0, value = 1, lr = recipe_setting(r, "lr");
  double ulps = r->precision[0] == 'b' ? 0x1p16 : strcmp(r->precision, "f16") == 0 ? 0x1p13 : 1;
  double factor = recipe_flag(r, "match_rms_adamw") ? 0.2 * sqrt(n) : 1;
  for (int i = 0; i < n; i++) norm += u[i].change * u[i].change;
  norm = fmax(sqrt(norm), 1e-7);
  for (int i = 0; i < 5; i++) value *= 3.4445 - 4.7750 * pow(value, 2) + 2.0315 * pow(value, 4);
  for (int i = 0; i < n; i++) {
    double decay = lr * recipe_setting(r, "weight_decay") * u[i].weight;
    u[i].weight_size = fabs(u[i].weight) + 2 * ulps * lr * factor * u[i].change_size / norm;
    u[i].weight -= decay + lr * factor * value * u[i].change / norm;
  }
}

static UpdateFormula *const formulas[OPT_COUNT] = {
    [OPT_SGD] = sgd,         [OPT_Adam] = adam,       [OPT_AdamW] = adam,
    [OPT_RMSprop] = rmsprop, [OPT_Adagrad] = adagrad, [OPT_Adadelta] = adadelta,
    [OPT_Adamax] = adamax,   [OPT_NAdam] = nadam,     [OPT_RAdam] = radam,
    [OPT_Lion] = lion,       [OPT_LAMB] = lamb,       [OPT_Muon] = muon};
static WholeFormula *const whole_formulas[OPT_COUNT] = {
    [OPT_LAMB] = lamb_whole, [OPT_Muon] = muon_whole};

UpdateFormula *optimizer_formula(OptimizerKind kind)
{
  return formulas[kind];
}

WholeFormula *optimizer_whole_formula(OptimizerKind kind)
{
  return whole_formulas[kind];
}

/* ---- the check ---- */

/* Checks that the optimizer has all settings of the recipe: others would be ignored. */
static ampc_status check_settings(const Recipe *r)
{
  static const char of_all[] = " clip skip clip_value ema clamp scaler ";
  RowWord word;
  for (const char *s = r->words; row_word(&s, &word);) {
    char name[64];
    uint32_t k;
    snprintf(name, sizeof name, " %.*s ", (int)word.key, word.at);
    if (!word.key || strstr(of_all, name)) continue;
    snprintf(name, sizeof name, "%.*s", (int)word.key, word.at);
    if (!optimizer_setting_find(optimizer_row(r->kind), name, &k))
      return ampc_fail(AMPC_RUN_FAILED, "recipe %s: %s has no setting `%s`", r->label,
                       optimizer_row(r->kind)->name, name);
  }
  return AMPC_OK;
}

ampc_status recipes_check(void)
{
  bool any[OPT_COUNT] = {false};
  for (const Recipe *r = recipes; r->label; r++) {
    ampc_status status = check_settings(r);
    if (status) return status;
    any[r->kind] = true;
  }
  for (OptimizerKind k = 0; k < OPT_COUNT; k++)
    if (!any[k] || !formulas[k])
      return ampc_fail(AMPC_RUN_FAILED, "%s has no %s in runner/selftest/ops/optimizers.c",
                       optimizer_row(k)->name, any[k] ? "formula" : "recipe");
  return AMPC_OK;
}
