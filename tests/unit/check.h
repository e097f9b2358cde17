/* Checks for unit tests. CHECK prints a failure and continues. main ends with check_done(). */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

#define CHECK(condition) CHECK_MSG(condition, "%s", #condition)

#define CHECK_MSG(condition, ...)                                                                  \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: failed: ", __FILE__, __LINE__);                                      \
      fprintf(stderr, __VA_ARGS__);                                                                \
      fputc('\n', stderr);                                                                         \
      if (++check_failures >= 20) exit(1);                                                         \
    }                                                                                              \
  } while (0)

/* Like CHECK, but a failure ends the program: the rest of the test depends on the condition. */
#define MUST(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static inline int check_done(void)
{
  if (check_failures) fprintf(stderr, "%d checks failed\n", check_failures);
  return check_failures > 0;
}
