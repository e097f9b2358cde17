/* Effects of a training step. They have no result of their own: suites test them in whole jobs. */
#include "entry.h"

static const OpTest tests[] = {
    {OP_output, "w", "=", FIRST(reference_same_order), EXACT, CASES("fhbiluo 33")},
    {OP_probed, NO_CASES("suite probes: a step that is looked at")},
    {OP_member_sum, NO_CASES("tests/ranks: members that train together"),
     NO_GRADIENT("the sum itself: tests/ranks")},
    {OP_member_mean, "w", "=", FIRST(reference_same_order), EXACT, CASES("f 33")},
    {OP_member_rows, NO_CASES("tests/ranks")},
    {OP_grad_exchange, NO_CASES("tests/ranks")},
    {OP_weight_exchange, NO_CASES("tests/ranks")},
    {OP_metric, NO_CASES("suite step: sums and averages of a training")},
    {OP_statistics, NO_CASES("suite step: counts of a training; tests/metrics: their formulas")},
    {OP_check_index, NO_CASES("suite lookups: what is noted of a training")},
    {OP_minimize, NO_CASES("runs nothing; suite model trains through it")},
    {OP_grad_accumulate, NO_CASES("suite step")},
    {OP_running_update, NO_CASES("suite running: batch norm in a job that trains")},
    {OP_running_count, NO_CASES("suite running")},
    {OP_store, NO_CASES("suite decode: texts token by token")},
    {OP_buffer_update, NO_CASES("suite running: a mean that moves in a job that trains")},
    {OP_body_sum, NO_CASES("suite counted")},
    {OP_grad_rescale, NO_CASES("suite counted")},
    {OP_grad_norm, NO_CASES("suite step")},
    {OP_update_norms, NO_CASES("tests/logs/norms.py")},
    {OP_optimizer_control, NO_CASES("suite step")},
    {OP_scaler_update, NO_CASES("suite step: the documentation of GradScaler")},
};
FAMILY(step)
