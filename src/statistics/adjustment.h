// SPDX-License-Identifier: Apache-2.0
//
// Adjusts the p-values of a family of comparisons so that alpha bounds the error rate of the whole family. Equal to R's
// p.adjust within rounding. The result has the order of the input. Comparisons that were not made (NaN) stay NaN and do
// not count as members of the family. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace joulemap::statistics {

enum class Adjustment {
  holm,                // family-wise error rate at most alpha; uniformly more powerful than Bonferroni
  bonferroni,          // family-wise error rate at most alpha: p times the number of comparisons
  benjamini_hochberg,  // false discovery rate at most alpha
  none,
};

std::vector<double> adjusted_p_values(std::span<const double> p_values, Adjustment adjustment);

std::string_view name_of(Adjustment adjustment);  // "holm", "bonferroni", "bh", "none"
std::optional<Adjustment> parse_adjustment(std::string_view name);

}  // namespace joulemap::statistics
