/* What cuDNN's attention can compute, and what it needs: see Note [attention by cuDNN] in
 * runtime/cuda/cudnn_attention.c. */
#include "attention.h"
#include <stdio.h>

enum { WIDEST = 256, STEP = 8, KEY_TILE = 128, HALF_TILE = 64, QUERY_TILE = 64, SCORE_BYTES = 2 };

/* ---- sizes: from the problem alone, so that costs are known without cuDNN ---- */

bool ampc_attention_has_kept(const ampc_attention *a)
{
  return a->p > 0 || a->mask.argument;
}

int64_t ampc_attention_scores(const ampc_attention *a)
{
  if (!a->backward) return 0;
  int64_t l = ampc_round_up(a->l, QUERY_TILE), s = ampc_round_up(a->s, KEY_TILE);
  return a->n * a->heads * l * s * SCORE_BYTES;
}

void ampc_attention_mask_dims(const ampc_attention *a, int64_t out[4])
{
  const int64_t all[] = {a->n, a->heads, a->l, a->s};
  for (int i = 0; i < 4; i++) out[i] = a->mask.stride[i] ? all[i] : 1;
}

static int64_t mask_elements(const ampc_attention *a)
{
  int64_t dim[4];
  ampc_attention_mask_dims(a, dim);
  return dim[0] * dim[1] * dim[2] * dim[3];
}

int64_t ampc_attention_kept(const ampc_attention *a)
{
  int64_t n = a->p > 0 ? a->n * a->heads * a->l * a->s : mask_elements(a);
  return ampc_attention_has_kept(a) ? ampc_round_up(n * SCORE_BYTES, AMPC_CUDA_ALIGN) : 0;
}

int64_t ampc_attention_bias(const ampc_attention *a)
{
  if (!a->mask.argument) return 0;
  return ampc_round_up(mask_elements(a) * (int64_t)sizeof(float), AMPC_CUDA_ALIGN);
}

/* ---- faults ---- */

static bool has_wide_type(const ampc_attention *a)
{
  return ampc_dtype_size(a->type) != 2;
}

static bool has_groups(const ampc_attention *a)
{
  return a->grouped;
}

static bool has_odd_width(const ampc_attention *a)
{
  return a->d % STEP || a->e % STEP;
}

static bool has_wide_head(const ampc_attention *a)
{
  return a->d > WIDEST || a->e > WIDEST;
}

static bool keeps_nothing(const ampc_attention *a)
{
  return a->p >= 1;
}

static bool lies_oddly(const ampc_attention *a)
{
  const int64_t *all[] = {a->q.stride,  a->k.stride,  a->v.stride,  a->y.stride,
                          a->dy.stride, a->dq.stride, a->dk.stride, a->dv.stride};
  for (size_t i = 0; i < (a->backward ? sizeof all / sizeof *all : 4); i++)
    if (all[i][0] % STEP || all[i][1] % STEP || all[i][2] % STEP) return true;
  return false;
}

static bool has_one_query(const ampc_attention *a)
{
  return a->l == 1;
}

/* Versions from LENGTHS_HELP to READS_INSIDE - 1 read outside of operands in backward if the last
 * tile of keys is not full, unless the graph has the lengths of sequences: cudnn-frontend
 * 1.16. */
enum { LENGTHS_HELP = 91002, READS_INSIDE = 91501 };

static bool has_part_of_a_tile(const ampc_attention *a)
{
  return a->s % KEY_TILE != 0;
}

bool ampc_attention_has_lengths(const ampc_attention *a, int version)
{
  return a->backward && has_part_of_a_tile(a) && version >= LENGTHS_HELP && version < READS_INSIDE;
}

int64_t ampc_attention_lengths(const ampc_attention *a)
{
  int64_t each = ampc_round_up(a->n * (int64_t)sizeof(int32_t), AMPC_CUDA_ALIGN);
  return a->backward && has_part_of_a_tile(a) ? each : 0;
}

/* Whether queries attend to half a tile after the last key: not with a causal mask and l <= s. */
static bool has_half_a_tile(const ampc_attention *a)
{
  return a->s % KEY_TILE == HALF_TILE && (!a->causal || a->l > a->s);
}

static bool has_unlike_wide_heads(const ampc_attention *a)
{
  return a->d != a->e && a->d >= 128 && a->e >= 128 && !(a->d == 192 && a->e == 128);
}

typedef enum Way { BOTH_WAYS, BACKWARD } Way;
typedef struct Fault {
  int from, before;   /* from: first faulty version, before: first good one: 91501 for cuDNN 9.15.1;
                         0: no bound */
  int oldest, newest; /* range of the GPUs' compute capabilities, 90 for 9.0; both 0: all GPUs */
  Way way;
  bool (*when)(const ampc_attention *a); /* NULL: always */
  const char *why;                       /* follows "cuDNN 9.10.1" if `from` is set */
} Fault;

/* This is the only list of what cuDNN's attention cannot compute or computes wrongly. The versions
 * come from NVIDIA's release notes, and from what NVIDIA's own front end (cudnn-frontend) and
 * Transformer Engine refuse. */
static const Fault faults[] = {
    {0, 0, 0, 0, BOTH_WAYS, has_wide_type, "its operands are not 16 bits wide"},
    {0, 0, 0, 0, BOTH_WAYS, has_groups, "its keys and values have fewer heads than its queries"},
    {0, 0, 0, 0, BOTH_WAYS, has_odd_width, "a head's width is no multiple of 8"},
    {0, 0, 0, 0, BOTH_WAYS, has_wide_head, "a head is wider than 256"},
    {0, 0, 0, 0, BOTH_WAYS, keeps_nothing, "dropout drops every element"},
    {0, 0, 0, 0, BOTH_WAYS, lies_oddly,
     "the distance between rows of an operand is no multiple of 16 bytes"},
    /* with one key: release notes; with more: cudnn-frontend issues 1071, 1072: crash and NaN */
    {0, 0, 0, 0, BACKWARD, has_one_query,
     "cuDNN crashes or returns NaN for gradients of a single query"},
    {0, 0, 1, 79, BOTH_WAYS, NULL, "cuDNN's attention is for GPUs from sm_80 on"},
    {91000, 91002, 0, 0, BOTH_WAYS, NULL, "computes attention wrongly"},
    {90000, LENGTHS_HELP, 0, 0, BACKWARD, has_part_of_a_tile,
     "reads outside of its buffers in repeated steps if the number of keys is no multiple of 128"},
    /* seen with 9.14.0 and 9.19.0 on H200s: bench/results/gpu-2026-11-27-2.md */
    {0, 0, 0, 0, BACKWARD, ampc_attention_has_kept,
     "cuDNN computes wrong gradients with dropout or a mask"},
    {90000, 91800, 100, 109, BACKWARD, NULL, "computes gradients that differ from run to run"},
    /* cudnn-frontend pull request 628: cuDNN computes exp(0 - sums) for keys that do not exist */
    {90000, 92600, 90, 99, BACKWARD, has_half_a_tile,
     "returns NaN for queries with low scores if the number of keys is 64 more than a multiple of "
     "128"},
    {91100, 0, 90, 99, BACKWARD, has_unlike_wide_heads,
     "computes wrong gradients for wide heads whose values have another width"},
};

/* Whether the fault concerns this attention. Faults of some versions or GPUs exclude unknown (0)
 * ones. */
static bool is_met(const Fault *f, const ampc_attention *a, ampc_cudnn with)
{
  bool versions = f->from || f->before, gpus = f->oldest || f->newest;
  if (versions && (with.version < f->from || with.version == 0)) return false;
  if (f->before && with.version >= f->before) return false;
  if (gpus && (with.capability < f->oldest || with.capability > f->newest)) return false;
  return (f->way == BOTH_WAYS || a->backward) && (!f->when || f->when(a));
}

static int put_version(char *out, int version)
{
  return sprintf(out, "cuDNN %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

const char *ampc_attention_against(const ampc_attention *a, ampc_cudnn with,
                                   char why[AMPC_WHY_ROOM])
{
  const Fault *f = faults, *end = faults + sizeof faults / sizeof *faults;
  while (f < end && !is_met(f, a, with)) f++;
  if (f == end) return NULL;
  int at = f->from ? put_version(why, with.version) : 0;
  at += sprintf(why + at, "%s%s", f->from ? " " : "", f->why);
  if (!f->before) return why;
  at += sprintf(why + at, ": install ");
  at += put_version(why + at, f->before);
  sprintf(why + at, " or newer");
  return why;
}
