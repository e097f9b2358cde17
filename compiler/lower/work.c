/* How much a program does in the compiler: one without an end gets a message. */
#include "elaborate.h"

/* The program would not end, or not soon. Everything that runs checks `stopped` and returns,
 * in silence. */
static bool stop(Lower *l, Span span, const char *text)
{
  fail(l, E210, span, "%s", text);
  l->stopped = true;
  return false;
}

/* Counts what is run and made, so that `for i in range(10 ** 9)` ends with a message, not with the
 * user's patience. False: the job has been stopped. */
bool count_work(Lower *l, uint32_t amount, Span span)
{
  if (l->stopped) return false;
  l->work += amount;
  if (l->work <= MAX_WORK) return true;
  return stop(l, span,
              arena_printf(l->arena,
                           "the job unrolls to more than %d statements; %d expressions or values "
                           "of a list count as one",
                           MAX_WORK, ELEMENTS_PER_WORK));
}

bool go_deeper(Lower *l, Span span)
{
  if (l->stack < MAX_STACK) return ++l->stack;
  return stop(l, span,
              arena_printf(l->arena, "calls, expressions and statements nest more than %d deep",
                           MAX_STACK));
}

/* Around every call of a def and every module that is built. Depth finds recursion without end
 * long before C's own stack is full. The frames let messages inside of the library point at
 * the line of the job that called it. */
bool call_begin(Lower *l, const char *name, const File *file, Span span)
{
  enum { BUILTIN_DEPTH = 20, CALL_WORK = 8 }; /* so that a def of the job is named */
  uint32_t most = file->builtin ? MAX_DEPTH + BUILTIN_DEPTH : MAX_DEPTH;
  if (!count_work(l, CALL_WORK, span)) return false;
  if (l->depth >= most)
    return stop(l, span,
                arena_printf(l->arena, "calls of `%s` nest more than %d deep", name, MAX_DEPTH));
  l->depth++;
  diag_frame_push(l->c, span);
  return true;
}

void call_end(Lower *l)
{
  diag_frame_pop(l->c);
  l->depth--;
}
