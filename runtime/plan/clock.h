#pragma once

/* Seconds since some moment; never decreases. */
double seconds_now(void);
