/* Walked PTX (runner/cost) against counts by hand. The lines' comments give the terms of a sum. */
#include "check.h"
#include "runner/cost/kernel.h"
#include "walked.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define REGISTERS                                                                                  \
  ".reg .pred %p<4>;\n.reg .f32 %f<12>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<7>;\n.reg .b16 %h<4>;\n"
#define PARAM(n) ".param .u64 k_param_" #n

/* y[i] = x[i] + 1 for i < n. A thread computes one element of 4 bytes. */
static const char scale_text[] = HEAD
    ".visible .entry k(\n" PARAM(0) ",\n" PARAM(1) "\n)\n"
                                                   ".maxntid 256, 1, 1\n{\n" REGISTERS
                                                   "ld.param.u64 %rd1, [k_param_0];\n" // free
                                                   "ld.param.u64 %rd2, [k_param_1];\n" // free
                                                   "mov.u32 %r1, %ctaid.x;\n"          // 1
                                                   "mov.u32 %r2, %ntid.x;\n"           // 2
                                                   "mov.u32 %r3, %tid.x;\n"            // 3
                                                   "mad.lo.s32 %r4, %r1, %r2, %r3;\n"  // 4
                                                   "setp.gt.s32 %p1, %r4, 299;\n"      // 5
                                                   "@%p1 bra $L__BB0_2;\n" // 6: all threads so far
                                                   "cvta.to.global.u64 %rd3, %rd1;\n" // free
                                                   "mul.wide.s32 %rd4, %r4, 4;\n"     // 7
                                                   "add.s64 %rd5, %rd3, %rd4;\n"     // 8, two slots
                                                   "ld.global.nc.f32 %f1, [%rd5];\n" // 9
                                                   "add.rn.f32 %f2, %f1, 0f3F800000;\n" // 10
                                                   "add.s64 %rd6, %rd2, %rd4;\n"  // 11, two slots
                                                   "st.global.f32 [%rd6], %f2;\n" // 12
                                                   "$L__BB0_2:\n"
                                                   "ret;\n" // 7 or 13: all threads
                                                   "}\n";

/* A loop: 32 threads each add 5 numbers that lie 256 bytes apart. No two lanes share a sector. */
static const char strided_text[] =
    HEAD ".visible .entry k(\n" PARAM(0) "\n)\n{\n" REGISTERS "ld.param.u64 %rd1, [k_param_0];\n"
                                         "mov.u32 %r1, %tid.x;\n"          // 1
                                         "mul.wide.u32 %rd2, %r1, 2048;\n" // 1
                                         "add.s64 %rd3, %rd1, %rd2;\n"     // 1
                                         "mov.u32 %r2, 0;\n"               // free
                                         "mov.f32 %f1, 0f00000000;\n"      // free
                                         "$L__BB0_1:\n"
                                         "ld.global.f32 %f2, [%rd3+8];\n" // 5 times
                                         "add.rn.f32 %f1, %f1, %f2;\n"    // 5 times
                                         "add.s64 %rd3, %rd3, 256;\n"     // 5 times
                                         "add.s32 %r2, %r2, 1;\n"         // 5 times
                                         "setp.lt.u32 %p1, %r2, 5;\n"     // 5 times
                                         "@%p1 bra $L__BB0_1;\n"          // 5 times
                                         "ret;\n}\n";                     // 1

/* Each even lane runs the loop as often as its number says, odd lanes skip it, then all reconverge.
 * Warp instructions: 4 before, 30 iterations of 3 for the longest lane, 1 at the end. */
static const char parting_text[] =
    HEAD ".visible .entry k()\n{\n" REGISTERS "mov.u32 %r1, %tid.x;\n"
         "and.b32 %r2, %r1, 1;\n"
         "setp.eq.s32 %p1, %r2, 1;\n"
         "@%p1 bra $L__BB0_3;\n"
         "mov.u32 %r3, 0;\n"
         "$L__BB0_2:\n"
         "setp.ge.u32 %p2, %r3, %r1;\n"
         "@%p2 bra $L__BB0_3;\n"
         "{ // inline assembly\n .reg .b32 one;\n mov.b32 one, 1;\n add.s32 %r3, %r3, one; }\n"
         "bra.uni $L__BB0_2;\n"
         "$L__BB0_3:\n"
         "ret;\n}\n";

/* Shared memory: 32 lanes read rows 33 words apart, then rows 32 words apart, all in one bank. */
static const char banks_text[] = HEAD
    ".visible .entry k()\n{\n.shared .align 4 .b8 tile[8448];\n" REGISTERS "mov.u32 %r1, %tid.x;\n"
    "mov.u32 %r2, tile;\n"
    "mad.lo.s32 %r3, %r1, 132, %r2;\n"
    "ld.shared.f32 %f1, [%r3];\n"
    "mad.lo.s32 %r4, %r1, 128, %r2;\n"
    "ld.shared.f32 %f2, [%r4];\n"
    "ret;\n}\n";

/* A load of 600 cycles, then a chain of four additions of 4 cycles each; next to it a load that no
 * instruction waits for. */
static const char chain_text[] =
    HEAD ".visible .entry k(\n" PARAM(0) "\n)\n{\n" REGISTERS "ld.param.u64 %rd1, [k_param_0];\n"
                                         "ld.global.nc.f32 %f1, [%rd1];\n"
                                         "ld.global.nc.f32 %f9, [%rd1+4096];\n"
                                         "add.rn.f32 %f2, %f1, %f1;\n"
                                         "add.rn.f32 %f3, %f2, %f2;\n"
                                         "add.rn.f32 %f4, %f3, %f3;\n"
                                         "st.global.f32 [%rd1], %f4;\n"
                                         "ret;\n}\n";

/* Blocks increment a counter. The threads of the last block execute `more`. */
#define LAST_TEXT(more)                                                                            \
  HEAD ".visible .entry k(\n" PARAM(0) "\n)\n{\n.shared .align 4 .b8 last[4];\n" REGISTERS         \
                                       "ld.param.u64 %rd1, [k_param_0];\n" /* free */              \
                                       "mov.u32 %r1, %tid.x;\n"                                    \
                                       "setp.ne.s32 %p1, %r1, 0;\n"                                \
                                       "@%p1 bra $L__BB0_1;\n" /* 3 */                             \
                                       "atom.global.add.u32 %r2, [%rd1], 1;\n"                     \
                                       "mov.u32 %r3, %nctaid.x;\n"                                 \
                                       "add.s32 %r3, %r3, -1;\n"                                   \
                                       "setp.eq.s32 %p2, %r2, %r3;\n"                              \
                                       "selp.u32 %r4, 1, 0, %p2;\n"                                \
                                       "st.shared.u32 [last], %r4;\n" /* 6, one thread */          \
                                       "$L__BB0_1:\n"                                              \
                                       "bar.sync 0;\n"                                             \
                                       "ld.shared.u32 %r5, [last];\n"                              \
                                       "setp.eq.s32 %p3, %r5, 0;\n"                                \
                                       "@%p3 bra $L__BB0_2;\n" more "$L__BB0_2:\n"                 \
                                       "ret;\n}\n" /* 5 */

/* Two warps: a thread stores its number, and after the barrier reads that of thread 63 - tid. Its
 * lanes exchange these numbers, lane by lane with its neighbour. Threads leave after 12
 * instructions if they have the right number. */
static const char exchange_text[] = HEAD
    ".visible .entry k()\n{\n.shared .align 4 .b8 tile[256];\n" REGISTERS "mov.u32 %r1, %tid.x;\n"
    "mov.u32 %r2, tile;\n" // free
    "mad.lo.s32 %r3, %r1, 4, %r2;\n"
    "st.shared.u32 [%r3], %r1;\n"
    "bar.sync 0;\n"
    "sub.s32 %r3, 63, %r1;\n"
    "mad.lo.s32 %r3, %r3, 4, %r2;\n"
    "ld.shared.u32 %r4, [%r3];\n"
    "shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;\n"
    "xor.b32 %r1, %r1, 1;\n"
    "sub.s32 %r3, 63, %r1;\n"
    "setp.eq.s32 %p1, %r5, %r3;\n"
    "@%p1 bra $L__BB0_1;\n"
    "add.s32 %r5, %r5, 1;\n"
    "$L__BB0_1:\n"
    "ret;\n}\n";

/* Each thread reads an id. It executes one more instruction if the id is 0, and two more if the id
 * is above 7. */
static const char ids_text[] =
    HEAD ".visible .entry k(\n" PARAM(0) "\n)\n{\n" REGISTERS "ld.param.u64 %rd1, [k_param_0];\n"
                                         "mov.u32 %r1, %tid.x;\n"
                                         "mad.wide.u32 %rd2, %r1, 8, %rd1;\n"
                                         "ld.global.u64 %rd3, [%rd2];\n"
                                         "setp.eq.s64 %p1, %rd3, 0;\n"
                                         "setp.gt.u64 %p2, %rd3, 7;\n"
                                         "@!%p1 bra $L__BB0_1;\n"
                                         "add.s32 %r2, %r1, 1;\n"
                                         "$L__BB0_1:\n"
                                         "@!%p2 bra $L__BB0_2;\n"
                                         "add.s32 %r2, %r1, 1;\n"
                                         "add.s32 %r2, %r1, 1;\n"
                                         "$L__BB0_2:\n"
                                         "ret;\n}\n";

/* Returns after four instructions if the word before argument 1 is 0. Argument 0 has only zeros. */
static const char before_text[] =
    HEAD ".visible .entry k(\n" PARAM(0) ",\n" PARAM(1) "\n)\n{\n" REGISTERS
                                                        "ld.param.u64 %rd1, [k_param_1];\n" // free
                                                        "ld.global.u32 %r1, [%rd1+-4];\n"
                                                        "setp.eq.s32 %p1, %r1, 0;\n"
                                                        "@%p1 bra $L__BB0_1;\n"
                                                        "st.global.u32 [%rd1], %r1;\n"
                                                        "$L__BB0_1:\n"
                                                        "ret;\n}\n";

static WalkCounts walk(const char *text, uint32_t grid, uint32_t block, uint32_t n_arguments)
{
  static const WalkArgument arguments[2] = {{0}};
  WalkLaunch launch = {.grid = grid,
                       .block = block,
                       .blocks = 100,
                       .most = 1000000,
                       .endless = 1000000,
                       .arguments = arguments,
                       .n_arguments = n_arguments};
  return walked(text, "k", launch);
}

#define SAME(of, is, should)                                                                       \
  CHECK_MSG((is) == (should), "%s: %s is %g, not %g", of, #is, (double)(is), (double)(should))

/* Tests 512 threads, 300 with an element. 10 of 16 warps have elements, the last one only 12. */
static void test_elements(void)
{
  WalkCounts c = walk(scale_text, 2, 256, 2);
  SAME("elements", c.instructions, 512.0 * 7 + 300 * 6);
  SAME("elements", c.slots, 16.0 * 7 + 10 * 8);
  SAME("elements", c.sectors_read, 300 * 4 / 32 + 1.0);
  SAME("elements", c.sectors_written, 300 * 4 / 32 + 1.0);
  SAME("elements", c.pipe[PIPE_lsu], 10 * 2.0); /* one line each */
  SAME("elements", c.pipe[PIPE_fma], 10.0);
}

static void test_strided(void)
{
  WalkCounts c = walk(strided_text, 1, 32, 1);
  SAME("strided", c.instructions, 32.0 * (3 + 5 * 6 + 1));
  SAME("strided", c.slots, 4.0 + 5 * 7 + 1); /* add.s64 takes two slots */
  SAME("strided", c.sectors_read, 32.0 * 5);
  SAME("strided", c.sectors_once, 32.0 * 5);
  SAME("strided", c.pipe[PIPE_lsu], 32.0 * 5);
}

static void test_parting(void)
{
  WalkCounts c = walk(parting_text, 1, 32, 0);
  /* lane 30: setp and bra 31 times, add and bra 30 times; other even lanes by their numbers */
  double of_lanes = 0;
  for (int lane = 0; lane < 32; lane += 2) of_lanes += 2 * (lane + 1) + 2 * lane;
  SAME("parting", c.instructions, 32.0 * 4 + of_lanes + 32);
  SAME("parting", c.slots, 4.0 + 2 * 31 + 2 * 30 + 1);
}

static void test_banks(void)
{
  WalkCounts c = walk(banks_text, 1, 32, 0);
  SAME("banks", c.pipe[PIPE_lsu], 1.0 + 32);
}

/* Each lane gives the address of a row; four matrices lie side by side. 144 bytes apart, the eight
 * rows of a matrix are in different banks; 128 bytes apart, in the same. Then two products are
 * added to the same sums. */
#define MATRIX_TEXT(pitch)                                                                         \
  HEAD ".visible .entry k()\n{\n.shared .align 16 .b8 tile[4096];\n" REGISTERS                     \
       "mov.u32 %r1, %tid.x;\n"                                                                    \
       "and.b32 %r2, %r1, 7;\n"                                                                    \
       "mul.lo.s32 %r2, %r2, " #pitch ";\n"                                                        \
       "bfe.u32 %r3, %r1, 3, 2;\n"                                                                 \
       "mad.lo.s32 %r2, %r3, 16, %r2;\n"                                                           \
       "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r2, %r3, %r4, %r5}, [%r2];\n"             \
       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, "                \
       "{%r2, %r3, %r4, %r5}, {%r2, %r3}, {%f1, %f2, %f3, %f4};\n"                                 \
       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, "                  \
       "{%r2, %r3, %r4, %r5}, {%r4, %r5}, {%f1, %f2, %f3, %f4};\n"                                 \
       "ret;\n}\n"

static void test_matrix(void)
{
  static const char apart[] = MATRIX_TEXT(144), together[] = MATRIX_TEXT(128);
  WalkCounts c = walk(apart, 2, 64, 0);
  SAME("matrix", c.instructions, 128.0 * 9);
  SAME("matrix", c.pipe[PIPE_tensor], 4 * 2.0);
  SAME("matrix", c.pipe[PIPE_lsu], 4 * 4.0);
  /* the position, the address, the load, the first product; then the second one can begin */
  CHECK_MSG(c.longest >= 4 * 5 + 30 + 33 && c.longest < 4 * 5 + 30 + 33 + 4, "%g", c.longest);
  SAME("matrix", walk(together, 2, 64, 0).pipe[PIPE_lsu], 4 * 32.0);
}

/* Tests the load, three additions, and the slot of the store. */
static void test_chain(void)
{
  WalkCounts c = walk(chain_text, 1, 32, 1);
  CHECK_MSG(c.longest >= 600 + 3 * 4 + 1 && c.longest <= 600 + 3 * 4 + 4, "longest %g", c.longest);
}

/* Tests that a few of many blocks are walked, and the counts are scaled. */
static void test_scaled(void)
{
  WalkCounts c = walk(strided_text, 100000, 32, 1);
  SAME("scaled", c.instructions, 100000.0 * 32 * (3 + 5 * 6 + 1));
  SAME("scaled", c.walked, 100 / 100000.0);
}

/* Tests that the last block's extra work counts once and lengthens the path. */
static void test_last(void)
{
  static const char plain[] = LAST_TEXT(""), text[] = LAST_TEXT("add.rn.f32 %f1, %f1, %f1;\n"
                                                                "add.rn.f32 %f1, %f1, %f1;\n");
  SAME("all", walk(plain, 4, 64, 1).instructions, 4.0 * (64 * 3 + 6 + 64 * 5));
  SAME("all", walk(text, 4, 64, 1).instructions, 4.0 * (64 * 3 + 6 + 64 * 5) + 2 * 64);
  WalkCounts without = walk(plain, 1000, 64, 1), with = walk(text, 1000, 64, 1);
  CHECK(with.walked < 1);
  SAME("few", with.instructions - without.instructions, 2.0 * 64);
  CHECK(with.longest >= without.longest + 4);
}

static void test_exchange(void)
{
  SAME("exchange", walk(exchange_text, 1, 64, 0).instructions, 64.0 * 13);
}

/* Tests that ids are below the number of rows, and that each row has about as many. */
static void test_ids(void)
{
  static const WalkArgument ids = {.rows = 8, .id_bytes = 8};
  WalkLaunch launch = {1, 256, 1, 100000, 100000, &ids, 1, 0, 0, 0, 0};
  double zeros = walked(ids_text, "k", launch).instructions - 256.0 * 8;
  CHECK_MSG(zeros > 16 && zeros < 48, "%g of 256 ids are 0", zeros);
}

/* ---- PTX that the walk does not support is named ---- */

static void refuses(const char *text, const char *word)
{
  static const WalkArgument argument = {0};
  Arena *arena = arena_create();
  PtxText ptx;
  WalkCounts counts;
  WalkLaunch launch = {1, 32, 1, 1000, 1000, &argument, 0, 30, 40, 260, 600};
  const char *why = "";
  bool good = ptx_read(arena, text, &ptx, &why) &&
              walk_kernel(arena, ptx_find(&ptx, "k"), &launch, &counts, &why);
  CHECK_MSG(!good && strstr(why, word), "`%s` does not name %s", why, word);
  arena_destroy(arena);
}

#define BODY(text) HEAD ".visible .entry k()\n{\n" REGISTERS text "ret;\n}\n"

/* Tests that a negative index stays in the memory of its own argument. */
static void test_before(void)
{
  static const WalkArgument arguments[2] = {{.pattern = 0}, {.pattern = 0x3F8000003F800000u}};
  WalkLaunch launch = {1, 1, 1, 1000, 1000, arguments, 2, 0, 0, 0, 0};
  SAME("before", walked(before_text, "k", launch).instructions, 5.0);
}

/* A text with constants in both notations as loop counts: 3, then 258. */
static const char table_text[] =
    HEAD ".const .align 4 .b32 first[2] = {-1, 3};\n"
         ".const .align 4 .b8 second[8] = {9, 0, 0, 0, 2, 1};\n"
         ".visible .entry k()\n{\n" REGISTERS "mov.u64 %rd1, first;\n" // free
         "ld.const.u32 %r1, [%rd1+4];\n"                               // 1
         "mov.u32 %r2, 0;\n"                                           // free
         "$L__BB0_1:\n"
         "add.s32 %r2, %r2, 1;\n"        // 3 times
         "setp.lt.u32 %p1, %r2, %r1;\n"  // 3 times
         "@%p1 bra $L__BB0_1;\n"         // 3 times
         "mov.u64 %rd2, second;\n"       // free
         "ld.const.u32 %r1, [%rd2+4];\n" // 1
         "mov.u32 %r2, 0;\n"             // free
         "$L__BB0_2:\n"
         "add.s32 %r2, %r2, 1;\n"       // 258 times
         "setp.lt.u32 %p1, %r2, %r1;\n" // 258 times
         "@%p1 bra $L__BB0_2;\n"        // 258 times
         "ret;\n}\n";                   // 1

static void test_constants(void)
{
  SAME("constants", walk(table_text, 1, 1, 0).instructions, 1 + 3 * 3 + 1 + 3 * 258 + 1.0);
}

static void test_refusals(void)
{
  refuses(BODY("frob.s32 %r1, %r2;\n"), "frob.s32");
  refuses(BODY("add.frob.s32 %r1, %r2, 1;\n"), "add.frob.s32");
  refuses(BODY("div.rn.f16 %h1, %h2, %h3;\n"), "div.rn.f16");
  refuses(BODY("call.uni function, (a);\n"), "call.uni");
  refuses(BODY("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};\n"),
          "m16n8k8");
  refuses(BODY("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3];\n"), "x2");
  refuses(BODY(".local .align 4 .b8 depot[16];\n"), "local memory");
  refuses(BODY("mov.u32 %r1, %clock;\n"), "%clock");
  refuses(BODY("bra $L__BB0_9;\n"), "$L__BB0_9");
  refuses(BODY("$L__BB0_1:\nbra.uni $L__BB0_1;\n"), "does not end");
  refuses(HEAD ".visible .entry k(\n" PARAM(0) "\n)\n{\nret;\n}\n", "arguments");
  refuses(HEAD ".visible .entry k()\n{\n" REGISTERS "add.s32 %r1, %r1, 1;\n", "cut off");
}

/* ---- costs ---- */

static void test_costs(void)
{
  const Gpu *g = gpu_find("h200");
  MUST(g);
  CHECK(!gpu_find("h2000"));
  Arena *arena = arena_create();
  CHECK(gpu_of_device("cuda:0 NVIDIA H200") == g);
  CHECK(gpu_of_device("cuda:1 NVIDIA GeForce RTX 4090") == gpu_find("rtx4090"));
  CHECK(!gpu_of_device("cuda:0 NVIDIA GeForce RTX 4090 Laptop GPU"));
  CHECK(gpu_of_device("cuda:0 NVIDIA GH200 480GB") == gpu_find("gh200"));
  CHECK(gpu_of_device("cuda:0 NVIDIA A100-SXM4-80GB") == gpu_find("a100"));
  CHECK(!gpu_of_device("cuda:0 NVIDIA L40S") && !gpu_of_device("cuda:0 NVIDIA T400 4GB"));
  CHECK(!gpu_of_device("cuda:0 Orin")); /* three modules with different clocks have this name */
  CHECK(!gpu_of_device("cuda:0 Mock"));
  arena_destroy(arena);
  /* a gigabyte and almost no instructions: bound by DRAM */
  WalkCounts c = {.slots = 1e6, .longest = 700, .sectors_read = 1e9 / 32, .sectors_once = 1e9 / 32};
  KernelLoad k = {.grid = 10000, .block = 256, .bytes = 1e9, .counts = &c};
  Cost cost = gpu_kernel_cost(g, &k);
  CHECK(cost.bound == BOUND_dram && cost.us == 1e9 / (g->dram * 1e3));
  SAME("resident", cost.in_flight, 132.0 * 2048);
  /* 1e8 warp instructions on four schedulers of each multiprocessor */
  c = (WalkCounts){.slots = 1e8};
  k.bytes = 1e6;
  cost = gpu_kernel_cost(g, &k);
  CHECK(cost.bound == BOUND_issue && cost.us > 1e8 / 4 / 132 / g->mhz * 0.99 &&
        cost.us < 1e8 / 4 / 132 / g->mhz * 1.01);
  /* 1e8 products of [16, 16] and [16, 8]: 1.6 cycles each at 1830 MHz */
  c = (WalkCounts){.slots = 1e8, .pipe = {[PIPE_tensor] = 1e8}};
  cost = gpu_kernel_cost(g, &k);
  double product_us = 1e8 * 1.6 / 132 / 1830;
  CHECK(cost.bound == BOUND_tensor && cost.us > product_us * 0.98 && cost.us < product_us * 1.02);
  CHECK(cost.roof_us > cost.us * 0.61 && cost.roof_us < cost.us * 0.63);
  /* one block whose longest path takes 1e6 cycles */
  c = (WalkCounts){.slots = 1000, .longest = 1e6};
  k.grid = 1;
  cost = gpu_kernel_cost(g, &k);
  CHECK(cost.bound == BOUND_latency && cost.us == 1e6 * (1.0 / g->mhz));
  ProductLoad p = {.m = 8192,
                   .n = 8192,
                   .k = 8192,
                   .batch = 1,
                   .bytes = 4e8,
                   .type = AMPC_BF16,
                   .aligned = true};
  cost = gpu_product_cost(g, &p);
  CHECK(cost.bound == BOUND_tensor && cost.us > 2 * 8192.0 * 8192 * 8192 / 802e6 * 0.99 &&
        cost.us < 2 * 8192.0 * 8192 * 8192 / 800e6 * 1.01);
  p.type = AMPC_F32;
  CHECK(!gpu_has_tensor(g, &p));
}

int main(void)
{
  test_elements();
  test_strided();
  test_parting();
  test_banks();
  test_matrix();
  test_chain();
  test_scaled();
  test_last();
  test_exchange();
  test_ids();
  test_before();
  test_constants();
  test_refusals();
  test_costs();
  return check_done();
}
