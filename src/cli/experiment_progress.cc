// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.h"
#include "report/text/experiment_text.h"

namespace joulemap::cli {
namespace {

using experiment::RunPhase;
using experiment::RunProgress;

std::string_view doing(RunPhase phase) {
  switch (phase) {
    case RunPhase::preflight:
      return "preflight";
    case RunPhase::baseline:
      return "idle baseline";
    case RunPhase::warm_up:
      return "running";
    case RunPhase::cool_down:
      return "cooling down";
    case RunPhase::row:
      return "running";
  }
  return "";
}

std::string name_of(const RunProgress& progress, const std::vector<ExperimentFactor>& factors) {
  if (!progress.task) return {};
  const std::string levels = report::levels_text(factors, progress.task->levels);
  if (progress.task->kind == "warm-up") return fmt::format("warm-up ({})", levels);
  if (progress.task->kind == "pilot") {
    return fmt::format("pilot {} of {} ({})", progress.position, progress.total, levels);
  }
  return fmt::format("row {}, {} of {} ({}, block {})", progress.task->number, progress.position, progress.total,
                     levels, progress.task->block);
}

// Ignores a closed stderr: the rows matter more.
void write_error(const std::string& text) { static_cast<void>(write_to(Stream::error, text)); }

}  // namespace

ExperimentProgress::ExperimentProgress(std::vector<ExperimentFactor> factors)
    : factors_(std::move(factors)), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

experiment::OnProgress ExperimentProgress::callback() {
  return [this](const RunProgress& progress) { tell(progress); };
}

void ExperimentProgress::renew(const std::string& text) {
  write_error("\r\x1b[K" + report::shortened(text, 100));
  has_line_ = true;
}

void ExperimentProgress::finish() {
  if (has_line_) write_error("\r\x1b[K");
  has_line_ = false;
}

void ExperimentProgress::tell(const RunProgress& progress) {
  const std::string name = name_of(progress, factors_);
  if (progress.finished) {
    finish();
    std::string text = report::row_end_text(name, *progress.finished);
    if (progress.left_s && *progress.left_s > 0 && !is_terminal_) {
      text += fmt::format("; about {} left", report::duration_text(*progress.left_s));
    }
    write_error(text + "\n");
    return;
  }
  const report::ProgressLine line{name, std::string(doing(progress.phase)), progress.elapsed_s, progress.left_s};
  if (is_terminal_) {
    renew(report::progress_text(line));
    return;
  }
  // Logs phases that take long and are not rows.
  const bool is_row = progress.task && progress.task->kind != "warm-up";
  const std::string phase = name + line.doing;
  if (is_row || phase == last_phase_ || progress.phase == RunPhase::cool_down) return;
  last_phase_ = phase;
  write_error((name.empty() ? line.doing : fmt::format("{}: {}", name, line.doing)) + "\n");
}

}  // namespace joulemap::cli
