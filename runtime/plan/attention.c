/* What cuDNN's attention can compute, and what it needs: see Note [attention by cuDNN] in
 * runtime/cuda/cudnn_attention.c. */
#include "attention.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDEST = 256, WIDE = 128, STEP = 8, KEY_TILE = 128, HALF_TILE = 64, QUERY_TILE = 64 };
enum { SCORE_BYTES = 2 };

/* ---- the choice ---- */

/* Who computes attention with dropout or a mask. OWN: own kernels. R1R2, R2B: cuDNN, for measuring,
 * until a GPU has confirmed the gradients of one of these graphs: Note [graphs of backward] in
 * runtime/cuda/cudnn_attention.c. UNSET: own kernels, but cuDNN for forward of heads that own
 * kernels do not multiply on tensor cores. */
typedef enum Choice { UNSET, OWN, R1R2, R2B, CHOICES } Choice;

static Choice chosen(void)
{
  static const char *const names[CHOICES] = {"", "own", "r1r2", "r2b"};
  const char *text = getenv("AMPC_ATTENTION");
  Choice c = UNSET;
  while (text && c < CHOICES && strcmp(text, names[c]) != 0) c++;
  return c;
}

bool ampc_attention_in_f32(void)
{
  return getenv("AMPC_ATTENTION_F32") != NULL;
}

ampc_status ampc_attention_check(void)
{
  if (chosen() != CHOICES) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "AMPC_ATTENTION is %s; it may be own, r1r2 or r2b",
                   getenv("AMPC_ATTENTION"));
}

/* ---- sizes: from the problem and the choice, so that costs are known without cuDNN ---- */

bool ampc_attention_has_kept(const ampc_attention *a)
{
  return a->p > 0 || a->mask.argument;
}

ampc_dtype ampc_attention_kept_type(const ampc_attention *a)
{
  return a->backward && chosen() == R2B ? AMPC_F32 : a->type;
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
  int64_t bytes = n * ampc_dtype_size(ampc_attention_kept_type(a));
  return ampc_attention_has_kept(a) ? ampc_round_up(bytes, AMPC_CUDA_ALIGN) : 0;
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

static bool has_heads_above_128(const ampc_attention *a)
{
  return a->d > WIDE || a->e > WIDE;
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

static bool has_part_of_a_tile_and_kept(const ampc_attention *a)
{
  return has_part_of_a_tile(a) && ampc_attention_has_kept(a);
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

static bool is_asked_of_own(const ampc_attention *a)
{
  return ampc_attention_has_kept(a) && chosen() == OWN;
}

/* Whether no GPU has confirmed the gradients of any graph, and none is to be measured. */
static bool is_unconfirmed(const ampc_attention *a)
{
  return ampc_attention_has_kept(a) && chosen() == UNSET;
}

bool ampc_attention_is_own(const ampc_attention *a)
{
  return ampc_attention_has_kept(a) && (a->backward || !has_heads_above_128(a));
}

static bool is_faster_by_own(const ampc_attention *a)
{
  return ampc_attention_is_own(a) && chosen() == UNSET;
}

static bool has_mask_of_one_key(const ampc_attention *a)
{
  int64_t dim[4];
  ampc_attention_mask_dims(a, dim);
  return a->mask.argument && dim[3] == 1;
}

static bool has_unlike_wide_heads(const ampc_attention *a)
{
  return a->d != a->e && a->d >= 128 && a->e >= 128 && !(a->d == 192 && a->e == 128);
}

typedef enum Way { BOTH_WAYS, BACKWARD } Way;
typedef struct Fault {
  int from, before;   /* from: first faulty version, before: first good one: 91501 for cuDNN 9.15.1;
                         0: no bound */
  int oldest, newest; /* range of the GPUs' compute capabilities, 90 for 9.0; 0: no bound */
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
    {0, 0, 0, 79, BOTH_WAYS, NULL, "cuDNN's attention is for GPUs from sm_80 on"},
    {91000, 91002, 0, 0, BOTH_WAYS, NULL, "computes attention wrongly"},
    {90000, LENGTHS_HELP, 0, 0, BACKWARD, has_part_of_a_tile,
     "reads outside of its buffers in repeated steps if the number of keys is no multiple of 128"},
    /* sdpa_support_surface.h of cudnn-frontend and fused_attn.cpp of Transformer Engine. Outside of
     * sm_90, cuDNN 9.19 and 9.26 name no engine for these gradients. */
    {90000, 90100, 90, 99, BOTH_WAYS, has_heads_above_128, "computes no heads wider than 128"},
    {90000, 90500, 90, 99, BACKWARD, has_heads_above_128,
     "computes no gradients of heads wider than 128"},
    {90000, 91002, 80, 89, BOTH_WAYS, has_heads_above_128,
     "computes no heads wider than 128 on this GPU"},
    {90000, 90900, 100, 0, BOTH_WAYS, has_heads_above_128,
     "computes no heads wider than 128 on this GPU"},
    {0, 0, 80, 89, BACKWARD, has_heads_above_128,
     "cuDNN computes no gradients of heads wider than 128 on this GPU"},
    {0, 0, 100, 0, BACKWARD, has_heads_above_128,
     "cuDNN computes no gradients of heads wider than 128 on this GPU"},
    {0, 0, 0, 0, BOTH_WAYS, is_asked_of_own,
     "AMPC_ATTENTION=own leaves dropout and masks to ampc's own kernels"},
    /* seen with 9.14.0 and 9.19.0 on H200s: bench/results/gpu-2026-11-27-2.md */
    {0, 0, 0, 0, BACKWARD, is_unconfirmed, "cuDNN computes wrong gradients with dropout or a mask"},
    {0, 0, 0, 0, BOTH_WAYS, is_faster_by_own,
     "ampc's own kernel is predicted to be faster with dropout or a mask"},
    {0, 0, 0, 0, BACKWARD, has_mask_of_one_key,
     "cuDNN's gradients are not tested with a mask that is the same for all keys"},
    /* cudnn-frontend's fp16_fwd_with_custom_dropout.cpp skips GPUs from sm_100 on */
    {0, 0, 100, 0, BOTH_WAYS, ampc_attention_has_kept,
     "cuDNN's attention with dropout or a mask is not tested on this GPU"},
    /* the graph would have lengths, which fused_attn.cpp of Transformer Engine uses with no bias
     * from 8.9.6 on, and with no dropout from 9.7 on */
    {LENGTHS_HELP, READS_INSIDE, 0, 0, BACKWARD, has_part_of_a_tile_and_kept,
     "cannot compute gradients with dropout or a mask if the number of keys is no multiple of 128"},
    /* cudnn-frontend: on 10.x. CUDA 13 calls 11.0 what was 10.1 */
    {90000, 91800, 100, 119, BACKWARD, NULL, "computes gradients that differ from run to run"},
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
  if (gpus && (with.capability < f->oldest || with.capability == 0)) return false;
  if (f->newest && with.capability > f->newest) return false;
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
