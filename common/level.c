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
#define X86(name, march, lanes, bf16, has) X86_HAS(has),
#define ARM(name, march, lanes, bf16, has) ARM_HAS(has),
#define CPU(name)                          __builtin_cpu_supports(#name)
#define HWCAP(name)                        ((getauxval(AT_HWCAP) & HWCAP_##name) != 0)
#define HWCAP2(name)                       ((getauxval(AT_HWCAP2) & HWCAP2_##name) != 0)
  const bool has[] = {
#include "common/levels.def"
  };
  return has[row];
}

/* Whether this processor has what a level adds: `part` is "armv8.2-a" or "+fp16", of n bytes. */
static bool has_part(const char *part, size_t n)
{
  for (unsigned i = 0; i < LEVELS; i++) {
    const char *plus = strrchr(levels[i].name, '+'), *added = plus ? plus : levels[i].name;
    if (strlen(added) == n && memcmp(added, part, n) == 0 && test(i)) return true;
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
  return last(false);
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
                   level, last(false)->name, last(true)->name);
}
