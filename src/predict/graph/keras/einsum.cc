// SPDX-License-Identifier: Apache-2.0
//
// Parses equations such as "abc,cde->abde" and "...x,xy->...y".
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

constexpr std::string_view kEllipsis = "...";
// Characters that represent the dimensions of an ellipsis; an equation cannot contain them.
constexpr std::string_view kEllipsisLetters = "0123456789!#$%&*";
static_assert(kEllipsisLetters.size() >= kMaxTensorDimensions);

// Replaces the ellipsis by `count` characters of kEllipsisLetters, numbered from the last dimension because dimensions
// broadcast from there.
std::string expand_ellipsis(std::string letters, std::size_t count) {
  const std::size_t dots_position = letters.find(kEllipsis);
  if (dots_position == std::string::npos) return letters;
  std::string ellipsis_letters;
  for (std::size_t i = count; i > 0; --i) ellipsis_letters += kEllipsisLetters[i - 1];
  return letters.replace(dots_position, kEllipsis.size(), ellipsis_letters);
}

}  // namespace

ParsedEinsum parse_einsum(LayerCall& call, std::string_view equation, const std::vector<Shape>& shapes) {
  ParsedEinsum einsum;
  std::string equation_without_spaces;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(equation_without_spaces),
               [](char letter) { return letter != ' '; });
  const std::size_t arrow_position = equation_without_spaces.find("->");
  if (arrow_position == std::string::npos || equation_without_spaces.size() > 200) {
    call.set_failure(fmt::format("its equation \"{}\" has no result", equation.substr(0, 80)));
    return einsum;
  }
  std::string operands = equation_without_spaces.substr(0, arrow_position) + ",";
  std::size_t max_hidden_dimensions = 0;
  for (std::size_t comma = operands.find(','); comma != std::string::npos; comma = operands.find(',')) {
    std::string letters = operands.substr(0, comma);
    operands.erase(0, comma + 1);
    const std::size_t position = einsum.operand_letters.size();
    if (position < shapes.size()) {
      const std::size_t named_dimension_count =
          letters.find(kEllipsis) == std::string::npos ? letters.size() : letters.size() - kEllipsis.size();
      const std::size_t dimensions = shapes[position].size();
      const std::size_t hidden_dimension_count =
          dimensions > named_dimension_count ? dimensions - named_dimension_count : 0;
      max_hidden_dimensions = std::max(max_hidden_dimensions, hidden_dimension_count);
      letters = expand_ellipsis(std::move(letters), std::min(hidden_dimension_count, kMaxTensorDimensions));
      if (letters.size() != dimensions) {
        call.set_failure(fmt::format("its equation {} is incompatible with {}", equation_without_spaces,
                                     shape_text(shapes[position])));
        return einsum;
      }
      for (std::size_t i = 0; i < dimensions; ++i) {
        const auto letter_entry = std::find_if(einsum.size_by_letter.begin(), einsum.size_by_letter.end(),
                                               [&](const auto& size) { return size.first == letters[i]; });
        if (letter_entry == einsum.size_by_letter.end()) {
          einsum.size_by_letter.emplace_back(letters[i], shapes[position][i]);
        } else {
          letter_entry->second = std::max(letter_entry->second, shapes[position][i]);
        }
      }
    }
    einsum.operand_letters.push_back(std::move(letters));
  }
  einsum.output_letters = expand_ellipsis(equation_without_spaces.substr(arrow_position + 2),
                                          std::min(max_hidden_dimensions, kMaxTensorDimensions));
  return einsum;
}

}  // namespace joulemap::predict::keras
