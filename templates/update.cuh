/* Functions for updates of bf16 weights and moments (update.cu). */
// --- ampc_element_words
/* Computes the words of n elements from `first` on. Both are multiples of 4. */
DEVICE void ampc_element_words(unsigned *out, long long seed, long long body, unsigned stream,
                               long long first, int n)
{
  for (int k = 0; k < n; k += 4) {
    const ampc_words w = ampc_drawn(seed, body, stream, (first + k) >> 2);
    out[k] = (unsigned)w.at[0];
    out[k + 1] = (unsigned)w.at[1];
    out[k + 2] = (unsigned)w.at[2];
    out[k + 3] = (unsigned)w.at[3];
  }
}

// --- ampc_random_bf16
/* Rounds to one of the two neighbours in bf16, in proportion to their distances: the mean over the
 * lower 16 bits of `word` is `value`. The neighbour above the largest finite number is infinity.
 * bf16 numbers and infinities stay, NaN becomes 0x7fff. */
DEVICE bf16 ampc_random_bf16(real value, unsigned word)
{
  unsigned x = float_bits((float)value), nan = 0u - (value != value);
  x = (x & ~nan) | (nan & 0x7fff0000u);
  return (bf16)((x + (word & 0xffffu)) >> 16);
}

// --- ampc_rest_bf16
/* Returns what rounding to bf16 takes from value; 0 if it is not finite. */
DEVICE real ampc_rest_bf16(real value)
{
  const real rest = value - round_bf16(value);
  return rest - rest == R(0.0) ? rest : R(0.0);
}

// --- ampc_two_bf16
/* Rounds to a sum of two bf16 numbers: the result rounded to bf16, and its rest. */
DEVICE real ampc_two_bf16(real value)
{
  return round_bf16(value) + round_bf16(ampc_rest_bf16(value));
}

// --- BF16_LOAD
/* As VECTOR_LOAD for bf16 elements, but name[j] is real. BF16_STORE stores `value`, an expression
 * with j, as element j. */
#define BF16_LOAD(n, name, from)                                                                   \
  VECTOR_LOAD(n, bf16, name##_bf16, from);                                                         \
  VECTOR_LOCAL(n, real, name);                                                                     \
  VECTOR_EACH(n, j) name[j] = from_bf16(name##_bf16[j])

// --- BF16_STORE
#define BF16_STORE(n, to, name, value)                                                             \
  VECTOR_EACH(n, j) name##_bf16[j] = value;                                                        \
  VECTOR_STORE(to, name##_bf16)
