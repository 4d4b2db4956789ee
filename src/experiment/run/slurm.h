// SPDX-License-Identifier: Apache-2.0
//
// Submits the blocks of an experiment as Slurm job arrays. One task runs all rows of one block, alone on one node, so
// that compared rows come from the same machine. Arrays are split at MaxArraySize. slurm/jobs.csv of the folder lists
// the submitted jobs. Calls sbatch, scontrol, squeue and sacct as subprocesses. Main thread.
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

// One job array: the task with array index i runs block first + i.
struct SlurmBlockArray {
  std::size_t first_block = 0;
  std::vector<std::size_t> block_indices;
};

// Splits blocks, in ascending order, into arrays whose indices are all below `max_array_size`.
std::vector<SlurmBlockArray> split_into_arrays(std::span<const std::size_t> blocks, std::size_t max_array_size);
// "0-4,7": the syntax of --array.
std::string slurm_array_text(std::span<const std::size_t> indices);

struct SubmittedSlurmArray {
  std::string job_id;
  SlurmBlockArray block_array;
};

// Submits every block with rows that are not done. `words` are passed to sbatch: "--partition=gpu". Fails with
// unsupported on a machine without Slurm.
Result<std::vector<SubmittedSlurmArray>> submit_blocks(const ExperimentFolder& folder, const RunnerOptions& options,
                                                       std::span<const std::string> words);

// State of the submitted jobs from the cluster; empty if none were submitted.
std::vector<ExperimentJob> query_slurm_jobs(const ExperimentFolder& folder, Diagnostics& diagnostics);

}  // namespace joulemap::experiment
