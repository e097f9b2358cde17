/* Prints the samples per second that the loader reads from a folder of pictures, at 224 x 224, with
 * one thread for each processor of this process. bench_loader FOLDER train|eval BATCH BATCHES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ampc_rt.h"
#include "compiler/driver.h"

enum { WARM = 5 /* batches before the timed ones: some were prepared ahead */, JOB = 2000 };

static const char *const job =
    "data d() { return images(\"%s\", 224, resize=256, scale=[0.08, 1.0], hflip=0.5) }\n"
    "module Net { w = Parameter([]); def forward(x) { return mean(x.to(f32) * w) } }\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=0.1)\n"
    "train x, y in d() with batch=%d { minimize net(x) with opt }\n"
    "eval x, y in d() with batch=%d, drop_last=true { metric m = net(x) }\n";

static void fail(const char *what)
{
  fprintf(stderr, "bench_loader: %s\n", what);
  exit(1);
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Compiles a job in which block 0 trains and block 1 evaluates. */
static const ampc_program *compile(const char *folder, int batch)
{
  static Options options = {.input = "loader.amp", .target = "cpu", .error_limit = 20};
  char text[JOB];
  int n = snprintf(text, sizeof text, job, folder, batch, batch);
  if (n >= JOB) fail("the folder's path is too long");
  Compile *c = compile_create(&options);
  if (!compile_text(c, options.input, text, (size_t)n)) fail("the job does not compile");
  return c->program;
}

int main(int argc, char **argv)
{
  if (argc != 5) fail("usage: bench_loader FOLDER train|eval BATCH BATCHES");
  int batch = atoi(argv[3]), count = atoi(argv[4]);
  const ampc_program *p = compile(argv[1], batch);
  ampc_batches *b;
  uint32_t block = strcmp(argv[2], "eval") == 0;
  if (ampc_data.open(p, block, NULL, 1, &b)) fail(ampc_last_error());
  double begin = 0;
  for (int i = 0; i < WARM + count; i++) {
    const void *bytes;
    int64_t n;
    ampc_data_position at;
    if (i == WARM) begin = now();
    if (ampc_data.next(b, &bytes, &n, &at)) fail(ampc_last_error());
  }
  printf("%.1f\n", (double)batch * count / (now() - begin));
  ampc_data.close(b);
  return 0;
}
