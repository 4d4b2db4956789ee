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
  std::string plan_file;
  std::string experiment_folder;
  bool retries_failed_rows = false;
  bool includes_rows_of_other_machines = false;
  bool skips_warm_up = false;
  bool as_json = false;
  std::vector<std::size_t> row_numbers;
  std::vector<std::size_t> block_numbers;
};

void print_machine_checks(const experiment::RunOutcome& outcome, const experiment::ChecksSpec& spec) {
  Diagnostics run_diagnostics = outcome.diagnostics;
  for (const experiment::CheckOutcome& check : outcome.checks) {
    const bool is_warning_check = std::find(spec.warning_checks.begin(), spec.warning_checks.end(), check.check_name) !=
                                  spec.warning_checks.end();
    if (is_warning_check && check.state == experiment::CheckState::warned) {
      run_diagnostics.add({"check_" + check.check_name, 1, check.message, check.remedy});
    }
  }
  static_cast<void>(
      write_to_stream(StandardStream::error, report::diagnostics_text(run_diagnostics)));  // also stored in the folder
}

int run_requested_rows(ExperimentFolder& folder, const experiment::RunRequest& request, const RunFlags& flags,
                       const CommandLine& line) {
  ExperimentProgressPrinter progress(folder.spec().factors);
  const Result<experiment::RunOutcome> outcome =
      experiment::run_rows(folder, request, make_runner_options(line), progress.make_progress_callback());
  progress.finish();
  if (!outcome) return print_error(outcome.error());
  print_machine_checks(*outcome, folder.spec().checks);
  if (const Status reload_status = folder.reload_run_table(); !reload_status) return print_error(reload_status.error());
  const ExperimentPlan plan = experiment::summarize_plan(folder);
  const Status write_status = write_to_stream(
      StandardStream::out, flags.as_json ? report::experiment_plan_json(plan) + "\n"
                                         : report::experiment_status_text(plan, style_of_stdout(line.colour)));
  if (!write_status) return print_error(write_status.error());
  if (outcome->was_stopped) {
    return print_error({ErrorCode::io, "stopped before all rows ran", "joulemap experiment resume " + folder.path()});
  }
  return outcome->failed_count > 0 ? kExitFailure : kExitSuccess;
}

bool has_begun_rows(const ExperimentFolder& folder) {
  return std::any_of(folder.run_table().begin(), folder.run_table().end(),
                     [](const experiment::RunTableRow& row) { return row.state != ExperimentRowState::todo; });
}

int run_experiment(const RunFlags& flags, const CommandLine& line) {
  std::error_code path_error;  // opening it reports the reason
  const bool exists = fs::is_directory(flags.plan_file, path_error);
  Result<ExperimentFolder> folder = open_or_create_experiment(flags.plan_file, flags.experiment_folder);
  if (!folder) return print_error(folder.error());
  if (exists && has_begun_rows(*folder) && !flags.retries_failed_rows) {
    return print_error({ErrorCode::usage, fmt::format("rows of {} have already run", folder->path()),
                        "joulemap experiment resume " + folder->path()});
  }
  experiment::RunRequest request;
  request.row_numbers = list_rows_to_run(*folder, exists && flags.retries_failed_rows, false);
  request.retry_failed = flags.retries_failed_rows;
  request.runs_warm_up = !flags.skips_warm_up;
  return run_requested_rows(*folder, request, flags, line);
}

int resume_experiment(const RunFlags& flags, const CommandLine& line) {
  Result<ExperimentFolder> folder = ExperimentFolder::open(flags.plan_file);
  if (!folder) return print_error(folder.error());
  experiment::RunRequest request;
  request.row_numbers = list_rows_to_run(*folder, true, flags.includes_rows_of_other_machines);
  request.include_unknown_owners = flags.includes_rows_of_other_machines;
  request.runs_warm_up = !flags.skips_warm_up;
  return run_requested_rows(*folder, request, flags, line);
}

int run_single_row(const RunFlags& flags, const CommandLine& line) {
  Result<ExperimentFolder> folder = ExperimentFolder::open(flags.plan_file);
  if (!folder) return print_error(folder.error());
  if (flags.row_numbers.empty() == flags.block_numbers.empty()) {
    return print_error(
        {ErrorCode::usage, "run-row needs row numbers or --block", "joulemap experiment run-row FOLDER 3"});
  }
  const std::vector<experiment::RunTableRow>& table = folder->run_table();
  experiment::RunRequest request;
  for (std::size_t number = 0; number < table.size(); ++number) {
    const bool is_requested_row =
        std::find(flags.row_numbers.begin(), flags.row_numbers.end(), number) != flags.row_numbers.end() ||
        std::find(flags.block_numbers.begin(), flags.block_numbers.end(), table[number].planned_row.block_number) !=
            flags.block_numbers.end();
    if (is_requested_row && table[number].state != ExperimentRowState::done) request.row_numbers.push_back(number);
  }
  for (const std::size_t row : flags.row_numbers) {
    if (row >= table.size()) {
      return print_error({ErrorCode::usage,
                          fmt::format("no row {}: rows are numbered from 0 to {}", row, table.size() - 1),
                          "joulemap experiment plan lists the rows"});
    }
  }
  for (const std::size_t block : flags.block_numbers) {
    if (std::ranges::none_of(table, [block](const auto& row) { return row.planned_row.block_number == block; })) {
      return print_error({ErrorCode::usage, fmt::format("no block {} in {}", block, flags.plan_file),
                          "joulemap experiment plan lists the blocks"});
    }
  }
  request.include_unknown_owners = flags.includes_rows_of_other_machines;
  request.runs_warm_up = !flags.skips_warm_up;
  return run_requested_rows(*folder, request, flags, line);
}

void add_shared_run_flags(CLI::App& verb, RunFlags& flags) {
  verb.add_flag("--no-warm-up", flags.skips_warm_up, "skip the warm-up runs before the first row");
  verb.add_flag("--json", flags.as_json, "print one line of JSON at the end (schema joulemap.experiment/1)");
}

}  // namespace

Result<ExperimentFolder> open_or_create_experiment(const std::string& plan, const std::string& folder) {
  std::error_code path_error;  // opening it reports the reason
  if (fs::is_directory(plan, path_error)) {
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

experiment::RunnerOptions make_runner_options(const CommandLine& line) {
  return {line.system_root, line.program_path, line.replay_option};
}

void add_experiment_run_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<RunFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  line.verbs_replaying.push_back(&verb);
  verb.add_option("PLAN", flags->plan_file, "experiment.toml, or a folder that `plan -o` created")->required();
  verb.add_option("-o,--output", flags->experiment_folder, "folder to create; default: the name of the experiment")
      ->type_name("FOLDER");
  verb.add_flag("--retry-failed", flags->retries_failed_rows, "run failed rows once more at the end");
  add_shared_run_flags(verb, *flags);
  verb.callback([flags, &line] { line.exit_code = run_experiment(*flags, line); });
}

void add_experiment_resume_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<RunFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  line.verbs_replaying.push_back(&verb);
  verb.add_option("FOLDER", flags->plan_file, "experiment folder")->required();
  verb.add_flag("--force", flags->includes_rows_of_other_machines,
                "also run rows that are marked as running on other machines");
  add_shared_run_flags(verb, *flags);
  verb.callback([flags, &line] { line.exit_code = resume_experiment(*flags, line); });
}

void add_experiment_run_row_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<RunFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  line.verbs_replaying.push_back(&verb);
  verb.add_option("FOLDER", flags->plan_file, "experiment folder")->required();
  verb.add_option("ROW", flags->row_numbers, "row numbers; rows that are done are skipped")
      ->check(whole_number_validator());
  verb.add_option("--block", flags->block_numbers, "all rows of block B")
      ->type_name("B")
      ->check(whole_number_validator());
  verb.add_flag("--force", flags->includes_rows_of_other_machines,
                "run a row even if it is marked as running on another machine");
  add_shared_run_flags(verb, *flags);
  verb.callback([flags, &line] { line.exit_code = run_single_row(*flags, line); });
}

}  // namespace joulemap::cli
