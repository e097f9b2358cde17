#pragma once

/* Seconds since some moment, which only go on. */
double seconds_now(void);
