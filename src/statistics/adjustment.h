// SPDX-License-Identifier: Apache-2.0
//
// p-values of a family of comparisons, made greater so that alpha holds for the family: of R's p.adjust, to the last
// bits. Adjusted values stand in the order of the p-values. Comparisons that were not made (NaN) are not of the
// family: they stay NaN and do not count. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace joulemap::statistics {

enum class Adjustment {
  holm,                // family-wise: chance of any false difference at most alpha; never worse than Bonferroni
  bonferroni,          // the same, times the number of comparisons
  benjamini_hochberg,  // of what is called different at most alpha is false on average
  none,
};

std::vector<double> adjusted(std::span<const double> p_values, Adjustment adjustment);

std::string_view name_of(Adjustment adjustment);  // "holm", "bonferroni", "bh", "none"
std::optional<Adjustment> adjustment_of_name(std::string_view name);

}  // namespace joulemap::statistics
