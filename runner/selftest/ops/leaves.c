/* Leaves run no kernel: the ops that use a leaf read it. */
#include "entry.h"

static const OpTest tests[] = {
    {OP_source, NO_CASES("an input, which all cases read")},
    {OP_param, NO_CASES("a weight, which the jobs of suite step read")},
    {OP_gradient, NO_CASES("a slot of GRAD: tests/probe compares it with :grad")},
    {OP_number, NO_CASES("a literal, which the chains read")},
    {OP_integer, NO_CASES("a literal, printed into its reader")},
    {OP_setting, NO_CASES("a number of a job, which the jobs of suite step read")},
    {OP_loss_scale, NO_CASES("read by backward passes: suite step")},
    {OP_steps_taken, NO_CASES("a counter, which schedules read")},
    {OP_step, NO_CASES("a counter of the job")},
    {OP_epoch, NO_CASES("a counter of the job")},
    {OP_own, NO_CASES("the text of a job: simt/jobs/own.amp, tests/cli/own.sh"),
     NO_GRADIENT("what the job says: tests/cli/own.sh trains with one and with a loop")},
    {OP_own_result, NO_CASES("a further output of such an op: simt/jobs/own_outputs.amp"),
     NO_GRADIENT("it goes into the op's: torch.own")},
    {OP_cast_like, NO_CASES("pass precision makes a cast of it"), NO_GRADIENT("that of the cast")},
    {OP_own_operand, NO_CASES("stands for what the backward of such an op is given")},
    {OP_own_backward, NO_CASES("ends the backward of such an op")},
};
FAMILY(leaves)
