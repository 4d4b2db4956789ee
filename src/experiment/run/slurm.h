// SPDX-License-Identifier: Apache-2.0
//
// Blocks of an experiment as job arrays of Slurm: one task runs all rows of one block, alone on one node, so that what is
// compared was measured on the same machine. Arrays are cut where they would be larger than MaxArraySize. Which jobs were
// submitted is kept in slurm/jobs.csv of the folder. Speaks to sbatch, scontrol, squeue and sacct as a user would. Main
// thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/run_session.h"
#include "model/experiment_plan.h"

namespace joulemap::experiment {

// Tasks of one array: block = first + index.
struct BlockArray {
  std::size_t first = 0;
  std::vector<std::size_t> indices;
};

// `blocks` in ascending order; no index reaches `most`.
std::vector<BlockArray> arrays_of(std::span<const std::size_t> blocks, std::size_t most);
// "0-4,7": as --array takes it.
std::string array_text(std::span<const std::size_t> indices);

struct SubmittedArray {
  std::string job;
  BlockArray blocks;
};

// Every block with rows that are not done. `words` go to sbatch as they are: "--partition=gpu". Without Slurm: unsupported.
Result<std::vector<SubmittedArray>> submit_blocks(const ExperimentFolder& folder, const RunnerOptions& options,
                                                  std::span<const std::string> words);

// What the cluster says of the jobs that were submitted; nothing where none were.
std::vector<ExperimentJob> followed_jobs(const ExperimentFolder& folder, Diagnostics& diagnostics);

}  // namespace joulemap::experiment
