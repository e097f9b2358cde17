/* Command lists that repeat, and that sum over devices. The runtime runs them, refuses broken ones,
 * and the emitter prints C that does the same. With the argument `cuda` the test runs on a GPU or
 * its mock, which records the step as a graph.
 *
 * The list is made by hand around the kernel of a compiled job, h * 0.5 + x:
 *   h = 0
 *   twice:  5 times:  out[t] = h * 0.5 + x[t];  h = out[t]
 *           all of out is kept
 *   h = the sum of h over all devices */
#include "check.h"
#include <dlfcn.h>
#include "compiler/driver.h"
#include "compiler/program/program.h"
#include "compiler/graph/ir.h"
#include "runner/jit/jit.h"
#include "runner/jit/toolchain.h"
#include "temp.h"

enum { N = 16, ROW = N * 4, TIMES = 5, ROUNDS = 2, H = 0, OUT = 1024, KEPT = 2048, ROOM = 4096 };

static const char job[] = "infer f(h: f32[16], x: f32[16]) { return h * 0.5 + x }\n";

typedef struct Scan {
  Compile *c;
  Jit *jit;
  ampc_program program;
  ampc_block block;
  ampc_command launch; /* the launch that the compiler made */
  ampc_operand args[3];
  ampc_command body[2], round[2], step[3];
} Scan;

/* Moves the kernel's operands to the places of h, x and out in the list. */
static void move_operands(Scan *s, const ampc_launch *l)
{
  MUST(l->n_args == 3);
  for (uint32_t i = 0; i < 3; i++) {
    ampc_ref at = l->args[i].at;
    if (at.space == AMPC_WORK)
      s->args[i] = (ampc_operand){{AMPC_WORK, OUT}, ROW};
    else if (at.offset == s->program.sources[0].offset)
      s->args[i] = (ampc_operand){{AMPC_WORK, H}, 0};
    else
      s->args[i] = (ampc_operand){{AMPC_INPUT, 0}, ROW};
  }
}

static ampc_command repeat(const char *label, int64_t count, const ampc_command *commands)
{
  ampc_command k = {.kind = AMPC_REPEAT, .label = label, .line = 1};
  k.as.repeat.count = count;
  k.as.repeat.commands = commands;
  k.as.repeat.n_commands = 2;
  return k;
}

static ampc_command copy(const char *label, ampc_operand to, ampc_operand from, int64_t bytes)
{
  ampc_command k = {.kind = AMPC_COPY, .label = label, .line = 1};
  k.as.copy.to = to;
  k.as.copy.from = from;
  k.as.copy.bytes = bytes;
  return k;
}

static void make_list(Scan *s)
{
  const ampc_operand h = {{AMPC_WORK, H}, 0}, row = {{AMPC_WORK, OUT}, ROW};
  const ampc_operand all = {{AMPC_WORK, OUT}, 0}, kept = {{AMPC_WORK, KEPT}, 512};
  s->body[0] = s->launch;
  move_operands(s, &s->body[0].as.launch);
  s->body[0].as.launch.args = s->args;
  s->body[1] = copy("carry", h, row, ROW);
  s->round[0] = repeat("scan", TIMES, s->body);
  s->round[1] = copy("keep", kept, all, TIMES * ROW);
  s->step[0] = (ampc_command){.kind = AMPC_FILL, .label = "begin", .line = 1};
  s->step[0].as.fill.to = h;
  s->step[0].as.fill.bytes = ROW;
  s->step[1] = repeat("rounds", ROUNDS, s->round);
  s->step[2] = (ampc_command){.kind = AMPC_EXCHANGE, .label = "sum", .line = 1};
  s->step[2].as.exchange.at = h;
  s->step[2].as.exchange.desc.type = AMPC_F32;
  s->step[2].as.exchange.desc.count = N;
}

static void scan_open(Scan *s, const char *target)
{
  Options options = {.input = "a.amp", .target = target, .optimize = 2, .error_limit = 20};
  *s = (Scan){.c = compile_create(&options)};
  MUST(compile_text(s->c, "a.amp", job, strlen(job)));
  MUST(jit_load(s->c, &s->jit) == AMPC_OK);
  s->program = *s->c->program;
  MUST(s->program.n_blocks == 1 && s->program.n_sources == 2);
  s->block = s->program.blocks[0];
  MUST(s->block.variant[0].n_commands == 1);
  s->launch = s->block.variant[0].commands[0];
  make_list(s);
  s->block.variant[0].commands = s->step;
  s->block.variant[0].n_commands = 3;
  s->program.blocks = &s->block;
  s->program.space_bytes[AMPC_WORK] = s->program.space_bytes[AMPC_INPUT] = ROOM;
  s->c->program = &s->program;
}

static void scan_close(Scan *s)
{
  jit_unload(s->jit);
  compile_destroy(s->c);
}

/* ---- expected results ---- */

static float input(int t, int i)
{
  return (float)(t * 3 + i % 7) * 0.25f - 1;
}

/* Computes the expected contents of WORK after any step. */
static void expect(float *work)
{
  float *h = work + H / 4, *out = work + OUT / 4;
  memset(work, 0, ROOM);
  for (int round = 0; round < ROUNDS; round++) {
    for (int t = 0; t < TIMES; t++)
      for (int i = 0; i < N; i++) h[i] = out[t * N + i] = h[i] * 0.5f + input(t, i);
    memcpy((char *)work + KEPT + round * 512, out, TIMES * ROW);
  }
}

static void run(const ampc_program *p, const char *device, float *work)
{
  float x[TIMES * N];
  for (int t = 0; t < TIMES; t++)
    for (int i = 0; i < N; i++) x[t * N + i] = input(t, i);
  ampc_runtime *rt;
  CHECK_MSG(ampc_create(p, device, &rt) == AMPC_OK, "%s", ampc_last_error());
  MUST(rt);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_INPUT, 0}, x, sizeof x) == AMPC_OK);
  for (int i = 0; i < 3; i++) CHECK(ampc_run_step(rt, 0, 0) == AMPC_OK);
  CHECK(ampc_wait(rt) == AMPC_OK);
  CHECK(ampc_read(rt, (ampc_ref){AMPC_WORK, 0}, work, ROOM) == AMPC_OK);
  ampc_free(rt);
}

static void test_run(Scan *s, const char *device)
{
  float want[ROOM / 4], work[ROOM / 4];
  expect(want);
  run(&s->program, device, work);
  CHECK(memcmp(want, work, ROOM) == 0);
}

/* ---- the printed C ---- */

/* References that make the linker keep functions that only emitted programs call. */
static void (*volatile called[])(void) = {(void (*)(void))ampc_infer,
                                          (void (*)(void))ampc_infer_open};

static void test_printed(Scan *s)
{
  CHECK(called[0] && called[1]);
  temp_open();
  const char *path = temp_path("scan.so");
  Text text;
  text_init(&text, s->c->arena);
  emit_program(s->c, &text, false);
  const Toolchain *toolchain;
  setenv("CPATH", "runtime/include:runtime/plan", 1);
  MUST(toolchain_find(&toolchain) == AMPC_OK);
  CHECK_MSG(toolchain_build(toolchain, text.at, text.n, path, NULL) == AMPC_OK, "%s", text.at);
  void *library = dlopen(path, RTLD_NOW);
  CHECK_MSG(library, "%s", dlerror());
  MUST(library);
  const ampc_program *(*made)(void);
  *(void **)&made = dlsym(library, arena_printf(s->c->arena, "%s_program", s->c->program->name));
  MUST(made);
  float want[ROOM / 4], work[ROOM / 4];
  expect(want);
  run(made(), "cpu", work);
  CHECK(memcmp(want, work, ROOM) == 0);
  dlclose(library);
  temp_close();
}

static void test_plan_text(Scan *s)
{
  static const char *const lines[] = {
      "  rounds                       2 times, t = 0 ..",
      "    scan                       5 times, t = 0 ..",
      "      carry                    work+0 = work+1024+64t 64 bytes",
      "    keep                       work+2048+512t = work+1024 320 bytes",
      "  sum                          work+0 f32[16] = sum over all members",
  };
  Text text;
  text_init(&text, s->c->arena);
  emit_plan(s->c, &text);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    CHECK_MSG(strstr(text.at, lines[i]), "no `%s` in\n%s", lines[i], text.at);
}

/* ---- refusals ---- */

static void refused(const Scan *s, const char *why)
{
  ampc_runtime *rt;
  CHECK(ampc_create(&s->program, "cpu", &rt) == AMPC_RUN_FAILED && rt == NULL);
  CHECK_MSG(strstr(ampc_last_error(), why), "%s", ampc_last_error());
}

static void test_refusals(Scan *s)
{
  s->args[0].stride = (ROOM - s->args[0].at.offset) / (TIMES - 1) + 4; /* ends past the end */
  refused(s, "operand 0 of ");
  s->args[0].stride = -4; /* before the start */
  s->args[0].at.offset = 0;
  refused(s, "lies outside its space");
  s->args[0].stride = INT64_MAX / 2;
  refused(s, "lies outside its space");
  make_list(s);
  s->round[1].as.copy.to.stride = ROOM - KEPT - TIMES * ROW + 4; /* some of its bytes do not fit */
  refused(s, "operand 0 of keep");
  make_list(s);
  s->round[0].as.repeat.count = 0;
  refused(s, "scan repeats 0 times");
  make_list(s);
  s->step[2].as.exchange.desc.count = ROOM / 4 + 1;
  refused(s, "operand 0 of sum");
  make_list(s);
  s->body[1] = (ampc_command){.kind = AMPC_GEMM, .label = "product"};
  s->body[1].as.gemm.desc = (ampc_gemm){.m = 1, .n = 1, .k = 1, .a_type = AMPC_U8};
  refused(s, "u8"); /* products in a loop's body are prepared before the first step */
  make_list(s);
}

int main(int argc, char **argv)
{
  const char *device = argc > 1 ? argv[1] : "cpu";
  bool cpu = strcmp(device, "cpu") == 0;
  char target[AMPC_TARGET_ROOM];
  MUST(ampc_device_target(device, target) == AMPC_OK);
  Scan s;
  scan_open(&s, target);
  test_run(&s, device);
  test_plan_text(&s);
  if (cpu) test_printed(&s);
  if (cpu) test_refusals(&s);
  scan_close(&s);
  return check_done();
}
