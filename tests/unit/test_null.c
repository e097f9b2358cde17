/* Every function of ampc_rt.h, and those of ampc_plan.h that take a pointer. With NULL for a
 * pointer that it needs, or with an invalid index, a function returns an error or 0 and does not
 * crash. The last check finds functions of the header that this file does not call. */
#include <stdlib.h>
#include "check.h"
#include "runtime/runtime.h"
#include "small_program.h"
#include "temp.h"

#define REFUSED(call) CHECK_MSG((call) == AMPC_BAD_USAGE && *ampc_last_error(), "%s", #call)

static SmallProgram s;
static ampc_runtime *rt;

static void check_objects(void)
{
  ampc_runtime *none = NULL;
  ampc_memory memory;
  char target[AMPC_TARGET_ROOM];
  REFUSED(ampc_create(NULL, "cpu", &none));
  REFUSED(ampc_create(&s.program, "cpu", NULL));
  REFUSED(ampc_device_target(NULL, target));
  REFUSED(ampc_device_target("cpu", NULL));
  REFUSED(ampc_plan_memory(NULL, "cpu", &memory));
  REFUSED(ampc_plan_memory(&s.program, "cpu", NULL));
  ampc_free(NULL);
  ampc_use_cudnn(true);
  ampc_use_data_threads(0);
  CHECK(!ampc_program_of(NULL) && ampc_memory_of(NULL).total == 0 && *ampc_device_name(NULL));
  CHECK(ampc_waits(NULL) == 0 && !ampc_spaces(NULL) && !ampc_resume_path(NULL));
  CHECK(ampc_variant_at(NULL, 1, 1) == 0 && ampc_output_elements(NULL) == 0);
}

static void check_state(void)
{
  char bytes[8] = {0};
  ampc_state state;
  ampc_metric metric;
  ampc_ref at = {AMPC_MASTER, 0};
  const ampc_param *q = &s.program.params[0];
  REFUSED(ampc_init_params(NULL, 1));
  REFUSED(ampc_load_params(NULL, ".", NULL, NULL));
  REFUSED(ampc_load_given(NULL, ".", NULL, NULL));
  REFUSED(ampc_load_weights(NULL, "x", NULL, NULL));
  REFUSED(ampc_load_weights(rt, NULL, NULL, NULL));
  CHECK(ampc_load_weights(rt, temp_path("gone"), NULL, NULL) == AMPC_BAD_FILE);
  REFUSED(ampc_read(NULL, at, bytes, 8));
  REFUSED(ampc_read(rt, at, NULL, 8));
  REFUSED(ampc_read(rt, at, bytes, -1));
  REFUSED(ampc_read(rt, at, bytes, INT64_MAX));
  REFUSED(ampc_read(rt, (ampc_ref){AMPC_MASTER, INT64_MAX}, bytes, 8));
  REFUSED(ampc_read(rt, (ampc_ref){(ampc_space)99, 0}, bytes, 8));
  REFUSED(ampc_write(NULL, at, bytes, 8));
  REFUSED(ampc_write(rt, at, NULL, 8));
  REFUSED(ampc_write(rt, at, bytes, -1));
  REFUSED(ampc_read_param(NULL, q, AMPC_MASTER, bytes));
  REFUSED(ampc_read_param(rt, NULL, AMPC_MASTER, bytes));
  REFUSED(ampc_read_param(rt, q, AMPC_MASTER, NULL));
  REFUSED(ampc_read_param(rt, q, (ampc_space)99, bytes));
  REFUSED(ampc_write_param(NULL, q, AMPC_MASTER, bytes));
  REFUSED(ampc_write_param(rt, NULL, AMPC_MASTER, bytes));
  REFUSED(ampc_write_param(rt, q, AMPC_MASTER, NULL));
  REFUSED(ampc_refresh_copies(NULL));
  REFUSED(ampc_set_lengths(NULL, (int64_t[3]){0}));
  REFUSED(ampc_set_lengths(rt, NULL));
  REFUSED(ampc_set(NULL, "opt.lr", 1));
  REFUSED(ampc_set(rt, NULL, 1));
  REFUSED(ampc_set(rt, "opt.lr", NAN));
  REFUSED(ampc_get_state(NULL, &state));
  REFUSED(ampc_get_state(rt, NULL));
  REFUSED(ampc_get_metric(NULL, 0, &metric));
  REFUSED(ampc_get_metric(rt, 0, NULL));
  REFUSED(ampc_get_metric(rt, UINT32_MAX, &metric));
  REFUSED(ampc_get_statistics(NULL, 0, &(double){0}));
  REFUSED(ampc_get_statistics(rt, 0, NULL));
  REFUSED(ampc_get_statistics(rt, UINT32_MAX, &(double){0}));
  REFUSED(ampc_clear_metrics(NULL, 0));
  REFUSED(ampc_clear_metrics(rt, UINT32_MAX));
}

/* Checks the functions that steps call. They return nothing; without a runtime they do nothing. */
static void check_steps(void)
{
  REFUSED(ampc_run_step(NULL, 0, 0));
  REFUSED(ampc_run_step(rt, UINT32_MAX, 0));
  REFUSED(ampc_run_step(rt, 0, UINT32_MAX));
  REFUSED(ampc_wait(NULL));
  REFUSED(ampc_set_group(NULL, true, true));
  CHECK(!ampc_called(NULL, "x"));
  ampc_do_launch(NULL, 0, 1, 1, NULL, 0);
  ampc_do_defer(NULL, 0, 1, 1, NULL, 0);
  ampc_do_attention(NULL, NULL, 0, 1, 1, NULL, 0);
  ampc_do_gemm(NULL, NULL, NULL, NULL, NULL, NULL, NULL);
  ampc_do_conv(NULL, NULL, NULL, NULL, NULL, NULL, NULL);
  ampc_do_copy(NULL, NULL, NULL, 1);
  ampc_do_fill(NULL, NULL, 0, 1);
  CHECK(ampc_step_part(NULL) == 0 && ampc_step_member(NULL) == 0 && !ampc_step_once(NULL));
  ampc_do_exchange(NULL, AMPC_SUM, AMPC_SUM_TREE, AMPC_F32, 1, false, AMPC_WORK, 0);
}

static void check_data(void)
{
  ampc_batches *b;
  const void *base;
  int64_t n;
  char text[8];
  double mean, deviation;
  ampc_data_position at = {0};
  const ampc_data_interface *d = &ampc_data;
  REFUSED(d->open(NULL, 0, ".", 1, &b));
  REFUSED(d->open(&s.program, 0, ".", 1, NULL));
  REFUSED(d->open(&s.program, UINT32_MAX, ".", 1, &b));
  MUST(d->open(&s.program, 0, NULL, 1, &b) == AMPC_OK);
  REFUSED(d->next(NULL, &base, &n, &at));
  REFUSED(d->next(b, NULL, &n, &at));
  REFUSED(d->next(b, &base, NULL, &at));
  REFUSED(d->next(b, &base, &n, NULL));
  REFUSED(d->seek(NULL, at));
  CHECK(d->seek(b, (ampc_data_position){.epoch = -1}) != AMPC_OK);
  CHECK(d->per_epoch(NULL) == 0 && !d->find_lost(NULL, 1, text, 8) && !d->find_lost(b, 1, NULL, 8));
  CHECK(!d->find_column(NULL, 1, text, 8) && !d->find_column(b, 1, NULL, 8));
  CHECK(!d->find_sorted(NULL, text, 8) && !d->find_sorted(b, NULL, 8));
  CHECK(!d->sample_name(NULL, 0, text, 8) && !d->sample_name(b, 0, NULL, 8));
  CHECK(!d->sample_name(b, -1, text, 8));
  REFUSED(d->measure(NULL, 0, &mean, &deviation));
  REFUSED(d->measure(b, UINT32_MAX, &mean, &deviation));
  REFUSED(d->measure(b, 0, NULL, &deviation));
  REFUSED(d->measure(b, 0, &mean, NULL));
  REFUSED(ampc_run_batch(NULL, d, b, 0, 1, &n));
  REFUSED(ampc_run_batch(rt, NULL, b, 0, 1, &n));
  REFUSED(ampc_run_batch(rt, d, NULL, 0, 1, &n));
  REFUSED(ampc_run_batch(rt, d, b, UINT32_MAX, 1, &n));
  REFUSED(ampc_run_batch(rt, d, b, 0, 1, NULL));
  REFUSED(ampc_run_group(NULL, d, b, 0, 1, 1, &n));
  REFUSED(ampc_run_group(rt, NULL, b, 0, 1, 1, &n));
  REFUSED(ampc_run_group(rt, d, NULL, 0, 1, 1, &n));
  REFUSED(ampc_run_group(rt, d, b, UINT32_MAX, 1, 1, &n));
  REFUSED(ampc_run_group(rt, d, b, 0, 1, 0, &n));
  REFUSED(ampc_run_group(rt, d, b, 0, 1, 1, NULL));
  d->close(b);
  d->close(NULL);
}

static void check_infer(void)
{
  ampc_runtime *none;
  uint32_t block;
  const float in[16] = {0};
  float out[8];
  REFUSED(ampc_infer_open(NULL, "cpu", NULL, NULL, NULL, NULL, &none));
  REFUSED(ampc_infer_open(&s.program, "cpu", NULL, NULL, NULL, NULL, NULL));
  REFUSED(ampc_infer(NULL, 2, (const void *[]){in}, (void *[]){out}));
  REFUSED(ampc_infer(rt, UINT32_MAX, (const void *[]){in}, (void *[]){out}));
  REFUSED(ampc_infer(rt, 0, (const void *[]){in}, (void *[]){out})); /* block 0 is a train block */
  s.blocks[0].kind = AMPC_INFER;
  REFUSED(ampc_infer(rt, 0, NULL, (void *[]){out}));
  REFUSED(ampc_infer(rt, 0, (const void *[]){NULL, NULL}, (void *[]){out}));
  s.output.block = 0;
  REFUSED(ampc_infer(rt, 0, (const void *[]){in, in}, NULL));
  REFUSED(ampc_infer(rt, 0, (const void *[]){in, in}, (void *[]){NULL}));
  s.blocks[0].kind = AMPC_TRAIN;
  REFUSED(ampc_infer_block(NULL, "f", NULL, &block));
  REFUSED(ampc_infer_block(&s.program, NULL, NULL, &block));
  REFUSED(ampc_infer_block(&s.program, "f", NULL, NULL));
  REFUSED(ampc_infer_block(&s.program, "f", NULL, &block));
}

static void check_sequence(void)
{
  ampc_sequence *sequence = NULL;
  const int64_t token[1] = {0};
  float logits[1];
  REFUSED(ampc_sequence_begin(NULL, &sequence));
  REFUSED(ampc_sequence_begin(rt, NULL));
  REFUSED(ampc_sequence_begin(rt, &sequence)); /* the program is no decoder */
  CHECK(!sequence);
  REFUSED(ampc_sequence_next(NULL, token, 1, logits)); /* cli.decode calls it with a sequence */
  REFUSED(ampc_sequences_next(&sequence, 1, token, (void *const[1]){logits}));
  REFUSED(ampc_sequence_rewind(NULL, 0));
  ampc_sequence_end(NULL);
}

static void check_runs(void)
{
  ampc_data_position at = {0};
  ampc_train_options options = {0};
  REFUSED(ampc_checkpoint_save(NULL, temp_path("x"), at));
  REFUSED(ampc_checkpoint_save(rt, NULL, at));
  REFUSED(ampc_weights_save(NULL, temp_path("x")));
  REFUSED(ampc_weights_save(rt, NULL));
  REFUSED(ampc_checkpoint_load(NULL, temp_path("x"), &at));
  REFUSED(ampc_checkpoint_load(rt, NULL, &at));
  REFUSED(ampc_checkpoint_load(rt, temp_path("x"), NULL));
  REFUSED(ampc_train(NULL, &ampc_data, &options));
  REFUSED(ampc_train(rt, NULL, &options));
  REFUSED(ampc_train(rt, &ampc_data, NULL));
  REFUSED(ampc_main(0, (char *[]){NULL}, &s.program, &ampc_data));
  REFUSED(ampc_main(1, NULL, &s.program, &ampc_data));
  REFUSED(ampc_main(1, (char *[]){"x", NULL}, NULL, &ampc_data));
  REFUSED(ampc_main(1, (char *[]){"x", NULL}, &s.program, NULL));
}

static void check_loop(void)
{
  ampc_runtime *none = NULL;
  double value[8];
  float in[1] = {0};
  const void *const one[] = {in}, *const null[] = {NULL};
  REFUSED(ampc_loop_open(NULL, "cpu", 1, NULL, &none));
  REFUSED(ampc_loop_open(&s.program, "cpu", 1, NULL, NULL));
  REFUSED(ampc_loop_run(NULL, 0, 1, one));
  REFUSED(ampc_loop_run(rt, 0, 1, NULL));
  REFUSED(ampc_loop_run(rt, 0, 1, null));
  REFUSED(ampc_loop_run(rt, UINT32_MAX, 1, one));
  REFUSED(ampc_loop_run_on(NULL, 0, 1, one, NULL));
  REFUSED(ampc_loop_run_on(rt, 0, 1, NULL, NULL));
  REFUSED(ampc_loop_run_on(rt, UINT32_MAX, 1, one, NULL));
  REFUSED(ampc_loop_metrics(NULL, 0, value));
  REFUSED(ampc_loop_metrics(rt, 0, NULL));
  REFUSED(ampc_loop_metrics(rt, UINT32_MAX, value));
  REFUSED(ampc_loop_save(NULL, "x"));
  REFUSED(ampc_loop_save(rt, NULL));
  REFUSED(ampc_loop_load(NULL, "x"));
  REFUSED(ampc_loop_load(rt, NULL));
}

static void check_plan(void)
{
  int64_t n = 0;
  CHECK(!ampc_average_of(NULL, &s.params[0]) && !ampc_average_of(&s.program, NULL));
  CHECK(ampc_metric_slots(NULL, 3) == 0 && ampc_target_capability(NULL) == 0);
  CHECK(ampc_gemm_workspace_cpu(NULL, false) == 0 && ampc_conv_workspace_cpu(NULL, false) == 0);
  CHECK(ampc_conv_workspace_cuda(NULL, false, 80) == 0);
  CHECK(ampc_element_size(NULL, AMPC_F32) == 4 && ampc_dtype_size((ampc_dtype)99) == 0);
  CHECK(*ampc_dtype_name((ampc_dtype)99));
  ampc_part(10, 0, 1, NULL, &n);
  ampc_part(10, 0, 1, &n, NULL);
}

/* Checks that this file contains a call of each function that the header declares. */
static void check_all_are_here(void)
{
  size_t size;
  char *header = temp_read("runtime/include/ampc_rt.h", &size);
  header[size] = 0;
  char *here = temp_read("tests/unit/test_null.c", &size), name[64];
  here[size] = 0;
  int found = 0;
  for (char *at = header; (at = strstr(at, "ampc_")); at++) {
    size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    char *line = at;
    while (line > header && line[-1] != '\n') line--;
    bool declares = at[n] == '(' && *line >= 'a' && *line <= 'z' && n + 2 < sizeof name &&
                    strncmp(line, "typedef", 7) != 0;
    if (!declares) continue;
    snprintf(name, sizeof name, "%.*s(", (int)n, at);
    CHECK_MSG(strstr(here, name), "%s is not called with NULL", name);
    found++;
    at = strchr(at, ';') ? strchr(at, ';') : at + n;
  }
  CHECK(found > 40);
  free(header);
  free(here);
}

int main(void)
{
  temp_open();
  small_program(&s);
  MUST(ampc_create(&s.program, "cpu", &rt) == AMPC_OK && ampc_init_params(rt, 1) == AMPC_OK);
  check_objects();
  check_state();
  check_steps();
  check_data();
  check_infer();
  check_sequence();
  check_runs();
  check_loop();
  check_plan();
  check_all_are_here();
  ampc_free(rt);
  temp_close();
  return check_done();
}
