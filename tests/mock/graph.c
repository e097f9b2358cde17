/* Graphs: the work that a stream captured, in order, to be launched again. */
#include "mock.h"
#include <stdlib.h>

struct CUgraphExec_st {
  CuGraph graph; /* the executable graph's own copy */
};

CuGraph mock_graph_new(void)
{
  CuGraph g = calloc(1, sizeof *g);
  if (!g) mock_misuse("out of memory");
  mock_add(COUNT_held, 1);
  return g;
}

void mock_graph_add(CuGraph graph, const Op *op)
{
  Op *kept = malloc(sizeof *kept);
  if (!kept) mock_misuse("out of memory");
  *kept = *op;
  kept->next = NULL;
  kept->of_graph = true;
  *(graph->last ? &graph->last->next : &graph->first) = kept;
  graph->last = kept;
}

CuResult cuGraphDestroy(CuGraph graph)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!graph) return mock_refuse(MOCK_INVALID_VALUE, "cuGraphDestroy of nothing");
  while (graph->first) {
    Op *op = graph->first;
    graph->first = op->next;
    free(op);
  }
  free(graph);
  mock_add(COUNT_held, -1);
  return CUDA_SUCCESS;
}

CuResult cuGraphInstantiateWithFlags(CuGraphExec *out, CuGraph graph, unsigned long long flags)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = mock_not_while_capturing("cuGraphInstantiate");
  if (status) return status;
  if (!graph || flags) return mock_refuse(MOCK_INVALID_VALUE, "cuGraphInstantiate");
  CuGraphExec e = calloc(1, sizeof *e);
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  e->graph = mock_graph_new();
  for (const Op *op = graph->first; op; op = op->next) mock_graph_add(e->graph, op);
  *out = e;
  return CUDA_SUCCESS;
}

CuResult cuGraphUpload(CuGraphExec graph, CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  return graph && stream ? CUDA_SUCCESS : mock_refuse(MOCK_INVALID_VALUE, "cuGraphUpload");
}

CuResult cuGraphLaunch(CuGraphExec graph, CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!graph) return mock_refuse(MOCK_INVALID_HANDLE, "cuGraphLaunch of nothing");
  mock_add(COUNT_graph_launches, 1);
  CuResult status = CUDA_SUCCESS;
  for (const Op *op = graph->graph->first; op && !status; op = op->next)
    status = mock_queue(stream, op);
  return status;
}

CuResult cuGraphExecDestroy(CuGraphExec graph)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!graph) return mock_refuse(MOCK_INVALID_HANDLE, "cuGraphExecDestroy of nothing");
  CuResult status = mock_drain();
  cuGraphDestroy(graph->graph);
  free(graph);
  return status;
}
