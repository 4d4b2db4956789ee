// SPDX-License-Identifier: Apache-2.0
//
// Parses equations such as "abc,cde->abde" and "...x,xy->...y".
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

constexpr std::string_view kDots = "...";
// Characters that represent the dimensions of an ellipsis; an equation cannot contain them.
constexpr std::string_view kHidden = "0123456789!#$%&*";
static_assert(kHidden.size() >= kMaxDimensions);

// Replaces the ellipsis by `count` characters of kHidden, numbered from the last dimension because dimensions broadcast
// from there.
std::string spelled_out(std::string letters, std::size_t count) {
  const std::size_t dots = letters.find(kDots);
  if (dots == std::string::npos) return letters;
  std::string hidden;
  for (std::size_t i = count; i > 0; --i) hidden += kHidden[i - 1];
  return letters.replace(dots, kDots.size(), hidden);
}

}  // namespace

Einsum read_einsum(LayerCall& call, std::string_view equation, const std::vector<Shape>& shapes) {
  Einsum einsum;
  std::string plain;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(plain), [](char letter) { return letter != ' '; });
  const std::size_t arrow = plain.find("->");
  if (arrow == std::string::npos || plain.size() > 200) {
    call.fail(fmt::format("its equation \"{}\" has no result", equation.substr(0, 80)));
    return einsum;
  }
  std::string operands = plain.substr(0, arrow) + ",";
  std::size_t most_hidden = 0;
  for (std::size_t comma = operands.find(','); comma != std::string::npos; comma = operands.find(',')) {
    std::string letters = operands.substr(0, comma);
    operands.erase(0, comma + 1);
    const std::size_t position = einsum.operands.size();
    if (position < shapes.size()) {
      const std::size_t named =
          letters.find(kDots) == std::string::npos ? letters.size() : letters.size() - kDots.size();
      const std::size_t dimensions = shapes[position].size();
      const std::size_t hidden = dimensions > named ? dimensions - named : 0;
      most_hidden = std::max(most_hidden, hidden);
      letters = spelled_out(std::move(letters), std::min(hidden, kMaxDimensions));
      if (letters.size() != dimensions) {
        call.fail(fmt::format("its equation {} is incompatible with {}", plain, text(shapes[position])));
        return einsum;
      }
      for (std::size_t i = 0; i < dimensions; ++i) {
        const auto known = std::find_if(einsum.sizes.begin(), einsum.sizes.end(),
                                        [&](const auto& size) { return size.first == letters[i]; });
        if (known == einsum.sizes.end()) {
          einsum.sizes.emplace_back(letters[i], shapes[position][i]);
        } else {
          known->second = std::max(known->second, shapes[position][i]);
        }
      }
    }
    einsum.operands.push_back(std::move(letters));
  }
  einsum.out = spelled_out(plain.substr(arrow + 2), std::min(most_hidden, kMaxDimensions));
  return einsum;
}

}  // namespace joulemap::predict::keras
