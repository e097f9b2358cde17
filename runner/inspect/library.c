/* Names the library code that computes a command. For the CPU, the device reports which
 * implementation its library selects on this machine. For a GPU, cuDNN plans for an architecture;
 * the GPU need not be present. */
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/cli/options.h"
#include "compiler/command/command.h"
#include "inspect.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/cudnn_attention.h"
#include "runtime/device.h"

static ampc_status name_rows(Inspection *in, Device *device)
{
  Compile *c = in->c;
  for (uint32_t i = 0; i < in->rows.n; i++) {
    CommandRow *row = &in->rows.at[i];
    if (row->is != COMMAND_conv) continue;
    const ampc_conv *d = &command_of(c->graph, row->group)->conv;
    const char *name;
    ampc_status status = device->ops->conv_implementation(device, d, &name);
    if (status) return status;
    inspect_set_library(in, row, arena_strdup(c->arena, name));
  }
  return AMPC_OK;
}

static const char *plan_text(Compile *c, const DnnMachine *machine, const DnnProblem *problem,
                             int64_t limit)
{
  DnnPlan plan;
  if (!machine->api) return "own kernels: no cuDNN";
  bool good = dnn_plan_make(machine, problem, limit, &plan);
  bool known = !machine->lacks || strcmp(plan.why, machine->lacks) != 0;
  const char *text = good ? arena_printf(c->arena, "cuDNN's engine %lld", (long long)plan.engine)
                          : arena_printf(c->arena, "%s: %s",
                                         known ? "own kernels" : "cuDNN or own kernels", plan.why);
  dnn_plan_free(&plan);
  return text;
}

static const char *conv_text(Compile *c, const DnnMachine *machine, uint32_t group)
{
  const ampc_conv *d = &command_of(c->graph, group)->conv;
  DnnProblem problem = dnn_conv_problem(d);
  int64_t limit = ampc_conv_workspace_cuda(d, c->options.real64, target_capability(c));
  return plan_text(c, machine, &problem, limit);
}

/* Returns the library's plan for a launch; NULL: no library can compute the kernel's nodes. */
static const char *launch_text(Compile *c, const DnnMachine *machine, uint32_t group)
{
  const Command *k = command_of(c->graph, group);
  if (!k->library) return k->why_own ? arena_printf(c->arena, "own kernels: %s", k->why_own) : NULL;
  ampc_attention part = dnn_attention_part(k->library, dnn_scores_limit);
  DnnProblem problem = dnn_attention_problem(&part);
  return plan_text(c, machine, &problem, ampc_attention_scores(&part) + DNN_ENGINE_ROOM);
}

static void name_planned(Inspection *in, const DnnMachine *machine)
{
  for (uint32_t i = 0; i < in->rows.n; i++) {
    CommandRow *row = &in->rows.at[i];
    if (row->is == COMMAND_conv)
      inspect_set_library(in, row, conv_text(in->c, machine, row->group));
    else if (row->is == COMMAND_kernel)
      inspect_set_library(in, row, launch_text(in->c, machine, row->group));
  }
}

int inspect_cudnn(Inspection *in, const char **note)
{
  DnnMachine machine;
  char why[AMPC_WHY_ROOM];
  if (is_cpu_target(in->c))
    return usage_error("amp inspect", "--cudnn needs a GPU in --arch, such as sm_90");
  if (!dnn_machine_of(target_capability(in->c), &machine, why))
    *note = arena_printf(in->c->arena, "our own kernels compute all commands: %s", why);
  name_planned(in, &machine);
  dnn_machine_free(&machine);
  return 0;
}

int inspect_library(Inspection *in)
{
  Device *device;
  if (!is_cpu_target(in->c)) return 0;
  ampc_status status = cpu_device_open(in->c->program, &device);
  if (!status) {
    status = name_rows(in, device);
    device->ops->close(device);
  }
  if (status) fprintf(stderr, "amp inspect: error: %s\n", ampc_last_error());
  return (int)status;
}

void inspect_set_library(const Inspection *in, CommandRow *row, const char *library)
{
  const char *text = row->facts.template;
  if (library) text = arena_printf(in->c->arena, "%s by %s", text, library);
  if (row->facts.times > 1) text = arena_printf(in->c->arena, "%s x %.0f", text, row->facts.times);
  row->facts.library = library;
  row->facts.frame = text;
}
