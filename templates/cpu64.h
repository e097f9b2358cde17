/* Declares the C library's functions that maths64.cuh calls. CUDA has them built in and rejects a
 * declaration. */

// --- fabs
double fabs(double);

// --- sqrt
double sqrt(double);

// --- ceil
double ceil(double);

// --- rint
double rint(double);

// --- fmod
double fmod(double, double);

// --- exp
double exp(double);

// --- expm1
double expm1(double);

// --- log
double log(double);

// --- log2
double log2(double);

// --- log1p
double log1p(double);

// --- tanh
double tanh(double);

// --- erf
double erf(double);

// --- erfc
double erfc(double);

// --- sin
double sin(double);

// --- cos
double cos(double);

// --- tan
double tan(double);

// --- asin
double asin(double);

// --- acos
double acos(double);

// --- sinh
double sinh(double);

// --- cosh
double cosh(double);

// --- atan2
double atan2(double, double);

// --- pow
double pow(double, double);
