/* Functions for updates of weights and moments in fewer bits than f32 (update.cu). */
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

// --- ampc_ten
/* Returns 10^n for n of [0, 8), exactly. */
DEVICE real ampc_ten(int n)
{
  return (n & 1 ? R(10.0) : R(1.0)) * (n & 2 ? R(100.0) : R(1.0)) * (n & 4 ? R(10000.0) : R(1.0));
}

// --- ampc_code_value
/* Returns the value of a code of a moment: Note [codes] in runtime/state/codes.c. */
DEVICE real ampc_code_value(int code, int any_sign)
{
  const int k = any_sign && code > 128 ? 256 - code : code;
  const unsigned c = float_bits(any_sign ? (float)(2 * k + 1) : (float)k + 1.5f);
  const real m = (real)bits_float((c & 0x007fffffu) | 0x3f800000u);
  const real value = (R(9.0) * m - R(8.0)) * ampc_ten((int)(c >> 23) - 128) * R(1e-7);
  const real size = k == 0 ? R(0.0) : value > R(1.0) ? R(1.0) : value;
  return k == code ? size : -size;
}

// --- ampc_code
/* Returns the code whose value is nearest to x of [-1, 1]; 0 for NaN. The decade e begins in the
 * middle between the last value of the decade before it and its own first one; decade 8 has only
 * the value 1. */
DEVICE unsigned char ampc_code(real x, int any_sign)
{
  const real signless = any_sign ? ampc_abs(x) : x, size = signless > R(0.0) ? signless : R(0.0);
  const int last = size >= (any_sign ? R(0.996484375) : R(0.9982421875));
  const int e = (any_sign ? size >= R(2.75e-7) : size > R(0.0)) +
                (size >= (any_sign ? R(1.9e-6) : R(1.45e-6))) +
                (size >= (any_sign ? R(1.45e-5) : R(1.225e-5))) +
                (size >= (any_sign ? R(1.225e-4) : R(1.1125e-4))) +
                (size >= (any_sign ? R(1.1125e-3) : R(1.05625e-3))) +
                (size >= (any_sign ? R(1.05625e-2) : R(1.028125e-2))) +
                (size >= (any_sign ? R(0.1028125) : R(0.10140625))) + last;
  const int n = 1 << (any_sign ? e - (e > 0) : e); /* values of the decade */
  const int at = (int)((size * ampc_ten(8 - e) - R(1.0)) * ((real)n * R(0.1111111111111111)));
  const int k = e == 0 ? 0 : n + (at < n - 1 ? at : n - 1) - !any_sign;
  return (unsigned char)(any_sign && x < R(0.0) ? -(k < 127 ? k : 127) : k);
}

// --- ampc_size_key
/* Orders numbers by magnitude, positive before negative, NaN last. */
DEVICE unsigned ampc_size_key(real x)
{
  const unsigned bits = float_bits((float)x);
  return bits << 1 | !(bits >> 31);
}

// --- ampc_code_scale
/* Returns the scale of a block: its number with the largest key, 0 if it is below 2^-100, NaN if it
 * is not finite. */
DEVICE float ampc_code_scale(unsigned key)
{
  const unsigned size = key >> 1 < 0x7f800000u ? key >> 1 : 0x7fc00000u;
  return bits_float(size < 0x0d800000u ? 0u : key & 1u ? size : size | 0x80000000u);
}

// --- CODES_LOAD
/* Loads the vector of a code block at `from` as numbers name[j]. CODES_STORE stores them as codes,
 * with a new `scale`. All threads of the block execute both together. */
#define CODES_LOAD(name, from, scale, any_sign)                                                    \
  VECTOR_LOAD(8, unsigned char, name##_codes, from);                                               \
  VECTOR_LOCAL(8, real, name);                                                                     \
  unsigned name##_old = 0; /* only one thread reads and writes the scale */                        \
  CODES_ONCE name##_old = float_bits((float)(scale));                                              \
  const real name##_times = (real)bits_float(row_most_key(name##_old));                            \
  VECTOR_EACH(8, j) name[j] = ampc_code_value(name##_codes[j], any_sign) * name##_times

// --- CODES_STORE
#define CODES_STORE(to, name, scale, any_sign)                                                     \
  unsigned name##_key = 0;                                                                         \
  VECTOR_EACH(8, j)                                                                                \
  {                                                                                                \
    const unsigned key = ampc_size_key(name[j]);                                                   \
    name##_key = key > name##_key ? key : name##_key;                                              \
  }                                                                                                \
  const float name##_scale = ampc_code_scale(row_most_key(name##_key));                            \
  const real name##_share = ampc_abs(name##_scale) > R(0.0) ? R(1.0) / name##_scale : R(0.0);      \
  VECTOR_EACH(8, j) name##_codes[j] = ampc_code(name[j] * name##_share, any_sign);                 \
  VECTOR_STORE(to, name##_codes);                                                                  \
  CODES_ONCE scale = name##_scale
