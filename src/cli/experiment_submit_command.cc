// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/experiment_command.h"
#include "cli/experiment_folders.h"
#include "cli/output.h"
#include "experiment/slurm.h"

namespace joulemap::cli {
namespace {

int run_submit(const std::string& path, const CommandLine& line) {
  const Result<experiment::ExperimentFolder> folder = open_or_create(path, "");
  if (!folder) return fail(folder.error());
  const auto submitted = experiment::submit_blocks(*folder, runner_options(line), line.wrapped);
  if (!submitted) return fail(submitted.error());
  std::string text = submitted->empty() ? "nothing is left to run\n" : "";
  for (const experiment::SubmittedArray& array : *submitted) {
    text += fmt::format("job {}: {} blocks, from block {} on\n", array.job, array.blocks.indices.size(),
                        array.blocks.first);
  }
  if (!submitted->empty()) text += fmt::format("joulemap experiment status {} follows them\n", folder->path());
  const Status written = write_to(Stream::out, text);
  return written ? kDone : fail(written.error());
}

}  // namespace

void add_experiment_submit(CLI::App& verb, CommandLine& line) {
  const auto path = std::make_shared<std::string>();
  verb.footer("Usage: joulemap experiment submit PLAN [-- WORDS FOR SBATCH]");
  verb.add_option("PLAN", *path, "experiment.toml, or the folder of an experiment, on a disk that all nodes share")
      ->required();
  verb.callback([path, &line] { line.exit_code = run_submit(*path, line); });
}

}  // namespace joulemap::cli
