// SPDX-License-Identifier: Apache-2.0
//
// Names that somebody may have meant, for messages about one that is not known. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::predict {

// Letters and digits alone, in lower case: "torch.nn.Conv2d" is "torchnnconv2d".
std::string squeezed(std::string_view name);

// At most so many, the nearest first: those that hold the name or lie within it, then by how many letters have to be
// changed. Each once.
std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> known,
                                            std::size_t most);

}  // namespace joulemap::predict
