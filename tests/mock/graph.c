/* Graphs: the work that streams captured, in order, to be launched again. The first stream's work
 * goes to the stream of the launch. The work of another one goes to a stream of its own, so it runs
 * as late as events allow, or never: a result that nobody joined is missing. */
#include "mock.h"
#include <stdlib.h>

struct CUgraphExec_st {
  CuGraph graph;             /* the executable graph's own copy */
  CuStream lane[MOST_LANES]; /* where the work of further lanes runs; [0] is not used */
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
  if (kept->kept) kept->kept(kept, 1);
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
    if (op->kept) op->kept(op, -1);
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
  for (int i = 1; i < graph->lanes; i++) e->lane[i] = mock_lane_new();
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
    status = mock_queue(op->lane ? graph->lane[op->lane] : stream, op);
  return status;
}

CuResult cuGraphExecDestroy(CuGraphExec graph)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!graph) return mock_refuse(MOCK_INVALID_HANDLE, "cuGraphExecDestroy of nothing");
  mock_progress(); /* its work may still run, as with CUDA; so its lanes are never freed */
  cuGraphDestroy(graph->graph);
  free(graph);
  return CUDA_SUCCESS;
}
