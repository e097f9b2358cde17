/* Limits the work of a program in the compiler. A program without an end gets a message. */
#include "elaborate.h"

/* Stops elaboration because a limit is exceeded. All code that elaborates checks `stopped` and
 * returns without a message. */
static bool stop(Lower *l, Span span, const char *text)
{
  fail(l, E210, span, "%s", text);
  l->stopped = true;
  return false;
}

/* Counts what is run and made, so that `for i in range(10 ** 9)` ends with a message. Returns false
 * if the job has been stopped. */
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

/* Begins a call. Called for every def that is called and every module that is built. The limit on
 * depth stops an endless recursion long before the C stack is full. The pushed frames let a message
 * inside the library point at the line of the job that called it. */
bool call_begin(Lower *l, const char *name, const File *file, Span span)
{
  enum {
    BUILTIN_DEPTH = 20,
    CALL_WORK = 8
  }; /* BUILTIN_DEPTH: the message names a def of the job, not of the library */
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
