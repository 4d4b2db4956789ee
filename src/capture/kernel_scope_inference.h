// SPDX-License-Identifier: Apache-2.0
//
// KernelScopeInference: guesses the scope of kernels whose launch was not seen because another profiler holds CUPTI's
// only subscription (PyTorch's profiler never releases it). Training steps repeat: kernels of one class run in the same
// order in every step. So the n-th kernel of a class gets the scope of the n-th one in the last step with seen
// launches. If the order is shifted, each scope still gets its proportion of the kernels of a class. A diagnostic
// counts the guessed scopes. Owned by the KernelLog, used under its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

class KernelScopeInference {
 public:
  // Stores the kernels of a step, in execution order; their launches were seen.
  void store_step(std::span<const Kernel> step);
  // Returns the scope of the next kernel of this class; nullopt if the stored step has no kernel of the class.
  std::optional<std::uint32_t> next_scope_of_class(std::uint32_t class_id);

 private:
  struct KernelClassScopes {
    std::vector<std::uint32_t> scopes;
    std::size_t next_scope_index = 0;
  };

  std::vector<std::pair<std::uint32_t, std::uint32_t>> stored_step_;  // (class, scope)
  std::unordered_map<std::uint32_t, KernelClassScopes>
      scopes_by_class_;  // built on the first next_scope_of_class() after store_step()
};

}  // namespace joulemap::capture
