// SPDX-License-Identifier: Apache-2.0
#include "statistics/adjustment.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace joulemap::statistics {

namespace {

// Indices of the comparisons that were made (p is not NaN), by increasing p.
std::vector<std::size_t> sort_family_by_p_value(std::span<const double> p_values) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (!std::isnan(p_values[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  return order;
}

void apply_holm_step_down(std::vector<double>& p_values, std::span<const std::size_t> p_value_order) {
  double running_max = 0;
  for (std::size_t i = 0; i < p_value_order.size(); ++i) {
    double& p = p_values[p_value_order[i]];
    p = running_max = std::max(running_max, std::min(1.0, p * static_cast<double>(p_value_order.size() - i)));
  }
}

void apply_benjamini_hochberg_step_up(std::vector<double>& p_values, std::span<const std::size_t> p_value_order) {
  double running_min = 1;
  for (std::size_t i = p_value_order.size(); i > 0; --i) {
    double& p = p_values[p_value_order[i - 1]];
    p = running_min = std::min(running_min, p * (static_cast<double>(p_value_order.size()) / static_cast<double>(i)));
  }
}

}  // namespace

std::vector<double> adjusted_p_values(std::span<const double> p_values, Adjustment adjustment) {
  std::vector<double> result(p_values.begin(), p_values.end());
  const std::vector<std::size_t> p_value_order = sort_family_by_p_value(p_values);
  switch (adjustment) {
    case Adjustment::holm:
      apply_holm_step_down(result, p_value_order);
      break;
    case Adjustment::bonferroni:
      for (const std::size_t i : p_value_order)
        result[i] = std::min(1.0, result[i] * static_cast<double>(p_value_order.size()));
      break;
    case Adjustment::benjamini_hochberg:
      apply_benjamini_hochberg_step_up(result, p_value_order);
      break;
    case Adjustment::none:
      break;
  }
  return result;
}

std::string_view name_of(Adjustment adjustment) {
  switch (adjustment) {
    case Adjustment::holm:
      return "holm";
    case Adjustment::bonferroni:
      return "bonferroni";
    case Adjustment::benjamini_hochberg:
      return "bh";
    case Adjustment::none:
      return "none";
  }
  return "";
}

std::optional<Adjustment> parse_adjustment(std::string_view name) {
  for (const Adjustment adjustment :
       {Adjustment::holm, Adjustment::bonferroni, Adjustment::benjamini_hochberg, Adjustment::none}) {
    if (name == name_of(adjustment)) return adjustment;
  }
  return std::nullopt;
}

}  // namespace joulemap::statistics
