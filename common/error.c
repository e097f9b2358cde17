/* The last error of each thread: one line of text, or a line and a compiler's log. Paths and names
 * in it come from outside, so control characters are shown as escapes. */
#include <stdarg.h>
#include <stdio.h>
#include "ampc_plan.h"
#include "common/shown.h"

static _Thread_local char last_error[4096];

const char *ampc_last_error(void)
{
  return last_error;
}

/* Returns `status`, so that a caller can `return ampc_fail(...)`. */
ampc_status ampc_fail(ampc_status status, const char *fmt, ...)
{
  char text[sizeof last_error]; /* an argument may be the last error itself */
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  ampc_show(last_error, sizeof last_error, text, "");
  return status;
}

ampc_status ampc_fail_log(ampc_status status, const char *log)
{
  ampc_show(last_error, sizeof last_error, log, "\n\t");
  return status;
}
