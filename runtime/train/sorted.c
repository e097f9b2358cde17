/* Warns before a run about labels whose order is probably a mistake. */
#include <stdio.h>
#include "train.h"
#include "common/shown.h"

void sorted_warn(const Session *s, uint32_t block)
{
  char text[1024], shown[1024];
  if (!session_leads(s) || !s->run.data->find_sorted) return;
  if (s->run.data->find_sorted(s->run.batches[block], text, sizeof text))
    fprintf(stderr, "warning: %s\n", ampc_show(shown, sizeof shown, text, ""));
}
