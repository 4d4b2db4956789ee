// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/slurm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/private_files.h"
#include "base/small_file.h"
#include "base/text.h"
#include "experiment/run/child_run.h"
#include "formats/csv.h"

namespace joulemap::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUsualMaxArraySize = 1001;  // default of MaxArraySize, slurm.conf(5)
constexpr std::size_t kMaxOutput_bytes = std::size_t{16} << 20;

std::string slurm_folder(const ExperimentFolder& folder) { return folder.path() + "/slurm"; }

// Returns the output of a Slurm tool.
Result<std::string> run_slurm_tool(const ExperimentFolder& folder, std::vector<std::string> command) {
  if (Status folder_status = make_private_folders(slurm_folder(folder)); !folder_status)
    return std::move(folder_status).error();
  Result<BlockedSignals> signals = BlockedSignals::open();
  if (!signals) return std::move(signals).error();
  ChildCommand run;
  run.output_path = fmt::format("{}/tool-{}.out", slurm_folder(folder), ::getpid());
  run.error_path = fmt::format("{}/tool-{}.err", slurm_folder(folder), ::getpid());
  run.command = std::move(command);
  const Result<ChildResult> end = run_child(*signals, run, {});
  const Result<std::string> output = read_file_start(run.output_path, kMaxOutput_bytes);
  const Result<std::string> errors = read_file_start(run.error_path, kMaxOutput_bytes);
  ::unlink(run.output_path.c_str());
  ::unlink(run.error_path.c_str());
  if (!end) {
    return Error{ErrorCode::unsupported, fmt::format("Slurm is not available: {}", end.error().message),
                 "submit on a machine with sbatch, or let a launcher run joulemap experiment run-row FOLDER --block B"};
  }
  if (end->exit_status.code != 0) {
    return Error{ErrorCode::io, fmt::format("{}: {}", run.command.front(), errors ? trim(*errors) : "failed"), ""};
  }
  return output;
}

std::size_t read_max_slurm_array_size(const ExperimentFolder& folder) {
  const Result<std::string> config = run_slurm_tool(folder, {"scontrol", "show", "config"});
  if (!config) return kUsualMaxArraySize;
  for (const std::string_view line : split(*config, '\n')) {
    if (!line.starts_with("MaxArraySize")) continue;
    const std::size_t sign = line.find('=');
    if (sign == std::string_view::npos) break;
    return std::max<std::size_t>(parse_u64(line.substr(sign + 1)).value_or(kUsualMaxArraySize), 1);
  }
  return kUsualMaxArraySize;
}

std::string quote_for_shell(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string slurm_job_script(const ExperimentFolder& folder, const RunnerOptions& options) {
  std::string root = options.system_root.is_this_machine()
                         ? ""
                         : " --sysroot " + quote_for_shell(fs::absolute(options.system_root.prefix).string());
  return fmt::format(
      "#!/bin/sh\n# Runs one block of the experiment on this node.\n"
      "exec {} experiment run-row {} --block $((JOULEMAP_FIRST_BLOCK + SLURM_ARRAY_TASK_ID)){}\n",
      quote_for_shell(options.joulemap_program), quote_for_shell(folder.path()), root);
}

std::vector<std::size_t> find_blocks_to_run(const ExperimentFolder& folder) {
  std::set<std::size_t> blocks;
  for (const RunTableRow& row : folder.run_table()) {
    if (row.state == ExperimentRowState::todo || row.state == ExperimentRowState::failed)
      blocks.insert(row.planned_row.block_number);
  }
  return {blocks.begin(), blocks.end()};
}

Result<SubmittedSlurmArray> submit_array(const ExperimentFolder& folder, const SlurmBlockArray& blocks,
                                         std::span<const std::string> words) {
  std::vector<std::string> command = {"sbatch",
                                      "--parsable",
                                      "--exclusive",
                                      "--nodes=1",
                                      "--job-name=" + folder.spec().name,
                                      "--chdir=" + folder.working_directory(),
                                      "--array=" + slurm_array_text(blocks.block_indices),
                                      fmt::format("--output={}/%A_%a.txt", slurm_folder(folder)),
                                      fmt::format("--export=ALL,JOULEMAP_FIRST_BLOCK={}", blocks.first_block)};
  command.insert(command.end(), words.begin(), words.end());
  command.push_back(slurm_folder(folder) + "/block.sh");
  const Result<std::string> output = run_slurm_tool(folder, std::move(command));
  if (!output) return output.error();
  // "1234" or "1234;cluster".
  return SubmittedSlurmArray{std::string(trim(split(*output, ';').front())), blocks};
}

std::string submitted_jobs_csv_line(const SubmittedSlurmArray& array) {
  return formats::csv_line({array.job_id, fmt::format("{}", array.block_array.first_block),
                            slurm_array_text(array.block_array.block_indices)});
}

}  // namespace

std::vector<SlurmBlockArray> split_into_arrays(std::span<const std::size_t> blocks, std::size_t max_array_size) {
  std::vector<SlurmBlockArray> arrays;
  for (const std::size_t block : blocks) {
    if (arrays.empty() || block - arrays.back().first_block >= max_array_size) arrays.push_back({block, {}});
    arrays.back().block_indices.push_back(block - arrays.back().first_block);
  }
  return arrays;
}

std::string slurm_array_text(std::span<const std::size_t> indices) {
  std::string text;
  for (std::size_t begin = 0; begin < indices.size();) {
    std::size_t end = begin + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", indices[begin]);
    if (end - begin > 1) text += fmt::format("-{}", indices[end - 1]);
    begin = end;
  }
  return text;
}

Result<std::vector<SubmittedSlurmArray>> submit_blocks(const ExperimentFolder& folder, const RunnerOptions& options,
                                                       std::span<const std::string> words) {
  // Checked first, so that a machine without Slurm fails before anything is written.
  if (const Result<std::string> version = run_slurm_tool(folder, {"sbatch", "--version"}); !version)
    return version.error();
  if (Status write_status =
          replace_file_nofollow(slurm_folder(folder) + "/block.sh", slurm_job_script(folder, options));
      !write_status) {
    return std::move(write_status).error();
  }
  const std::string jobs_path = slurm_folder(folder) + "/jobs.csv";
  std::vector<SubmittedSlurmArray> submitted_arrays;
  for (const SlurmBlockArray& blocks :
       split_into_arrays(find_blocks_to_run(folder), read_max_slurm_array_size(folder))) {
    Result<SubmittedSlurmArray> array = submit_array(folder, blocks, words);
    if (!array) return std::move(array).error();
    const Result<std::string> previous_jobs_csv = read_small_file(jobs_path);
    const Status append_status = replace_file_nofollow(
        jobs_path, (previous_jobs_csv ? *previous_jobs_csv : std::string()) + submitted_jobs_csv_line(*array));
    if (!append_status) return append_status.error();
    submitted_arrays.push_back(std::move(*array));
  }
  return submitted_arrays;
}

std::vector<ExperimentJob> query_slurm_jobs(const ExperimentFolder& folder, Diagnostics& diagnostics) {
  std::vector<ExperimentJob> jobs;
  const Result<std::string> jobs_csv = read_small_file(slurm_folder(folder) + "/jobs.csv");
  if (!jobs_csv) return jobs;
  std::map<std::string, std::size_t, std::less<>> first_block_by_job;
  std::string job_ids;
  for (const formats::CsvRecord& record : formats::read_csv(*jobs_csv)) {
    if (record.size() < 2) continue;
    first_block_by_job[record[0]] = parse_u64(record[1]).value_or(0);
    job_ids += (job_ids.empty() ? "" : ",") + record[0];
  }
  Result<std::string> output =
      run_slurm_tool(folder, {"sacct", "-nPX", "--array", "-j", job_ids, "-o", "JobID,State,NodeList"});
  // On clusters without accounting sacct fails. squeue lists only unfinished jobs, and fails once all jobs have ended.
  if (!output) output = run_slurm_tool(folder, {"squeue", "-h", "-r", "-j", job_ids, "-o", "%i|%T|%N"});
  if (!output) {
    if (output.error().code == ErrorCode::unsupported) {
      diagnostics.add({"jobs_unknown", 1, output.error().message, output.error().remedy});
    }
    return jobs;
  }
  for (const std::string_view line : split(*output, '\n')) {
    const std::vector<std::string_view> fields = split(line, '|');
    if (fields.size() < 3) continue;
    ExperimentJob job{std::string(fields[0]), std::string(fields[1]), std::string(fields[2]), ""};
    const std::size_t underscore_position = job.id.find('_');
    const auto first_block = first_block_by_job.find(job.id.substr(0, underscore_position));
    const auto index = underscore_position == std::string::npos
                           ? std::nullopt
                           : parse_u64(std::string_view(job.id).substr(underscore_position + 1));
    if (first_block != first_block_by_job.end() && index) job.blocks = fmt::format("{}", first_block->second + *index);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace joulemap::experiment
