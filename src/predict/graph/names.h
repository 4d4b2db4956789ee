// SPDX-License-Identifier: Apache-2.0
//
// Suggestions of similar names, for messages about an unknown name. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::predict {

// Normalizes a name to lower-case letters and digits: "torch.nn.Conv2d" becomes "torchnnconv2d".
std::string normalized_name(std::string_view name);

// Returns at most `max_name_count` names, the nearest first: those that contain the name or are contained in it, then
// by edit distance. No duplicates.
std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> known_names,
                                            std::size_t max_name_count);

}  // namespace joulemap::predict
