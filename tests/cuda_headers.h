/* For cuda_headers.sh, compiled as C++ and never run. Checks that the functions of driver.def,
 * blas.def, cudnn.def, nccl.def and nvrtc.def are those of NVIDIA's headers. Parameters match if
 * they are passed in the same way: numbers and enumerations of the same size, or pointers to the
 * same type or to an incomplete one. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <cuda.h>
#include <nvrtc.h>
#include <cublasLt.h>
#ifdef HAS_CUDNN
#  include <cudnn.h>
#endif
#ifdef HAS_NCCL
#  include <nccl.h>
#endif

namespace ours
{
#include "runtime/cuda/cudnn_api.h"
#include "runtime/cuda/nccl_api.h"
#include "compiler/nvrtc/nvrtc_api.h"
} // namespace ours

template <typename T, typename = void> struct is_complete : std::false_type {
};
template <typename T> struct is_complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {
};

template <typename A, typename B> constexpr bool same();

template <typename A, typename B> constexpr bool same_target()
{
  using X = std::remove_const_t<A>;
  using Y = std::remove_const_t<B>;
  if constexpr (std::is_const_v<A> != std::is_const_v<B>)
    return false;
  else if constexpr (std::is_void_v<X> || std::is_void_v<Y>)
    return std::is_same_v<X, Y>;
  else if constexpr (!is_complete<X>::value || !is_complete<Y>::value)
    return std::is_class_v<X> && std::is_class_v<Y>;
  else
    return same<X, Y>();
}

template <typename A, typename B> constexpr bool same()
{
  if constexpr (std::is_void_v<A> || std::is_void_v<B>)
    return std::is_same_v<A, B>;
  else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>)
    return same_target<std::remove_pointer_t<A>, std::remove_pointer_t<B>>();
  else if constexpr (std::is_class_v<A> && std::is_class_v<B>)
    return sizeof(A) == sizeof(B) && alignof(A) == alignof(B);
  else
    return !std::is_pointer_v<A> && !std::is_pointer_v<B> && !std::is_class_v<A> &&
           !std::is_class_v<B> && std::is_floating_point_v<A> == std::is_floating_point_v<B> &&
           sizeof(A) == sizeof(B);
}

template <typename A, typename B> struct same_function : std::false_type {
};
template <typename R, typename... P, typename Q, typename... O>
struct same_function<R (*)(P...), Q (*)(O...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(P) != sizeof...(O))
      return false;
    else
      return same<R, Q>() && (same<P, O>() && ...);
  }();
};

#define SAME_FUNCTION(table, name)                                                                 \
  static_assert(same_function<decltype(&::name), decltype(ours::table::name)>::value, #name);
#define CUDA_API(result, name, parameters) SAME_FUNCTION(CudaApi, name)
#include "runtime/cuda/driver.def"
#define CUDA_API(result, name, parameters) SAME_FUNCTION(CudaApi, name)
#include "runtime/cuda/blas.def"
#define CUDA_API(result, name, parameters) SAME_FUNCTION(NvrtcApi, name)
#include "compiler/nvrtc/nvrtc.def"
#ifdef HAS_CUDNN
#  define CUDA_API(result, name, parameters) SAME_FUNCTION(DnnApi, name)
#  include "runtime/cuda/cudnn.def"
#endif
#ifdef HAS_NCCL
#  define CUDA_API(result, name, parameters) SAME_FUNCTION(NcclApi, name)
#  include "runtime/cuda/nccl.def"
/* The first version's configuration is the beginning of this version's. */
#  define SAME_FIELD(name)                                                                         \
    static_assert(offsetof(ours::NcclFirstConfig, name) == offsetof(ncclConfig_t, name));
SAME_FIELD(size)
SAME_FIELD(magic)
SAME_FIELD(version)
SAME_FIELD(blocking)
constexpr ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
static_assert(initial.magic == (unsigned)ours::NCCL_API_MAGIC_NUMBER);
static_assert((int)ours::NCCL_CONFIG_VERSION == NCCL_VERSION(2, 14, 0));
static_assert(offsetof(ours::NcclFirstConfig, padding) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(sizeof(ours::NcclFirstConfig) <= offsetof(ncclConfig_t, minCTAs));
#endif

static_assert(offsetof(ours::LtHeuristic, workspace) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(ours::LtHeuristic, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));
