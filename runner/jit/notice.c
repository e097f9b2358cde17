/* Says on a terminal that kernels are being compiled, after a second; see notice.h. NVRTC compiles
 * a few kernels at a time, so their number is known. The C compiler compiles all at once. */
#include "notice.h"
#include "common/clock.h"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static uint32_t kernels, ready; /* kernels 0: nothing is being compiled */
static double begun, told;      /* seconds_now(); told 0: not yet */

void notice_begin(uint32_t n)
{
  pthread_mutex_lock(&one);
  kernels = n;
  ready = 0;
  begun = seconds_now();
  told = 0;
  pthread_mutex_unlock(&one);
}

void notice_tick(uint32_t built)
{
  pthread_mutex_lock(&one);
  double now = seconds_now();
  ready += built;
  if (kernels && now - begun >= 1 && now - told >= 1 && isatty(STDERR_FILENO)) {
    if (ready)
      fprintf(stderr, "\rcompiling kernels %u/%u", ready, kernels);
    else
      fprintf(stderr, "\rcompiling %u kernels: %.0f s", kernels, now - begun);
    fflush(stderr);
    told = now;
  }
  pthread_mutex_unlock(&one);
}

void notice_end(void)
{
  pthread_mutex_lock(&one);
  if (told > 0) fputs("\r\033[K", stderr);
  kernels = 0;
  told = 0;
  pthread_mutex_unlock(&one);
}
