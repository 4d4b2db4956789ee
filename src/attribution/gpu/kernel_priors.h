// SPDX-License-Identifier: Apache-2.0
//
// KernelPriors: what is believed of the kernels of a recording before it is looked at: what the kernel library knows of a
// class, or of its kind (kernel_kinds.h). Frozen into a recording when it is made, or made from a library. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attribution/gpu/library_fit.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

class KernelPriors {
 public:
  KernelPriors() = default;  // nothing is believed
  // As a recording holds them: what is borrowed is among them.
  static KernelPriors frozen(std::vector<KernelPower> powers);
  static KernelPriors of_library(std::vector<KernelPower> library);

  bool empty() const { return powers_.empty(); }
  // One for each class that was seen on that GPU; none at all where nothing is known of such GPUs.
  std::vector<KernelPower> of(const std::string& gpu, std::span<const SeenKernels> seen) const;
  // The same for columns of a regression that stand for several classes each; the last is of idling.
  std::vector<ClassPrior> of_columns(const std::string& gpu, std::span<const std::vector<SeenKernels>> columns) const;

 private:
  KernelPriors(std::vector<KernelPower> powers, bool is_frozen);
  // A library that was named for a recording that does not tell its GPU: that of the library, if it knows one only.
  std::string gpu_for(const std::string& gpu) const;

  std::vector<KernelPower> powers_;  // sorted
  bool is_frozen_ = false;
};

}  // namespace joulemap::attribution
