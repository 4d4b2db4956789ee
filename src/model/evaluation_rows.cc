// SPDX-License-Identifier: Apache-2.0
#include "model/evaluation_rows.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace joulemap {
namespace {

bool is_in_mode(const ReportRow& row, std::string_view mode) { return row.path.size() > 1 && row.path.front() == mode; }

// How often the module was called that was called least often without training; none if it is unknown.
std::optional<std::uint64_t> min_inference_call_count(const ReportResult& report) {
  std::optional<std::uint64_t> min_count;
  for (const ReportRow& row : report.rows) {
    const bool is_module = is_in_mode(row, "inference") && row.path[1] == "forward" && row.path.size() == 3;
    if (is_module && row.count) min_count = std::min(min_count.value_or(*row.count), *row.count);
  }
  return min_count;
}

}  // namespace

bool is_inference_part_of_training(const ReportResult& report) {
  return report.evaluation_groups > 0 && 2 * report.evaluation_groups >= report.steps &&
         report.evaluation_steps < 2 * report.evaluation_groups;
}

bool is_inference_evaluation(const ReportResult& report) {
  if (std::ranges::none_of(report.rows, [](const ReportRow& row) { return is_in_mode(row, "train"); })) return false;
  if (report.steps == 0) return true;
  if (report.evaluation_steps == 0 || is_inference_part_of_training(report)) return false;
  // The first calls of a teacher can look like an evaluation, because no backward pass has shown that the program trains.
  const bool is_called_in_every_step = min_inference_call_count(report).value_or(0) >= report.steps;
  return !is_called_in_every_step || 2 * report.evaluation_steps >= report.steps;
}

}  // namespace joulemap
