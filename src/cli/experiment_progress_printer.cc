// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_progress_printer.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.h"
#include "report/text/experiment_text.h"

namespace joulemap::cli {
namespace {

using experiment::RunPhase;
using experiment::RunProgress;

std::string_view phase_activity_text(RunPhase phase) {
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

std::string row_name_of(const RunProgress& progress, const std::vector<ExperimentFactor>& factors) {
  if (!progress.task) return {};
  const std::string levels = report::factor_levels_text(factors, progress.task->levels);
  if (progress.task->row_kind == "warm-up") return fmt::format("warm-up ({})", levels);
  if (progress.task->row_kind == "pilot") {
    return fmt::format("pilot {} of {} ({})", progress.row_position, progress.row_count, levels);
  }
  return fmt::format("row {}, {} of {} ({}, block {})", progress.task->row_number, progress.row_position,
                     progress.row_count, levels, progress.task->block_number);
}

// Ignores errors: a closed stderr must not stop the experiment.
void write_to_stderr(const std::string& text) { static_cast<void>(write_to_stream(StandardStream::error, text)); }

}  // namespace

ExperimentProgressPrinter::ExperimentProgressPrinter(std::vector<ExperimentFactor> factors)
    : factors_(std::move(factors)), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

experiment::ProgressCallback ExperimentProgressPrinter::make_progress_callback() {
  return [this](const RunProgress& progress) { print_progress(progress); };
}

void ExperimentProgressPrinter::redraw_status_line(const std::string& text) {
  replace_status_line(report::shorten_to_columns(text, 100));
  has_status_line_ = true;
}

void ExperimentProgressPrinter::finish() {
  if (has_status_line_) replace_status_line("");
  has_status_line_ = false;
}

void ExperimentProgressPrinter::print_progress(const RunProgress& progress) {
  const std::string name = row_name_of(progress, factors_);
  if (progress.finished_row) {
    finish();
    std::string text = report::row_result_text(name, *progress.finished_row);
    if (progress.remaining_s && *progress.remaining_s > 0 && !is_terminal_) {
      text += fmt::format("; about {} left", report::duration_text(*progress.remaining_s));
    }
    write_to_stderr(text + "\n");
    return;
  }
  const report::ExperimentProgressLine line{name, std::string(phase_activity_text(progress.phase)), progress.elapsed_s,
                                            progress.remaining_s};
  if (is_terminal_) {
    redraw_status_line(report::experiment_progress_text(line));
    return;
  }
  // In a log, prints a line when a phase other than a row begins: preflight, baseline, warm-up.
  const bool is_experiment_row = progress.task && progress.task->row_kind != "warm-up";
  const std::string phase = name + line.activity;
  if (is_experiment_row || phase == last_phase_ || progress.phase == RunPhase::cool_down) return;
  last_phase_ = phase;
  write_to_stderr((name.empty() ? line.activity : fmt::format("{}: {}", name, line.activity)) + "\n");
}

}  // namespace joulemap::cli
