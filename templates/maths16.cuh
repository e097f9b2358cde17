/* Activations whose operand and result are both f16 or bf16, held in a float. They have no branch
 * and no division, so a GPU is limited by memory and not by their instructions. The rules of
 * maths.cuh hold: the same bits on every machine. The square of an operand is exact, since operands
 * have at most 11 bits.
 *
 * Errors are those before the result is rounded. An ulp is the distance of neighbours in the 16-bit
 * type. Results below 2^-119 may become 0. tests/unit/test_maths tries all operands of both types.
 * The coefficients are minimax fits computed for this file. */

// --- ampc_inverse_16
/* Returns 1 / d for d >= 2^-2 with an error of 2^-23. The constant minus the bits of d, read as a
 * float, is y = c / d, where c = d y lies in 0.7071 to 0.7286. Multiplying y by a linear fit of
 * 1 / c leaves a relative error of 2^-13. One Newton step leaves 2^-23. */
DEVICE float ampc_inverse_16(float d)
{
  float y = bits_float(0x7eb50500u - float_bits(d));
  y *= fmaf(d * y, -1.94090426f, 2.78648233f);
  return fmaf(y, fmaf(-d, y, 1.0f), y);
}

// --- ampc_power_16
DEVICE float ampc_power_16(float r) /* 2^-r for |r| <= 1/2 with an error of 2^-23 */
{
  float p = fmaf(r, -1.32762373e-03f, 9.67577007e-03f);
  p = fmaf(p, r, -5.5507157e-02f);
  p = fmaf(p, r, 2.40221158e-01f);
  p = fmaf(p, r, -6.93146944e-01f);
  return fmaf(p, r, 1.00000012f);
}

// --- ampc_sigmoid_parts_16
/* Returns s = 1 / (1 + 2^-t) for t = x y from -127 to 40, and stores 1 - s in `rest`, without a
 * subtraction. With n = round(t), s is 2^n / (2^n + 2^(n - t)): only 2^(n - t) is approximated.
 * For n = -127, s is 0. */
DEVICE float ampc_sigmoid_parts_16(float x, float y, float *rest)
{
  float shifted = fmaf(x, y, 12582912.0f); /* 1.5 2^23: n is in the low bits */
  float p = ampc_power_16(fmaf(x, y, 12582912.0f - shifted));
  float scale = bits_float((float_bits(shifted) << 23) + 0x3f800000u);
  float inverse = ampc_inverse_16(scale + p);
  *rest = p * inverse;
  return scale * inverse;
}

// --- ampc_sigmoid_16
DEVICE float ampc_sigmoid_16(float x) /* error <= 0.0005 ulp */
{
  float rest;
  return ampc_sigmoid_parts_16(ampc_clamp(x, -88.0f, 25.0f), 1.44269502f, &rest);
}

// --- ampc_silu_16
DEVICE float ampc_silu_16(float x) /* error <= 0.0006 ulp */
{
  return x * ampc_sigmoid_16(x);
}

// --- ampc_silu_slope_16
/* Returns s (1 + x (1 - s)) with s = sigmoid(x); error <= 2^-22 (1 + |x| / 4). */
DEVICE float ampc_silu_slope_16(float x)
{
  float rest, y = ampc_clamp(x, -88.0f, 25.0f);
  float s = ampc_sigmoid_parts_16(y, 1.44269502f, &rest);
  return s * fmaf(y, rest, 1.0f);
}

// --- ampc_gelu_tanh_16
/* Returns x sigmoid(2 u), see ampc_gelu_tanh; error <= 0.002 ulp. */
DEVICE float ampc_gelu_tanh_16(float x)
{
  float rest, y = ampc_clamp(x, -10.03f, 6.0f); /* 0 or 1 from there on */
  return x * ampc_sigmoid_parts_16(y, fmaf(y * y, 1.0294324e-01f, 2.30220819f), &rest);
}

// --- ampc_gelu_tanh_slope_16
/* Returns 1/2 + x P(x^2), from |x| = 5.1 on exactly 0 or 1; error <= 2^-21 (1 + |x| / 2). */
DEVICE float ampc_gelu_tanh_slope_16(float x)
{
  float y = ampc_clamp(x, -5.09999943f, 5.09999943f);
  float z = fmaf(y, y, -13.005f); /* the middle: terms stay small */
  float p = fmaf(z, 1.47995536e-19f, -8.66885437e-19f);
  p = fmaf(p, z, -1.13781393e-16f);
  p = fmaf(p, z, 1.4253737e-15f);
  p = fmaf(p, z, 9.96351642e-15f);
  p = fmaf(p, z, -2.71410905e-14f);
  p = fmaf(p, z, -5.07555499e-12f);
  p = fmaf(p, z, 7.80685586e-11f);
  p = fmaf(p, z, -9.49257672e-10f);
  p = fmaf(p, z, 1.56773901e-08f);
  p = fmaf(p, z, -2.30409157e-07f);
  p = fmaf(p, z, 2.78159655e-06f);
  p = fmaf(p, z, -3.12700577e-05f);
  p = fmaf(p, z, 3.74798721e-04f);
  p = fmaf(p, z, -5.58338128e-03f);
  p = fmaf(p, z, 1.3910605e-01f);
  return 0.5f + y * p;
}

// --- ampc_gelu_16
/* Returns x Phi(x). For a = |x|: Phi(-a) = 2^(V(a) - c a^2) with c = log2(e) / 2. V is a polynomial
 * in a - 2. Error <= 0.002 ulp in f16; in bf16 <= 0.02 ulp, which it reaches below -6 only. */
DEVICE float ampc_gelu_16(float x)
{
  float a = ampc_abs(x);
  a = a > 14.2f ? 14.2f : a; /* Phi is 0 there; NaN stays */
  float b = a - 2.0f, z = a * a;
  float v = fmaf(b, 9.6019308e-13f, -5.91718063e-11f);
  v = fmaf(v, b, 1.52957536e-09f);
  v = fmaf(v, b, -2.12712283e-08f);
  v = fmaf(v, b, 1.65424737e-07f);
  v = fmaf(v, b, -5.73052944e-07f);
  v = fmaf(v, b, -1.9421359e-06f);
  v = fmaf(v, b, 4.11812362e-05f);
  v = fmaf(v, b, -3.52034258e-04f);
  v = fmaf(v, b, 2.37108441e-03f);
  v = fmaf(v, b, -1.42691443e-02f);
  v = fmaf(v, b, 8.24333504e-02f);
  v = fmaf(v, b, -5.38437366e-01f);
  v = fmaf(v, b, -2.57259107f);
  float shifted = fmaf(z, -7.21347511e-01f, v) + 12582912.0f; /* see ampc_sigmoid_parts_16 */
  float r = fmaf(z, -7.21347511e-01f, 12582912.0f - shifted) + v;
  float p = ampc_power_16(-r) * 5.96046448e-08f; /* 2^-24, for Phi below 2^-126 */
  float phi = p * bits_float((float_bits(shifted) << 23) + 0x4b800000u);
  return x * (x < 0.0f ? phi : 1.0f - phi);
}

// --- ampc_gelu_slope_16
/* Returns 1/2 + x P(x^2), from |x| = 5.4 on exactly 0 or 1; error <= 2^-21 (1 + |x| / 2). */
DEVICE float ampc_gelu_slope_16(float x)
{
  float y = ampc_clamp(x, -5.39999962f, 5.39999962f);
  float z = fmaf(y, y, -14.58f);
  float p = fmaf(z, 4.13391369e-19f, -1.39488741e-17f);
  p = fmaf(p, z, 8.61675963e-17f);
  p = fmaf(p, z, -7.19850527e-16f);
  p = fmaf(p, z, 9.0441184e-14f);
  p = fmaf(p, z, -2.16561209e-12f);
  p = fmaf(p, z, 3.0502597e-11f);
  p = fmaf(p, z, -4.79570328e-10f);
  p = fmaf(p, z, 7.96894284e-09f);
  p = fmaf(p, z, -1.11854625e-07f);
  p = fmaf(p, z, 1.4195756e-06f);
  p = fmaf(p, z, -1.82838849e-05f);
  p = fmaf(p, z, 2.62173795e-04f);
  p = fmaf(p, z, -4.61697672e-03f);
  p = fmaf(p, z, 1.31200343e-01f);
  return 0.5f + y * p;
}

// --- ampc_tanh_16
/* Returns x P(x^2) / Q(x^2); the stored result is the correctly rounded one. */
DEVICE float ampc_tanh_16(float x)
{
  float y = ampc_clamp(x, -4.75f, 4.75f); /* 1 in 16 bits from there on */
  float z = y * y;
  float p = fmaf(z, 5.34021274e-06f, 2.53376551e-03f);
  p = fmaf(p, z, 1.25727966e-01f);
  p = fmaf(p, z, 9.9999994e-01f);
  float q = fmaf(z, 1.72091721e-04f, 2.22214144e-02f);
  q = fmaf(q, z, 4.59060907e-01f);
  q = fmaf(q, z, 1.0f);
  return y * p * ampc_inverse_16(q);
}
