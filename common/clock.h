#pragma once

/* Returns seconds since an arbitrary moment; the result never decreases. */
double seconds_now(void);
