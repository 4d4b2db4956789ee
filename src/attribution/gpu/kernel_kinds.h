// SPDX-License-Identifier: Apache-2.0
//
// KernelKinds: what a class of kernels that nobody measured likely draws, by others of its kind on the same model of GPU.
// Kinds nest: all kernels, their family (products of matrices, convolutions, sums ...), their stem (the name without
// template arguments and numbers), the class. How much each level differs from the one above is estimated from the library
// itself, so that what is borrowed is as wide as kinds spread. A kernel of fewer blocks than a GPU has processors leaves
// the others idle, which is taken into account first: it explains more than names do. Pure.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/gpu/library_fit.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

// "gemm", "convolution", "attention", "normalization", "elementwise", "reduction", "copy", "fill" ... or "other".
std::string_view family_of(const KernelCode& code);
// "void at::native::reduce_kernel<512, 1, ...>(...)" -> "at::native::reduce_kernel"; digits of plain names are left out:
// "sm90_xmma_gemm_f32f32_tilesize128x64x32" -> "sm_xmma_gemm_ff_tilesizexx".
std::string stem_of(const KernelCode& code);

// No knowledge: classes usually differ by so much from their mean (relative standard deviation).
inline constexpr double kUsualDifference = 0.3;

class KernelKinds {
 public:
  // Entries of one GPU. Without any nothing must be asked.
  explicit KernelKinds(std::span<const KernelPower> known);

  bool empty() const { return families_.empty(); }
  ClassPrior prior_of(const SeenKernels& seen) const;

 private:
  // A mean of logarithms of watts, and how unsure it is.
  struct Estimate {
    double mean = 0;
    double variance = 0;
  };
  using Group = std::vector<Estimate>;
  static double spread_within(std::span<const Group> groups, double usual);
  static Estimate mean_of(const Group& members, double between);
  static Estimate pulled(const Estimate& own, const Estimate& above, double between);

  double between_classes_ = 0;  // variances, of one stem
  double between_stems_ = 0;    // of one family
  double between_families_ = 0;
  Estimate all_;
  std::map<std::string, Estimate, std::less<>> families_;
  std::map<std::pair<std::string, std::string>, Estimate> stems_;  // by family and stem
};

}  // namespace joulemap::attribution
