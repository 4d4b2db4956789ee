// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/experiment_command.h"
#include "cli/experiment_folders.h"
#include "cli/output.h"
#include "experiment/plan/plan_summary.h"
#include "experiment/run/slurm.h"
#include "report/json/experiment_json.h"

namespace joulemap::cli {
namespace {

struct SubmitFlags {
  std::string folder_path;
  bool as_json = false;
};

// The JSON that `experiment status --json` prints.
std::string experiment_status_json(const experiment::ExperimentFolder& folder) {
  ExperimentPlan plan = experiment::summarize_plan(folder);
  plan.jobs = experiment::query_slurm_jobs(folder, plan.diagnostics);
  return report::experiment_plan_json(plan) + "\n";
}

int submit_experiment(const SubmitFlags& flags, const CommandLine& line) {
  const Result<experiment::ExperimentFolder> folder = open_or_create_experiment(flags.folder_path, "");
  if (!folder) return print_error(folder.error());
  const auto submitted_arrays = experiment::submit_blocks(*folder, make_runner_options(line), line.command_words);
  if (!submitted_arrays) return print_error(submitted_arrays.error());
  std::string text = submitted_arrays->empty() ? "no rows left to run\n" : "";
  for (const experiment::SubmittedSlurmArray& array : *submitted_arrays) {
    text += fmt::format("job {}: {} blocks, starting at block {}\n", array.job_id,
                        array.block_array.block_indices.size(), array.block_array.first_block);
  }
  if (!submitted_arrays->empty())
    text += fmt::format("joulemap experiment status {} shows their progress\n", folder->path());
  const Status write_status =
      write_to_stream(StandardStream::out, flags.as_json ? experiment_status_json(*folder) : text);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_experiment_submit_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<SubmitFlags>();
  verb.footer("Usage: joulemap experiment submit PLAN [-- SBATCH OPTIONS]");
  line.verbs_taking_command.push_back(&verb);
  verb.add_option("PLAN", flags->folder_path,
                  "experiment.toml, or an experiment folder, on a file system that all nodes share")
      ->required();
  verb.add_flag("--json", flags->as_json,
                "the experiment and its jobs as one line of JSON (schema joulemap.experiment/1)");
  verb.callback([flags, &line] { line.exit_code = submit_experiment(*flags, line); });
}

}  // namespace joulemap::cli
