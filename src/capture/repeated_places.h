// SPDX-License-Identifier: Apache-2.0
//
// RepeatedPlaces: where kernels belong whose launch was not seen, because another profiler in the process has CUPTI's only
// subscription (PyTorch's keeps it for good once it has run). Training repeats itself: the kernels of one class come in the
// same order in every step, so each is given the place that its class had at that turn in the last step whose launches were
// seen. Shares of time come out right even where the turns are shifted. Told as a guess. Owner: the KernelLog; under its
// lock.
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

class RepeatedPlaces {
 public:
  // All kernels of a step, in the order in which they ran; their launches were seen.
  void remember(std::span<const Kernel> step);
  // Nothing for a class that the step did not have.
  std::optional<std::uint32_t> next(std::uint32_t class_id);

 private:
  struct Turns {
    std::vector<std::uint32_t> places;
    std::size_t next = 0;
  };

  std::vector<std::pair<std::uint32_t, std::uint32_t>> step_;  // class and place
  std::unordered_map<std::uint32_t, Turns> turns_;             // of the step, made when first asked for
};

}  // namespace joulemap::capture
