// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/small_file.h"
#include "cli/experiment_command.h"
#include "cli/experiment_folders.h"
#include "cli/experiment_progress_printer.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "experiment/plan/plan_summary.h"
#include "experiment/run/experiment_runner.h"
#include "report/json/experiment_json.h"
#include "report/text/diagnostics_text.h"
#include "report/text/experiment_text.h"

namespace joulemap::cli {
namespace {

namespace fs = std::filesystem;
using experiment::ExperimentFolder;

struct RunFlags {
  std::string plan;
  std::string folder;
  bool retry_failed = false;
  bool force = false;
  bool no_warm_up = false;
  bool json = false;
  std::vector<std::size_t> rows;
  std::vector<std::size_t> blocks;
};

void print_checks(const experiment::RunOutcome& outcome, const experiment::ChecksSpec& spec) {
  Diagnostics run_diagnostics = outcome.diagnostics;
  for (const experiment::CheckOutcome& check : outcome.checks) {
    const bool is_named = std::find(spec.warn.begin(), spec.warn.end(), check.name) != spec.warn.end();
    if (is_named && check.state == experiment::CheckState::warned) {
      run_diagnostics.add({"check_" + check.name, 1, check.message, check.remedy});
    }
  }
  static_cast<void>(write_to(Stream::error, report::diagnostics_text(run_diagnostics)));  // also stored in the folder
}

int run_rows_of(ExperimentFolder& folder, const experiment::RunRequest& request, const RunFlags& flags,
                const CommandLine& line) {
  ExperimentProgressPrinter progress(folder.spec().factors);
  const Result<experiment::RunOutcome> outcome =
      experiment::run_rows(folder, request, runner_options(line), progress.callback());
  progress.finish();
  if (!outcome) return print_error(outcome.error());
  print_checks(*outcome, folder.spec().checks);
  if (const Status read = folder.refresh(); !read) return print_error(read.error());
  const ExperimentPlan plan = experiment::summarize_plan(folder);
  const Status written =
      write_to(Stream::out, flags.json ? report::experiment_plan_json(plan) + "\n"
                                       : report::experiment_status_text(plan, style_of_stdout(line.colour)));
  if (!written) return print_error(written.error());
  if (outcome->stopped) {
    return print_error({ErrorCode::io, "stopped before all rows ran", "joulemap experiment resume " + folder.path()});
  }
  return outcome->failed > 0 ? kExitFailure : kExitSuccess;
}

bool has_begun(const ExperimentFolder& folder) {
  return std::any_of(folder.table().begin(), folder.table().end(),
                     [](const experiment::RunTableRow& row) { return row.state != RowState::todo; });
}

int run_run(const RunFlags& flags, const CommandLine& line) {
  std::error_code closed;  // opening it reports the reason
  const bool exists = fs::is_directory(flags.plan, closed);
  Result<ExperimentFolder> folder = open_or_create_experiment(flags.plan, flags.folder);
  if (!folder) return print_error(folder.error());
  if (exists && has_begun(*folder) && !flags.retry_failed) {
    return print_error({ErrorCode::usage, fmt::format("rows of {} have already run", folder->path()),
                        "joulemap experiment resume " + folder->path()});
  }
  experiment::RunRequest request;
  request.rows = rows_to_run(*folder, exists && flags.retry_failed, false);
  request.retry_failed = flags.retry_failed;
  request.warm_up = !flags.no_warm_up;
  return run_rows_of(*folder, request, flags, line);
}

int run_resume(const RunFlags& flags, const CommandLine& line) {
  Result<ExperimentFolder> folder = ExperimentFolder::open(flags.plan);
  if (!folder) return print_error(folder.error());
  experiment::RunRequest request;
  request.rows = rows_to_run(*folder, true, flags.force);
  request.include_unknown_owners = flags.force;
  request.warm_up = !flags.no_warm_up;
  return run_rows_of(*folder, request, flags, line);
}

int run_run_row(const RunFlags& flags, const CommandLine& line) {
  Result<ExperimentFolder> folder = ExperimentFolder::open(flags.plan);
  if (!folder) return print_error(folder.error());
  if (flags.rows.empty() == flags.blocks.empty()) {
    return print_error(
        {ErrorCode::usage, "run-row needs row numbers or --block", "joulemap experiment run-row FOLDER 3"});
  }
  const std::vector<experiment::RunTableRow>& table = folder->table();
  experiment::RunRequest request;
  for (std::size_t number = 0; number < table.size(); ++number) {
    const bool is_meant =
        std::find(flags.rows.begin(), flags.rows.end(), number) != flags.rows.end() ||
        std::find(flags.blocks.begin(), flags.blocks.end(), table[number].plan.block) != flags.blocks.end();
    if (is_meant && table[number].state != RowState::done) request.rows.push_back(number);
  }
  for (const std::size_t row : flags.rows) {
    if (row >= table.size()) {
      return print_error({ErrorCode::usage,
                          fmt::format("no row {}: rows are numbered from 0 to {}", row, table.size() - 1),
                          "joulemap experiment plan lists the rows"});
    }
  }
  for (const std::size_t block : flags.blocks) {
    if (std::ranges::none_of(table, [block](const auto& row) { return row.plan.block == block; })) {
      return print_error({ErrorCode::usage, fmt::format("no block {} in {}", block, flags.plan),
                          "joulemap experiment plan lists the blocks"});
    }
  }
  request.include_unknown_owners = flags.force;
  request.warm_up = !flags.no_warm_up;
  return run_rows_of(*folder, request, flags, line);
}

void add_shared_flags(CLI::App& verb, RunFlags& flags) {
  verb.add_flag("--no-warm-up", flags.no_warm_up, "skip the warm-up runs before the first row");
  verb.add_flag("--json", flags.json, "print one line of JSON at the end (schema joulemap.experiment/1)");
}

}  // namespace

Result<ExperimentFolder> open_or_create_experiment(const std::string& plan, const std::string& folder) {
  std::error_code closed;  // opening it reports the reason
  if (fs::is_directory(plan, closed)) {
    if (folder.empty()) return ExperimentFolder::open(plan);
    return Error{ErrorCode::usage, fmt::format("{} is already an experiment folder", plan), "remove -o"};
  }
  const Result<std::string> toml = read_small_file(plan);
  if (!toml) return toml.error();
  const Result<experiment::ExperimentSpec> spec = experiment::parse_spec(*toml, plan);
  if (!spec) return spec.error();
  return ExperimentFolder::create(folder.empty() ? spec->name : folder, *toml,
                                  fs::absolute(plan).parent_path().string());
}

experiment::RunnerOptions runner_options(const CommandLine& line) { return {line.root, line.program, line.replay}; }

void add_experiment_run(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<RunFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  verb.add_option("PLAN", flags->plan, "experiment.toml, or a folder that `plan -o` created")->required();
  verb.add_option("-o,--output", flags->folder, "folder to create; default: the name of the experiment")
      ->type_name("FOLDER");
  verb.add_flag("--retry-failed", flags->retry_failed, "run failed rows once more at the end");
  add_shared_flags(verb, *flags);
  verb.callback([flags, &line] { line.exit_code = run_run(*flags, line); });
}

void add_experiment_resume(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<RunFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  verb.add_option("FOLDER", flags->plan, "experiment folder")->required();
  verb.add_flag("--force", flags->force, "also run rows that are marked as running on other machines");
  add_shared_flags(verb, *flags);
  verb.callback([flags, &line] { line.exit_code = run_resume(*flags, line); });
}

void add_experiment_run_row(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<RunFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  verb.add_option("FOLDER", flags->plan, "experiment folder")->required();
  verb.add_option("ROW", flags->rows, "row numbers; rows that are done are skipped")->check(whole_number());
  verb.add_option("--block", flags->blocks, "all rows of block B")->type_name("B")->check(whole_number());
  verb.add_flag("--force", flags->force, "run a row even if it is marked as running on another machine");
  add_shared_flags(verb, *flags);
  verb.callback([flags, &line] { line.exit_code = run_run_row(*flags, line); });
}

}  // namespace joulemap::cli
