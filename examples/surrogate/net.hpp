// A net of ampc as a C++ object: it closes itself, takes spans, and throws what the C functions return.
#pragma once
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include "surrogate.h"

class Net {
 public:
  struct Error : std::runtime_error {
    int status; // an exit status of ampc
    Error(int s) : std::runtime_error(surrogate_error()), status(s) {}
  };

  // Draws the initial weights. `device`: "cpu", "cuda" or "auto".
  explicit Net(const char *device, uint64_t seed)
  {
    ampc_runtime *rt = nullptr;
    check(surrogate_create(device, seed, nullptr, &rt));
    net.reset(rt);
  }

  void step(std::span<const float> x, std::span<const float> y)
  {
    check(surrogate_step(net.get(), samples(x, y), x.data(), y.data()));
  }

  void eval(std::span<const float> x, std::span<const float> y)
  {
    check(surrogate_eval(net.get(), samples(x, y), x.data(), y.data()));
  }

  surrogate_metrics metrics()
  {
    surrogate_metrics out;
    check(surrogate_get_metrics(net.get(), &out));
    return out;
  }

  surrogate_eval_metrics eval_metrics()
  {
    surrogate_eval_metrics out;
    check(surrogate_get_eval_metrics(net.get(), &out));
    return out;
  }

  void save(const std::string &path) { check(surrogate_save(net.get(), path.c_str())); }

 private:
  struct Close {
    void operator()(ampc_runtime *rt) const { surrogate_close(rt); }
  };
  std::unique_ptr<ampc_runtime, Close> net;

  static void check(int status)
  {
    if (status) throw Error(status);
  }

  // The number of samples. Both spans must have as many.
  static int64_t samples(std::span<const float> x, std::span<const float> y)
  {
    if (x.size() != 3 * y.size()) throw std::invalid_argument("x and y have other numbers of samples");
    return static_cast<int64_t>(y.size());
  }
};
