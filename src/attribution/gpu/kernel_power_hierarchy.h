// SPDX-License-Identifier: Apache-2.0
//
// KernelPowerHierarchy: prior power of a kernel class that was never measured, from similar classes on the same GPU
// model. Groups nest: all kernels, their family (matrix products, convolutions, reductions ...), their stem (the name
// without template arguments and numbers), the class. The variance at each level is estimated from the library itself,
// so the spread of a prior from similar classes matches the spread within their group. A kernel with fewer blocks than
// the GPU has multiprocessors leaves the rest idle; the model corrects for that first, because it explains more of the
// variance than names do. Pure.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/gpu/library_prior_fit.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

// "gemm", "convolution", "attention", "normalization", "elementwise", "reduction", "copy", "fill" ... or "other".
std::string_view kernel_family(const KernelPowerKey& kernel_key);
// "void at::native::reduce_kernel<512, 1, ...>(...)" -> "at::native::reduce_kernel". Digits are dropped:
// "sm90_xmma_gemm_f32f32_tilesize128x64x32" -> "sm_xmma_gemm_ff_tilesizexx".
std::string kernel_name_stem(const KernelPowerKey& kernel_key);

// Relative standard deviation of class powers about their mean where nothing is known.
inline constexpr double kDefaultClassPowerRelativeSd = 0.3;

class KernelPowerHierarchy {
 public:
  // Library entries of one GPU model. If empty() is true, predict_power() must not be called.
  explicit KernelPowerHierarchy(std::span<const KernelPower> library_powers);

  bool empty() const { return family_log_powers_.empty(); }
  KernelClassPrior predict_power(const ObservedKernels& observed_kernels) const;

 private:
  // Mean of log watts, and the variance of that mean.
  struct Estimate {
    double mean = 0;
    double variance = 0;
  };
  using SiblingEstimates = std::vector<Estimate>;
  static double estimate_between_variance(std::span<const SiblingEstimates> groups, double prior_sd);
  static Estimate estimate_group_mean(const SiblingEstimates& members, double between_variance);
  static Estimate shrink_to_parent(const Estimate& child_estimate, const Estimate& parent, double between_variance);

  double class_variance_ = 0;  // variance between classes of a stem
  double stem_variance_ = 0;   // variance between stems of a family
  double family_variance_ = 0;
  Estimate overall_log_power_;
  std::map<std::string, Estimate, std::less<>> family_log_powers_;
  std::map<std::pair<std::string, std::string>, Estimate> stem_log_powers_;  // by family and stem
};

}  // namespace joulemap::attribution
