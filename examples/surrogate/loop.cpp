// The loop of loop.c in C++, with net.hpp.
//   loop_cpp [CHECKPOINT]
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>
#include "net.hpp"

constexpr int N = SURROGATE_STEP_SAMPLES, STEPS = 2000, EVALUATIONS = 20;

struct Batch {
  std::vector<float> x = std::vector<float>(3 * N), y = std::vector<float>(N);
  std::mt19937 random{1};

  void draw()
  {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int i = 0; i < N; i++) {
      float *at = &x[3 * i];
      for (int k = 0; k < 3; k++) at[k] = uniform(random);
      y[i] = std::sin(3 * at[0]) * std::cos(2 * at[1]) + at[2] * at[2];
    }
  }
};

int main(int argc, char **argv)
try {
  Net net("auto", 1);
  Batch batch;
  for (int step = 1; step <= STEPS; step++) {
    batch.draw();
    net.step(batch.x, batch.y);
    if (step % 500 == 0) std::printf("step %d: loss %.5f\n", step, net.metrics().loss);
  }
  for (int i = 0; i < EVALUATIONS; i++) {
    batch.draw();
    net.eval(batch.x, batch.y);
  }
  std::printf("error %.5f\n", net.eval_metrics().error);
  if (argc > 1) net.save(argv[1]);
} catch (const Net::Error &e) {
  std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
  return e.status;
}
