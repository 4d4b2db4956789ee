// SPDX-License-Identifier: Apache-2.0
#include "capture/repeated_places.h"

namespace joulemap::capture {

void RepeatedPlaces::remember(std::span<const Kernel> step) {
  step_.clear();  // keeps its capacity: called for every step
  for (const Kernel& kernel : step) step_.emplace_back(kernel.class_id, kernel.place);
  if (!turns_.empty()) turns_.clear();
}

std::optional<std::uint32_t> RepeatedPlaces::next(std::uint32_t class_id) {
  if (turns_.empty()) {
    for (const auto& [known, place] : step_) turns_[known].places.push_back(place);
  }
  const auto found = turns_.find(class_id);
  if (found == turns_.end()) return std::nullopt;
  Turns& turns = found->second;
  const std::uint32_t place = turns.places[turns.next];
  turns.next = (turns.next + 1) % turns.places.size();
  return place;
}

}  // namespace joulemap::capture
