// SPDX-License-Identifier: Apache-2.0
//
// KernelPriors: prior powers of the kernels of a recording: the kernel library's entry of each class, or a prior from
// similar classes (kernel_power_hierarchy.h). Either stored in the recording when it was made ("frozen"), or taken from
// a library. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attribution/gpu/library_prior_fit.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

class KernelPriors {
 public:
  KernelPriors() = default;  // no priors
  // As stored in a recording; includes powers from similar classes.
  static KernelPriors make_from_recording(std::vector<KernelPower> powers);
  static KernelPriors make_from_library(std::vector<KernelPower> library);

  bool empty() const { return kernel_powers_.empty(); }
  // One power for each class of `observed_classes`, in that order; empty where the library has no kernel of that GPU
  // model. Omits idle if the library has no entry of it.
  std::vector<KernelPower> find_kernel_powers(const std::string& gpu,
                                              std::span<const ObservedKernels> observed_classes) const;
  // The same for regression columns, which may combine several classes each. The result has one more element, for idle.
  std::vector<KernelClassPrior> find_column_priors(const std::string& gpu,
                                                   std::span<const std::vector<ObservedKernels>> columns) const;

 private:
  KernelPriors(std::vector<KernelPower> powers, bool is_frozen);
  // For a recording without a GPU model: the library's GPU model, if the library has only one.
  std::string resolve_gpu_model(const std::string& gpu) const;

  std::vector<KernelPower> kernel_powers_;  // sorted
  bool is_from_recording_ = false;
};

}  // namespace joulemap::attribution
