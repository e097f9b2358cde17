/* The check of `amp selftest`'s table reports what is missing and where to add it, so an op without
 * an entry, cases or gradients stops the selftest before it runs. The table itself is complete. */
#include "check.h"
#include "runner/selftest/ops/entry.h"

static const OpTest faulty[] = {
    {OP_add, "ww", "=", FIRST(reference_same_order), EXACT, CASES("fhb 33 33"),
     GRADIENTS("fhb 33 33")},
    {OP_sub, "ww", "=", FIRST(reference_same_order), EXACT, CASES("fhb 33 4{1,2,3}")},
    {OP_mul, "ww", "=", FIRST(reference_same_order), EXACT, GRADIENTS("fhb 33 33")},
    {OP_div, NO_CASES("a reason"), NO_GRADIENT("a reason")},
    {OP_floor_divide, "ww", "=", FIRST(reference_same_order), EXACT, CASES("fhb 33 33"),
     GRADIENTS("fhb 33 33")},
    {OP_pow, EXACT, CASES("fhb 33 33"), NO_GRADIENT("a reason")},
    {OP_softmax, "n", "=", FIRST(reference_same_order), EXACT, CASES("fhb 33x7 dim=1 keepdim=1"),
     NO_GRADIENT("a reason")},
    {OP_exp, NO_CASES("a reason"), CASES("fhb 33"), FIRST(reference_same_order),
     NO_GRADIENT("a reason")},
    {OP_maximum, "nn", "=", WHOLE(shape_broadcast_of, reference_map), EXACT, CASES("fhb 33 33"),
     GRADIENTS("fhb 33 33")},
    {OP_minimum, .result = "=", FIRST(reference_same_order), EXACT, CASES("fhb 33 33"),
     GRADIENTS("fhb 33 33")},
    {OP_flip_axis, "n", "=", WHOLE(shape_of_first, reference_moved), EXACT, CASES("fhb 33 dim=0"),
     GRADIENTS("fhb 33 dim=0")},
    {OP_eq, "nn", FIRST(reference_same_order), EXACT, CASES("fhb 33 33")},
    {OP_sum, "n", "=", FIRST(reference_same_order), SUMMED(1, 1, NULL, "a reason"), CASES("fhb 33"),
     NO_GRADIENT("a reason")},
};
static const OpTest again[] = {{OP_div, NO_CASES("a reason"), NO_GRADIENT("a reason")}};

static const OpFamily family_faulty = {"ops/faulty.c", faulty, sizeof faulty / sizeof *faulty};
static const OpFamily family_again = {"ops/again.c", again, 1};

static void check_faults(const char *faults)
{
  static const char *const lines[] = {
      "op 'ne' has no selftest entry: add one to ops/faulty.c\n", /* the file of its neighbour eq */
      ("op 'sub' has a gradient rule and no gradient case: add GRADIENTS or CHAINS, or NO_GRADIENT "
       "with the reason, in ops/faulty.c\n"),
      "op 'sub': a case in ops/faulty.c gives more or fewer values than '4' has\n",
      "op 'mul' has no forward cases: add CASES, or NO_CASES with the reason, in ops/faulty.c\n",
      "op 'div' has 2 selftest entries: one of them is in ops/again.c\n",
      "op 'floor_divide' has gradient cases and no gradient rule: see ops/faulty.c\n",
      "op 'pow' has cases and no reference: name one in ops/faulty.c\n",
      "op 'softmax' has no attribute 'keepdim', which a case in ops/faulty.c gives\n",
      "op 'exp' has cases and a reason for having none: see ops/faulty.c\n",
      "op 'maximum' has no ELEMENT, which MAP takes its numbers from: see ops/faulty.c\n",
      ("op 'flip_axis' has no function that MOVE or PICK takes its places from: see "
       "ops/faulty.c\n"),
      "op 'minimum' does not say how its inputs are filled: see ops/faulty.c\n",
      "op 'eq' does not say of which type its result is: see ops/faulty.c\n",
      "op 'sum' has a bound for each term and no terms: see ops/faulty.c\n",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    CHECK_MSG(strstr(faults, lines[i]), "missing: %s", lines[i]);
  CHECK(!strstr(faults, "'add'"));
}

int main(void)
{
  Arena *a = arena_create();
  Text whole, faults;
  text_init(&whole, a);
  text_init(&faults, a);
  op_tests_check_all(&whole);
  CHECK_MSG(whole.n == 0, "%s", whole.at);
  op_tests_check((const OpFamily *[]){&family_faulty, &family_again}, 2, &faults);
  check_faults(faults.at);
  arena_destroy(a);
  return check_done();
}
