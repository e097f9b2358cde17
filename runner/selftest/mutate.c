/* Wrong kernels on purpose: `--mutate 'FROM=>TO'` replaces text in the emitted code before it is
 * compiled. The run must then fail; tests/mutation checks that. */
#include "run.h"
#include <string.h>

typedef struct Mutation {
  const char *from, *to;
  size_t from_size;
  TestRun *run;
} Mutation;

static void replace_all(Text *text, void *data)
{
  const Mutation *m = data;
  Text out = text_new(text->arena);
  const char *s = text->at, *hit;
  while ((hit = strstr(s, m->from))) {
    text_add(&out, s, (size_t)(hit - s));
    text_puts(&out, m->to);
    s = hit + m->from_size;
    __atomic_fetch_add(&m->run->edits, 1, __ATOMIC_RELAXED); /* suites run in parallel */
  }
  text_puts(&out, s);
  *text = out;
}

bool mutation_set(TestRun *run, char *text)
{
  static Mutation mutation;
  char *arrow = strstr(text, "=>");
  if (!arrow || arrow == text) return false;
  *arrow = 0;
  mutation = (Mutation){text, arrow + 2, (size_t)(arrow - text), run};
  run->edit = replace_all;
  run->edit_data = &mutation;
  return true;
}
