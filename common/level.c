/* Levels of processors; see level.h. A program that was compiled for another processor is refused
 * here; otherwise its first kernel would end the process by SIGILL. */
#include "common/level.h"
#include <string.h>
#include "common/machine.h"

#define X86(name, march, lanes, bf16, has) {false, name, march, lanes, bf16},
#define ARM(name, march, lanes, bf16, has) {true, name, march, lanes, bf16},
static const Level levels[] = {
#include "common/levels.def"
};
#undef X86
#undef ARM
enum { LEVELS = sizeof levels / sizeof *levels };

/* Returns the result of the test in a row. */
static bool test(unsigned row)
{
  unsigned i = 0;
#define X86(name, march, lanes, bf16, has)                                                         \
  if (row == i++) return X86_HAS(has);
#define ARM(name, march, lanes, bf16, has)                                                         \
  if (row == i++) return ARM_HAS(has);
#define CPU(name)    __builtin_cpu_supports(#name)
#define HWCAP(name)  ((getauxval(AT_HWCAP) & HWCAP_##name) != 0)
#define HWCAP2(name) ((getauxval(AT_HWCAP2) & HWCAP2_##name) != 0)
#include "common/levels.def"
  return false;
}

/* Whether this processor has a part of a name: "x86-64-v3", "armv8.2-a", "+fp16". `n`: its bytes.
 * The rows before a part without "+" are tested, too. */
static bool has_part(const char *part, size_t n)
{
  bool has[2] = {true, true}; /* all rows so far without "+": of x86-64, of Arm */
  for (unsigned i = 0; i < LEVELS; i++) {
    const char *plus = strrchr(levels[i].name, '+'), *added = plus ? plus : levels[i].name;
    bool *before = &has[levels[i].is_arm], good = (plus || *before) && test(i);
    if (!plus) *before = good;
    if (strlen(added) == n && memcmp(added, part, n) == 0) return good;
  }
  return false;
}

static bool has_level(const char *level)
{
  for (size_t n; *level; level += n) {
    n = 1 + strcspn(level + 1, "+");
    if (!has_part(level, n)) return false;
  }
  return true;
}

/* Returns the last row that this processor has, of those that --march has if `march`. */
static const Level *last(bool march)
{
  const Level *out = NULL;
  for (unsigned i = 0; i < LEVELS; i++)
    if ((levels[i].is_march || !march) && has_level(levels[i].name)) out = &levels[i];
  return out;
}

const Level *ampc_level(void)
{
  static _Atomic(const Level *) kept; /* products ask often, and the tests take microseconds */
  const Level *level = kept;
  if (!level) kept = level = last(false);
  return level;
}

const Level *ampc_level_named(const char *name)
{
  for (unsigned i = 0; i < LEVELS; i++)
    if (strcmp(levels[i].name, name) == 0) return &levels[i];
  return NULL;
}

ampc_status ampc_level_suffices(const char *level)
{
  if (has_level(level)) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED,
                   "the kernels are compiled for processors of level %s, and this one has %s; "
                   "compile them with --march=%s",
                   level, ampc_level()->name, last(true)->name);
}
