// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_command.h"

#include <array>
#include <filesystem>
#include <memory>

#include "base/small_file.h"
#include "cli/analyze_command.h"
#include "cli/experiment_folders.h"
#include "cli/experiment_progress_printer.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "experiment/plan/plan_summary.h"
#include "experiment/run/experiment_runner.h"
#include "experiment/run/slurm.h"
#include "report/json/experiment_json.h"
#include "report/text/experiment_text.h"

namespace joulemap::cli {
namespace {

constexpr std::size_t kMaxShownPlanRows = 24;

constexpr std::array<Subcommand, 7> kExperimentSubcommands = {{
    {"plan", "show the rows of a plan, their cost and their statistical power", &add_experiment_plan_command},
    {"run", "run the rows of a plan, one at a time, into a folder", &add_experiment_run_command},
    {"resume", "continue an interrupted run and retry failed rows", &add_experiment_resume_command},
    {"run-row", "run single rows or blocks, called by a launcher", &add_experiment_run_row_command},
    {"status", "show the progress of an experiment", &add_experiment_status_command},
    {"submit", "submit the blocks as Slurm job arrays", &add_experiment_submit_command},
    {"analyze", "compare the cells and check the validity of the data", &add_analyze_command},
}};

struct PlanFlags {
  std::string plan_file;
  std::string experiment_folder;
  bool runs_pilot = false;
  std::size_t shown_row_count = kMaxShownPlanRows;
  bool as_json = false;
};

int print_experiment_plan(const ExperimentPlan& plan, const PlanFlags& flags, const CommandLine& line) {
  const std::string text =
      flags.as_json ? report::experiment_plan_json(plan) + "\n"
                    : report::experiment_plan_text(plan, flags.shown_row_count, style_of_stdout(line.colour));
  const Status write_status = write_to_stream(StandardStream::out, text);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

int preview_experiment_plan(const PlanFlags& flags, const CommandLine& line) {
  std::error_code path_error;  // ignored: opening the plan reports the reason
  const bool is_folder = std::filesystem::is_directory(flags.plan_file, path_error);
  if (!is_folder && flags.experiment_folder.empty() && !flags.runs_pilot) {
    const Result<std::string> toml = read_small_file(flags.plan_file);
    if (!toml) return print_error(toml.error());
    const Result<experiment::ExperimentSpec> spec = experiment::parse_spec(*toml, flags.plan_file);
    if (!spec) return print_error(spec.error());
    const Result<ExperimentPlan> plan = experiment::summarize_plan(*spec);
    return plan ? print_experiment_plan(*plan, flags, line) : print_error(plan.error());
  }
  Result<experiment::ExperimentFolder> folder = open_or_create_experiment(flags.plan_file, flags.experiment_folder);
  if (!folder) return print_error(folder.error());
  if (flags.runs_pilot) {
    ExperimentProgressPrinter progress(folder->spec().factors);
    const Result<experiment::RunOutcome> outcome =
        experiment::run_pilot(*folder, make_runner_options(line), progress.make_progress_callback());
    progress.finish();
    if (!outcome) return print_error(outcome.error());
    if (outcome->failed_count > 0) {
      return print_error({ErrorCode::io, std::to_string(outcome->failed_count) + " pilot rows failed",
                          "see stderr.txt in " + folder->path() + "/pilot"});
    }
  }
  return print_experiment_plan(experiment::summarize_plan(*folder), flags, line);
}

}  // namespace

void add_experiment_plan_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<PlanFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  line.verbs_replaying.push_back(&verb);
  verb.add_option("PLAN", flags->plan_file, "experiment.toml, or an experiment folder")->required();
  verb.add_option("-o,--output", flags->experiment_folder, "create the experiment folder, in which rows can run")
      ->type_name("FOLDER");
  verb.add_flag("--pilot", flags->runs_pilot,
                "first run one extra row of each cell to estimate the cost of the experiment");
  verb.add_option("--top", flags->shown_row_count, "at most N rows; default: 24; 0 shows all")
      ->type_name("N")
      ->check(whole_number_validator());
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.experiment/1)");
  verb.callback([flags, &line] { line.exit_code = preview_experiment_plan(*flags, line); });
}

void add_experiment_status_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<PlanFlags>();
  verb.add_option("FOLDER", flags->plan_file, "experiment folder")->required();
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.experiment/1)");
  verb.callback([flags, &line] {
    const Result<experiment::ExperimentFolder> folder = experiment::ExperimentFolder::open(flags->plan_file);
    if (!folder) {
      line.exit_code = print_error(folder.error());
      return;
    }
    ExperimentPlan plan = experiment::summarize_plan(*folder);
    plan.jobs = experiment::query_slurm_jobs(*folder, plan.diagnostics);
    const Status write_status = write_to_stream(
        StandardStream::out, flags->as_json ? report::experiment_plan_json(plan) + "\n"
                                            : report::experiment_status_text(plan, style_of_stdout(line.colour)));
    line.exit_code = write_status ? kExitSuccess : print_error(write_status.error());
  });
}

void add_experiment_command(CLI::App& verb, CommandLine& line) {
  verb.require_subcommand(1);
  for (const Subcommand& command : kExperimentSubcommands) {
    CLI::App* const subcommand = verb.add_subcommand(std::string(command.name), std::string(command.summary));
    subcommand->fallthrough();  // options of `experiment`, such as --sysroot, may follow the subcommand
    command.add(*subcommand, line);
  }
}

}  // namespace joulemap::cli
