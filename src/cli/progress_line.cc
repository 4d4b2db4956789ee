// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <utility>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "report/text/progress_text.h"
#include "report/text/text_style.h"

namespace joulemap::cli {
namespace {

constexpr std::int64_t kShowDelay_ns = kNanosecondsPerSecond;
constexpr std::int64_t kRedrawInterval_ns = kNanosecondsPerSecond / 4;
constexpr std::size_t kMaxProgressLineWidth = 79;  // a longer line would wrap, and only its last row would be cleared

}  // namespace

ProgressLine::ProgressLine(std::string activity, const CommandLine& line)
    : activity_(std::move(activity)), is_shown_(!line.quiet && stderr_is_terminal()), start_time_ns_(monotonic_ns()) {}

ProgressLine::~ProgressLine() {
  if (last_drawn_ns_ != 0) replace_status_line("");
}

ProgressCallback ProgressLine::make_progress_callback() {
  if (!is_shown_) return {};
  return [this](double share) { show(share); };
}

void ProgressLine::show(double share) {
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns - start_time_ns_ < kShowDelay_ns || now_ns - last_drawn_ns_ < kRedrawInterval_ns) return;
  last_drawn_ns_ = now_ns;
  const std::string text = report::progress_text(activity_, share, seconds(now_ns - start_time_ns_));
  replace_status_line(report::shorten_to_columns(text, kMaxProgressLineWidth));
}

}  // namespace joulemap::cli
