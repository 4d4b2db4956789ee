// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/experiment_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/private_files.h"
#include "base/small_file.h"
#include "base/text.h"
#include "experiment/run/attempt_owner.h"
#include "formats/document.h"
#include "formats/json_writer.h"

namespace joulemap::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTable_bytes = std::size_t{1} << 30;
constexpr std::size_t kMaxRow_bytes = std::size_t{64} << 20;
constexpr std::chrono::minutes kMaxTableLockWait{
    10};  // longest wait for the lock, which each runner holds milliseconds
constexpr std::string_view kAttemptFolderPrefix = "attempt-";

// Lock held by those who change the table, from reading it until it is replaced. Reading alone needs no lock.
Result<FileLock> lock_table(const std::string& folder) {
  return FileLock::acquire(folder + "/run_table.lock", LockScope::shared, kMaxTableLockWait);
}

// Content of plan.json: the working directory of commands and the time of planning, which experiment.toml lacks.
std::string plan_json(const ExperimentSpec& spec, const std::string& directory) {
  formats::JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.plan/1")
      .member("directory", directory)
      .member("seed", spec.seed)
      .member("made_unix_ns", unix_ns())
      .member("version", JOULEMAP_VERSION)
      .end_object();
  return std::move(json).text() + "\n";
}

Status make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kPrivateFolderMode) == 0) return Done{};
  Error error = system_error("create the folder", path, errno);
  if (errno == EEXIST) error.remedy = "choose another name, or run joulemap experiment resume " + path;
  return error;
}

// Attempt numbers of a row in ascending order; empty if the folder does not exist.
std::vector<std::uint32_t> list_attempts(const std::string& row_path) {
  std::vector<std::uint32_t> attempts;
  const Result<std::vector<std::string>> names = list_directory(row_path);
  if (!names) return attempts;
  for (const std::string& name : *names) {
    if (!name.starts_with(kAttemptFolderPrefix)) continue;
    if (const auto number = parse_u64(std::string_view(name).substr(kAttemptFolderPrefix.size()))) {
      attempts.push_back(static_cast<std::uint32_t>(*number));
    }
  }
  return attempts;
}

std::string attempt_path(const std::string& row_path, std::uint32_t attempt) {
  return fmt::format("{}/{}{}", row_path, kAttemptFolderPrefix, attempt);
}

Result<ExperimentRow> read_attempt(const std::string& row_path, std::uint32_t attempt, const ExperimentData& header) {
  const std::string path = attempt_path(row_path, attempt) + "/row.json";
  const Result<std::string> text = read_file_start(path, kMaxRow_bytes);
  if (!text) return text.error();
  return parse_row_json(*text, path, header);
}

// Updates a row, whose table entry may be stale, from the attempts on disk.
void reconcile_row_state(RunTableRow& row, const std::string& row_path, const ExperimentData& header) {
  const std::vector<std::uint32_t> attempts = list_attempts(row_path);
  if (attempts.empty()) {
    row.state = ExperimentRowState::todo;
    row.attempt_count = 0;
    return;
  }
  const bool is_settled = row.state == ExperimentRowState::done || row.state == ExperimentRowState::failed;
  if (is_settled && row.attempt_count == attempts.back()) return;
  row.attempt_count = attempts.back();
  const Result<ExperimentRow> result = read_attempt(row_path, attempts.back(), header);
  if (result) {
    row.state = result->state;
  } else {
    const bool is_owner_gone =
        read_attempt_owner_state(attempt_path(row_path, attempts.back())) == AttemptOwnerState::exited;
    row.state = is_owner_gone ? ExperimentRowState::failed : ExperimentRowState::running;
  }
}

}  // namespace

Result<ExperimentFolder> ExperimentFolder::create(const std::string& folder_path, std::string_view toml,
                                                  const std::string& directory) {
  Result<ExperimentSpec> spec = parse_spec(toml, "experiment.toml");
  if (!spec) return std::move(spec).error();
  const Result<std::vector<PlannedRow>> rows = plan_rows(*spec);
  if (!rows) return rows.error();
  const std::string path = fs::absolute(folder_path).lexically_normal().string();
  if (Status folder_status = make_directory(path); !folder_status) return std::move(folder_status).error();
  const fs::path command_directory = fs::absolute(directory) / spec->working_directory;
  ExperimentFolder folder(path, std::move(*spec), command_directory.lexically_normal().string());
  for (const PlannedRow& row : *rows) folder.run_table_.push_back({row});
  for (const Status& setup_status :
       {make_directory(path + "/rows"), replace_file_nofollow(path + "/experiment.toml", toml),
        replace_file_nofollow(path + "/plan.json", plan_json(folder.spec_, folder.working_directory_)),
        folder.write_table()}) {
    if (!setup_status) return setup_status.error();
  }
  return folder;
}

Result<ExperimentFolder> ExperimentFolder::open(const std::string& folder_path) {
  const std::string path = fs::absolute(folder_path).lexically_normal().string();
  const Result<std::string> toml = read_small_file(path + "/experiment.toml");
  if (!toml) {
    Error error = Error(toml.error()).with_context(path + " is not an experiment folder");
    error.remedy = "create one: joulemap experiment run experiment.toml";
    return error;
  }
  Result<ExperimentSpec> spec = parse_spec(*toml, path + "/experiment.toml");
  if (!spec) return std::move(spec).error();
  std::string directory = ".";
  if (const Result<std::string> text = read_small_file(path + "/plan.json")) {
    const Result<formats::DocumentValue> plan = formats::read_json(*text, path + "/plan.json");
    if (!plan) return plan.error();
    directory = plan->text_or_empty("directory");
    spec->seed = static_cast<std::uint64_t>(plan->integer("seed").value_or(static_cast<std::int64_t>(spec->seed)));
  }
  ExperimentFolder folder(path, std::move(*spec), std::move(directory));
  if (Status read_status = folder.reload_run_table(); !read_status) return std::move(read_status).error();
  return folder;
}

Status ExperimentFolder::reload_run_table() {
  if (Status read_status = read_table(); !read_status) return read_status;
  const ExperimentData names = make_data_without_rows();
  for (std::size_t number = 0; number < run_table_.size(); ++number) {
    reconcile_row_state(run_table_[number], row_path("rows", number), names);
  }
  return Done{};
}

ExperimentData ExperimentFolder::make_data_without_rows() const {
  ExperimentData data;
  data.name = spec_.name;
  data.factors = spec_.factors;
  for (const MetricSpec& metric : spec_.metrics) data.metrics.push_back(metric.metric);
  data.is_blocked = is_blocked(spec_.row_order);
  data.seed = spec_.seed;
  data.alpha = spec_.significance_level;
  data.diagnostics = spec_.notes;
  return data;
}

std::optional<ExperimentRow> ExperimentFolder::read_last_result(std::string_view kind, std::size_t number,
                                                                Diagnostics& diagnostics) const {
  const ExperimentData names = make_data_without_rows();
  const std::string path = row_path(kind, number);
  const std::vector<std::uint32_t> attempts = list_attempts(path);
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    if (!file_exists(attempt_path(path, *attempt) + "/row.json")) continue;
    Result<ExperimentRow> row = read_attempt(path, *attempt, names);
    if (row) return std::move(*row);
    diagnostics.add({"row_damaged", 1, row.error().message, "remove it, then run joulemap experiment resume"});
  }
  return std::nullopt;
}

ExperimentData ExperimentFolder::read() const {
  ExperimentData data = make_data_without_rows();
  for (std::size_t number = 0; number < run_table_.size(); ++number) {
    const RunTableRow& entry = run_table_[number];
    ExperimentRow row;
    row.metrics.resize(data.metrics.size());
    if (entry.attempt_count > 0) row = read_last_result("rows", number, data.diagnostics).value_or(row);
    row.number = number;
    row.levels = entry.planned_row.levels;
    row.block = entry.planned_row.block_number;
    row.state = entry.state;
    row.attempts = entry.attempt_count;
    data.rows.push_back(std::move(row));
  }
  return data;
}

std::string ExperimentFolder::row_path(std::string_view kind, std::size_t number) const {
  return fmt::format("{}/{}/{:05}", path_, kind, number);
}

Result<Attempt> ExperimentFolder::begin_attempt(std::string_view kind, std::size_t number) const {
  const std::string path = row_path(kind, number);
  if (Status folder_status = make_private_folders(path); !folder_status) return std::move(folder_status).error();
  const std::vector<std::uint32_t> attempt_numbers = list_attempts(path);
  for (std::uint32_t attempt_number = attempt_numbers.empty() ? 1 : attempt_numbers.back() + 1;; ++attempt_number) {
    Attempt attempt{attempt_number, attempt_path(path, attempt_number)};
    if (::mkdir(attempt.path.c_str(), kPrivateFolderMode) == 0) {
      if (Status owner_status = write_owner(attempt.path); !owner_status) return std::move(owner_status).error();
      return attempt;
    }
    if (errno != EEXIST) return system_error("create the folder", attempt.path, errno);
  }
}

Status ExperimentFolder::finish_attempt(const Attempt& attempt, const ExperimentRow& row,
                                        const AttemptConditions& conditions) const {
  return replace_file_nofollow(attempt.path + "/row.json", row_json(row, conditions, make_data_without_rows()));
}

Status ExperimentFolder::write_table() const {
  return replace_file_nofollow(path_ + "/run_table.csv", run_table_csv(spec_.factors, run_table_));
}

// Reads the table from disk. Callers that then write it hold its lock.
Status ExperimentFolder::read_table() {
  const Result<std::string> csv = read_file_start(path_ + "/run_table.csv", kMaxTable_bytes);
  if (!csv) return csv.error();
  Result<std::vector<RunTableRow>> table = parse_run_table(*csv, spec_.factors);
  if (!table) return std::move(table).error();
  run_table_ = std::move(*table);
  return Done{};
}

Status ExperimentFolder::set_row_state(std::size_t row, ExperimentRowState state, std::uint32_t attempts) {
  const Result<FileLock> lock = lock_table(path_);
  if (!lock) return lock.error();
  if (Status read_status = read_table(); !read_status) return read_status;
  if (row >= run_table_.size()) return Error{ErrorCode::usage, fmt::format("no row {}", row), ""};
  run_table_[row].state = state;
  run_table_[row].attempt_count = attempts;
  return write_table();
}

Result<std::optional<Attempt>> ExperimentFolder::claim_row(std::size_t row, bool include_unknown_owners) {
  const Result<FileLock> lock = lock_table(path_);
  if (!lock) return lock.error();
  if (Status read_status = read_table(); !read_status) return std::move(read_status).error();
  const std::string path = row_path("rows", row);
  reconcile_row_state(run_table_.at(row), path, make_data_without_rows());
  const bool is_taken =
      run_table_[row].state == ExperimentRowState::running &&
      (!include_unknown_owners ||
       read_attempt_owner_state(attempt_path(path, run_table_[row].attempt_count)) == AttemptOwnerState::running);
  if (run_table_[row].state == ExperimentRowState::done || is_taken) return std::optional<Attempt>();
  Result<Attempt> attempt = begin_attempt("rows", row);
  if (!attempt) return std::move(attempt).error();
  run_table_[row].state = ExperimentRowState::running;
  run_table_[row].attempt_count = attempt->attempt_number;
  if (Status write_status = write_table(); !write_status) return std::move(write_status).error();
  return std::optional<Attempt>(std::move(*attempt));
}

// All sub-folders contain rows or logs. Other files in the folder may be reports of the user, which may be replaced.
std::vector<std::string> list_experiment_files(const std::string& path) {
  std::vector<std::string> files = {path + "/experiment.toml", path + "/plan.json", path + "/run_table.csv"};
  std::error_code error;  // ignored: a path that is not a folder has no entries
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory(error)) files.push_back(entry.path().string());
  }
  return files;
}

Result<ExperimentData> read_experiment(const std::string& path) {
  const Result<ExperimentFolder> folder = ExperimentFolder::open(path);
  if (!folder) return folder.error();
  return folder->read();
}

}  // namespace joulemap::experiment
