// SPDX-License-Identifier: Apache-2.0
#include "report/text/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace joulemap::report {
namespace {

// Least share of the task from which the remaining time is extrapolated.
constexpr double kMinShareToExtrapolate = 0.02;

std::string rough_duration_text(double time_s) {
  return time_s < 100 ? fmt::format("{:.0f} s", std::ceil(time_s)) : fmt::format("{:.0f} min", std::ceil(time_s / 60));
}

}  // namespace

std::string progress_text(std::string_view task_name, double share, double elapsed_s) {
  const double completed_share = std::clamp(share, 0.0, 1.0);
  std::string text = fmt::format("{}: {:.0f} %", task_name, std::floor(100 * completed_share));
  if (completed_share >= kMinShareToExtrapolate && completed_share < 1)
    text += fmt::format(", about {} left", rough_duration_text(elapsed_s * (1 - completed_share) / completed_share));
  return text;
}

}  // namespace joulemap::report
