/* Kernels that ampc emitted (tests/inspect/emitted.ptx), walked like `amp inspect --gpu` does,
 * against counts by hand. The comments in that file give the terms of each count.
 *
 * Counts are for the whole launch. At most nine of its blocks are walked, and those may have a
 * little more or less work than the mean. Where that matters, a margin of 0.5 % is given; one
 * instruction per element is 4 %. */
#include <stdio.h>
#include <stdlib.h>
#include "walked.h"

static char *read_kernels(void)
{
  enum { MOST = 64 << 10 };
  char *text = calloc(1, MOST);
  FILE *f = fopen("tests/inspect/emitted.ptx", "r");
  CHECK_MSG(text && f && fread(text, 1, MOST - 1, f) > 0, "%s", "emitted.ptx cannot be read");
  if (f) fclose(f);
  return text;
}

static WalkCounts walk(const char *kernel, uint32_t grid, uint32_t block, uint32_t n_arguments)
{
  static const WalkArgument arguments[3] = {{0}};
  WalkLaunch launch = {.grid = grid,
                       .block = block,
                       .blocks = 9,
                       .most = 200000,
                       .endless = 50000000,
                       .arguments = arguments,
                       .n_arguments = n_arguments};
  char *text = read_kernels();
  WalkCounts out = walked(text, kernel, launch);
  free(text);
  return out;
}

#define WITHIN(is, should, part)                                                                   \
  CHECK_MSG((is) >= (should) * (1 - (part)) && (is) <= (should) * (1 + (part)),                    \
            "%s is %.0f, not %.0f", #is, (double)(is), (double)(should))

/* Tests y = relu(2 a + b) of 4096 x 1024 f16, in 1056 blocks of 256 threads. A thread has 15.5
 * elements on average; the threads of the nine walked blocks have 15.6. A warp reads 64 bytes twice
 * and writes 64 bytes. */
static void test_elementwise(void)
{
  const double elements = 4096.0 * 1024, threads = 1056.0 * 256;
  WalkCounts c = walk("infer_mul_add_relu", 1056, 256, 3);
  WITHIN(c.instructions, 9 * threads + 21 * elements, 0.005);
  WITHIN(c.slots, (9 * threads + 24 * elements) / 32, 0.005); /* three 64-bit additions */
  WITHIN(c.sectors_read, 2 * elements * 2 / 32, 0.005);
  WITHIN(c.sectors_once, 2 * elements * 2 / 32, 0.005);
  WITHIN(c.sectors_written, elements * 2 / 32, 0.005);
  /* 16 elements in sequence: each waits for its loads and then for a chain of eight */
  CHECK(c.longest > 16 * DRAM && c.longest < 16 * (DRAM + 100));
}

/* Tests sums of the 64 columns of 100352 rows of f16, one per thread, in 392 parts of 16
 * iterations. The 2 blocks of 32 threads do the same work. A 64-bit addition takes a second slot:
 * there is one in a part, two in an iteration and one at the end. */
static void test_columns(void)
{
  const double one = 8 + 7 + 392 * (7 + 16 * 56 + 5) + 8 + 1;
  WalkCounts c = walk("infer13_sum", 2, 32, 2);
  WITHIN(c.instructions, 64 * one, 0.0);
  WITHIN(c.slots, 2 * (one + 392 * (1 + 16 * 2) + 1), 0.0);
  WITHIN(c.sectors_read, 100352.0 * 64 * 2 / 32, 0.0);
  WITHIN(c.sectors_written, 64.0 * 4 / 32, 0.0);
  /* each iteration waits once for its 16 loads, then for 16 additions of 4 cycles each */
  CHECK(c.longest > 392 * 16 * (DRAM + 64) && c.longest < 392 * 16 * (DRAM + 64 + 50));
}

/* Tests sums of 4096 rows of 1024 f16, in 1056 blocks of 512 threads, a row at a time. 928 blocks
 * have four rows, the others three; of the nine walked, one has three. 64-bit additions take two
 * slots: one at the start, one per element; in a row, two in each of 3 iterations and 3 after them;
 * one in the thread that stores. */
static void test_rows(void)
{
  const double rows = 4096.0, threads = 1056.0 * 512;
  const double row = 49 + 2 * 9 + 3 * 17;
  WalkCounts c = walk("infer12_sum", 1056, 512, 2);
  WITHIN(c.instructions, 17 * threads + rows * (512 * row + 16 * 1 + 3), 0.005);
  double warps = 16 * (row + 2 + 3 * 2 + 3); /* all lanes participate */
  WITHIN(c.slots, 18 * threads / 32 + rows * (warps + 16 * 1 + 4), 0.005);
  WITHIN(c.sectors_read, rows * 1024 * 2 / 32, 0.005);
  WITHIN(c.sectors_written, rows, 0.005);
  /* four rows in sequence, two elements each in sequence */
  CHECK(c.longest > 4 * 2 * DRAM);
}

int main(void)
{
  test_elementwise();
  test_columns();
  test_rows();
  return check_done();
}
