/* The functions of maths.cuh in double precision. They call the C library: cpu64.h declares its
 * functions, CUDA has them built in. Only tests use this file: central differences in f64 verify
 * the gradients. */

// --- ampc_inf
DEVICE double ampc_inf(void)
{
  return 1e308 * 10.0;
}

// --- ampc_nan
DEVICE double ampc_nan(void)
{
  return ampc_inf() - ampc_inf();
}

// --- ampc_isnan
DEVICE int ampc_isnan(double x)
{
  return x != x;
}

// --- ampc_isfinite
DEVICE int ampc_isfinite(double x)
{
  return x - x == 0.0;
}

// --- ampc_fma
DEVICE double ampc_fma(double a, double b, double c)
{
  return fma(a, b, c);
}

// --- ampc_abs
DEVICE double ampc_abs(double x)
{
  return fabs(x);
}

// --- ampc_sqrt
DEVICE double ampc_sqrt(double x)
{
  return sqrt(x);
}

// --- ampc_floor
DEVICE double ampc_floor(double x)
{
  return floor(x);
}

// --- ampc_ceil
DEVICE double ampc_ceil(double x)
{
  return ceil(x);
}

// --- ampc_round
DEVICE double ampc_round(double x)
{
  return rint(x);
}

// --- ampc_fmod
DEVICE double ampc_fmod(double x, double y)
{
  return fmod(x, y);
}

// --- ampc_exp
DEVICE double ampc_exp(double x)
{
  return exp(x);
}

// --- ampc_expm1
DEVICE double ampc_expm1(double x)
{
  return expm1(x);
}

// --- ampc_log
DEVICE double ampc_log(double x)
{
  return log(x);
}

// --- ampc_log2
DEVICE double ampc_log2(double x)
{
  return log2(x);
}

// --- ampc_log1p
DEVICE double ampc_log1p(double x)
{
  return log1p(x);
}

// --- ampc_tanh
DEVICE double ampc_tanh(double x)
{
  return tanh(x);
}

// --- ampc_erf
DEVICE double ampc_erf(double x)
{
  return erf(x);
}

// --- ampc_normal_cdf
DEVICE double ampc_normal_cdf(double x)
{
  return 0.5 * erfc(x * -0.70710678118654752);
}

// --- ampc_sin
DEVICE double ampc_sin(double x)
{
  return sin(x);
}

// --- ampc_cos_near
DEVICE double ampc_cos_near(double x)
{
  return cos(x);
}

// --- ampc_cos
DEVICE double ampc_cos(double x)
{
  return cos(x);
}

// --- ampc_tan
DEVICE double ampc_tan(double x)
{
  return tan(x);
}

// --- ampc_asin
DEVICE double ampc_asin(double x)
{
  return asin(x);
}

// --- ampc_acos
DEVICE double ampc_acos(double x)
{
  return acos(x);
}

// --- ampc_sinh
DEVICE double ampc_sinh(double x)
{
  return sinh(x);
}

// --- ampc_cosh
DEVICE double ampc_cosh(double x)
{
  return cosh(x);
}

// --- ampc_atan2
DEVICE double ampc_atan2(double y, double x)
{
  return atan2(y, x);
}

// --- ampc_pow
DEVICE double ampc_pow(double x, double y)
{
  return pow(x, y);
}
