// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/clock.h"
#include "base/file_capabilities.h"
#include "base/redaction.h"
#include "base/small_file.h"
#include "base/text.h"
#include "experiment/plan/command_template.h"
#include "experiment/run/attempt_owner.h"
#include "experiment/run/machine_checks.h"
#include "experiment/run/machine_state.h"
#include "experiment/run/row_measurement.h"
#include "session/environment.h"

namespace joulemap::experiment {
namespace {

namespace fs = std::filesystem;

// Locks the machine against other runners of this experiment: concurrent rows would disturb each other's energy.
Result<FileLock> lock_machine(const ExperimentFolder& folder) {
  const std::string path = fmt::format("{}/runner-{}.lock", folder.path(), current_node_name());
  Result<std::optional<FileLock>> lock = FileLock::try_acquire(path, LockScope::machine);
  if (!lock) return std::move(lock).error();
  if (*lock) return std::move(**lock);
  return Error{ErrorCode::usage, fmt::format("another runner is active in {} on this machine", folder.path()),
               "see its progress: joulemap experiment status"};
}

Status check_has_command(const ExperimentFolder& folder) {
  if (folder.spec().command.is_empty()) {
    return Error{ErrorCode::usage, fmt::format("{} has no command to run: its rows were imported", folder.path()),
                 "analyze them: joulemap experiment analyze"};
  }
  std::error_code directory_error;  // ignored: an inaccessible folder counts as missing
  if (fs::is_directory(folder.working_directory(), directory_error)) return Done{};
  return Error{ErrorCode::not_found,
               fmt::format("the working directory {} is not a folder", folder.working_directory()),
               "check directory in experiment.toml"};
}

std::vector<std::string> expand_environment(const ExperimentSpec& spec, const PlaceholderValues& values) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : spec.environment)
    environment.push_back(name + "=" + expand_placeholders(value, values));
  for (const auto& [name, value] : values) {
    if (name == "folder") environment.push_back("JOULEMAP_ROW_FOLDER=" + value);
    if (name == "row") environment.push_back("JOULEMAP_ROW=" + value);
  }
  return environment;
}

PlaceholderValues placeholder_values_of_row(const ExperimentFolder& folder, const RowTask& task,
                                            const std::string& attempt_path) {
  return make_placeholder_values(folder.spec().factors, task.levels,
                                 {task.row_number, task.block_number, folder.spec().seed, attempt_path});
}

std::string read_last_line(const std::string& path) {
  const Result<std::string> text = read_file_start(path, std::size_t{1} << 24);
  if (!text) return {};
  std::string line;
  for (const std::string_view candidate_line : split(*text, '\n')) {
    if (!trim(candidate_line).empty()) line = std::string(trim(candidate_line));
  }
  return joulemap::quoted(line, 200);
}

}  // namespace

Status RunSession::open_idle_monitor() {
  // Sensors opened with file capabilities cannot be opened again, because the capabilities are dropped: they stay open,
  // but are not read while a row is recorded.
  if (idle_monitor_ && has_file_capabilities()) return Done{};
  sampling::SensorOptions options{.root = options_.system_root,
                                  .sensors = experiment_folder_.spec().sensors,
                                  .program = options_.joulemap_program,
                                  .replay = options_.replay_option};
  options.uses_file_capabilities = true;
  Result<IdleMonitor> monitor = IdleMonitor::open(options, *blocked_signals_);
  if (!monitor) return std::move(monitor).error();
  idle_monitor_.emplace(std::move(*monitor));
  return Done{};
}

void RunSession::close_idle_monitor() {
  if (!has_file_capabilities()) idle_monitor_.reset();
}

Result<RunSession> RunSession::begin(ExperimentFolder& folder, RunnerOptions options, PhaseCallback on_phase) {
  if (Status command_check = check_has_command(folder); !command_check) return std::move(command_check).error();
  Result<FileLock> lock = lock_machine(folder);
  if (!lock) return std::move(lock).error();
  Result<BlockedSignals> signals = BlockedSignals::open();
  if (!signals) return std::move(signals).error();
  Result<MachineSettings> settings =
      MachineSettings::apply_settings(options.system_root, folder.spec().checks,
                                      fmt::format("{}/settings-before-{}.csv", folder.path(), current_node_name()));
  if (!settings) return std::move(settings).error();
  RunSession session(folder, std::move(options), std::move(on_phase),
                     std::make_unique<BlockedSignals>(std::move(*signals)), std::move(*lock), std::move(*settings));
  if (Status preflight_status = session.run_preflights(); !preflight_status) return std::move(preflight_status).error();
  if (Status baseline_status = session.measure_baseline(); !baseline_status) return std::move(baseline_status).error();
  return session;
}

Status RunSession::end() { return machine_settings_.restore(); }

// Runs the preflight once for each distinct expansion of its placeholders.
Status RunSession::run_preflights() {
  const ExperimentSpec& spec = experiment_folder_.spec();
  if (spec.checks.preflight_command.is_empty()) return Done{};
  on_phase_(RunPhase::preflight, nullptr, 0);
  std::set<std::vector<std::string>> commands;
  for (const std::vector<std::size_t>& levels : list_planned_cells(spec)) {
    const Result<Attempt> attempt = experiment_folder_.begin_attempt("preflight", 0);
    if (!attempt) return attempt.error();
    const PlaceholderValues values =
        placeholder_values_of_row(experiment_folder_, {"preflight", 0, 0, levels}, attempt->path);
    ChildCommand run;
    run.command = expand_command(spec.checks.preflight_command, values);
    const bool is_new = commands.insert(run.command).second;
    if (!is_new) {
      std::error_code removal_error;  // ignored: an empty folder is harmless
      fs::remove_all(attempt->path, removal_error);
      continue;
    }
    run.directory = experiment_folder_.working_directory();
    run.environment = expand_environment(spec, values);
    run.output_path = attempt->path + "/stdout.txt";
    run.error_path = attempt->path + "/stderr.txt";
    const Result<ChildResult> end = run_child(*blocked_signals_, run, {});
    if (!end) return end.error();
    if (end->exit_status.code != 0) {
      return Error{ErrorCode::unsupported,
                   fmt::format("the preflight failed with exit code {}: {}", end->exit_status.code,
                               read_last_line(run.error_path)),
                   "see " + run.error_path};
    }
  }
  return Done{};
}

Status RunSession::measure_baseline() {
  const ExperimentSpec& spec = experiment_folder_.spec();
  if (Status monitor_status = open_idle_monitor(); !monitor_status) return monitor_status;
  if (spec.baseline_duration_s > 0) {
    on_phase_(RunPhase::baseline, nullptr, 0);
    idle_baseline_ = idle_monitor_->measure_idle(spec.baseline_duration_s);
    stop_requested_ = idle_monitor_->stop_requested();
  }
  checks_ = check_machine(options_.system_root, spec.checks, idle_baseline_, idle_monitor_->sensors());
  close_idle_monitor();
  if (const CheckOutcome* const failed_check = first_failed_requirement(checks_)) {
    return Error{ErrorCode::unsupported, fmt::format("check {}: {}", failed_check->check_name, failed_check->message),
                 failed_check->remedy};
  }
  return Done{};
}

Status RunSession::prepare(const RowTask& task, AttemptConditions& conditions, ExperimentRow& row) {
  const ExperimentSpec& spec = experiment_folder_.spec();
  if (Status monitor_status = open_idle_monitor(); !monitor_status) return monitor_status;
  std::optional<IdleState> idle;
  if (idle_baseline_) {
    on_phase_(RunPhase::cool_down, &task, 0);
    idle.emplace();
    conditions.cool_down = idle_monitor_->cool_down(*idle_baseline_, spec.cool_down, *idle);
    stop_requested_ = stop_requested_ || idle_monitor_->stop_requested();
    const IdlePowers powers = compare_idle_powers(*idle, *idle_baseline_);
    row.baseline = powers.baseline_w;
    row.first = powers.current_w;
    if (!conditions.cool_down->reached_baseline && !stop_requested_) {
      row.diagnostics.add({"not_cooled_down", 1,
                           fmt::format("the machine did not return to its baseline within {:.0f} s: the energy may "
                                       "include heat of the previous row",
                                       conditions.cool_down->waited_s),
                           "increase limit_s of [cool_down]"});
    }
  }
  checks_ = conditions.checks = check_machine(options_.system_root, spec.checks, idle, idle_monitor_->sensors());
  close_idle_monitor();
  if (stop_requested_) return Done{};
  const CheckOutcome* const failed_check = first_failed_requirement(checks_);
  if (failed_check == nullptr) return Done{};
  return Error{ErrorCode::unsupported, fmt::format("check {}: {}", failed_check->check_name, failed_check->message),
               failed_check->remedy};
}

Result<ChildResult> RunSession::record(const RowTask& task, const Attempt& attempt, AttemptConditions& conditions) {
  const ExperimentSpec& spec = experiment_folder_.spec();
  const PlaceholderValues values = placeholder_values_of_row(experiment_folder_, task, attempt.path);
  const std::vector<std::string> command = expand_command(spec.command, values);
  conditions.command = spec.keep_arguments ? command : redact_arguments(command);
  conditions.directory = experiment_folder_.working_directory();
  ChildCommand run;
  run.command = {options_.joulemap_program,
                 "record",
                 "-o",
                 attempt.path + "/" + std::string(kRecordingFileName),
                 "--no-learn",
                 "--trace",
                 spec.trace};
  const auto add = [&](const std::string& flag, const std::string& value) {
    if (!value.empty()) run.command.insert(run.command.end(), {flag, value});
  };
  add("--sensors", spec.sensors);
  if (!options_.system_root.is_this_machine()) add("--sysroot", fs::absolute(options_.system_root.prefix).string());
  if (!options_.replay_option.empty()) {
    run.command.insert(run.command.begin() + 1, {"--replay", fs::absolute(options_.replay_option).string()});
  }
  if (spec.keep_arguments) run.command.emplace_back("--keep-arguments");
  run.command.emplace_back("--");
  run.command.insert(run.command.end(), command.begin(), command.end());
  run.directory = experiment_folder_.working_directory();
  run.environment = expand_environment(spec, values);
  run.output_path = attempt.path + "/stdout.txt";
  run.error_path = attempt.path + "/stderr.txt";
  run.time_limit_s = spec.time_limit_s;
  const RunPhase phase = task.row_kind == "warm-up" ? RunPhase::warm_up : RunPhase::row;
  on_phase_(phase, &task, 0);
  return run_child(*blocked_signals_, run, [&](double elapsed_s) { on_phase_(phase, &task, elapsed_s); });
}

// Fills in the result of the attempt and decides whether the row is done or failed.
void RunSession::fill_attempt_outcome(const Result<ChildResult>& end, const Attempt& attempt,
                                      AttemptConditions& conditions, ExperimentRow& row) {
  row.state = ExperimentRowState::failed;
  if (!end) {
    conditions.error_text = end.error().message;
    return;
  }
  const Status measured = fill_row_from_recording(attempt.path, experiment_folder_.spec().metrics, row);
  if (measured) {
    conditions.recording_file = kRecordingFileName;
  } else {
    conditions.error_text = measured.error().message;
  }
  row.exit_code = end->exit_status.code;
  if (end->stop_requested) {
    conditions.error_text = "interrupted";
  } else if (end->has_timed_out) {
    conditions.error_text =
        fmt::format("exceeded time_limit_s, {:g} s", experiment_folder_.spec().time_limit_s.value_or(0));
  } else if (end->exit_status.code != 0) {
    conditions.error_text = fmt::format("the command failed with exit code {}: see stderr.txt", end->exit_status.code);
  } else if (measured) {
    row.state = ExperimentRowState::done;
  }
}

Result<AttemptOutcome> RunSession::run(const RowTask& task, const ClaimCallback& claim) {
  AttemptOutcome outcome;
  ExperimentRow& row = outcome.row;
  row.number = task.row_number;
  row.block = task.block_number;
  row.levels = task.levels;
  row.node = current_node_name();
  AttemptConditions conditions;
  conditions.environment = session::describe_environment(options_.system_root);
  conditions.settings = machine_settings_.setting_changes();
  if (!stop_requested_) {
    if (Status prepare_status = prepare(task, conditions, row); !prepare_status)
      return std::move(prepare_status).error();
  }
  outcome.stop_requested = stop_requested_;
  if (stop_requested_) return outcome;
  const Result<std::optional<Attempt>> attempt = claim();
  if (!attempt) return attempt.error();
  if (!*attempt) return outcome;
  const std::optional<CpuTicks> begin = read_cpu_ticks(options_.system_root);
  const std::optional<std::uint64_t> throttle_count_before = thermal_throttle_count(options_.system_root);
  row.start_unix_ns = unix_ns();
  const Result<ChildResult> end = record(task, **attempt, conditions);
  row.cpu_steal_share = cpu_steal_share(begin, read_cpu_ticks(options_.system_root));
  fill_attempt_outcome(end, **attempt, conditions, row);
  row.error = conditions.error_text;
  if (throttle_count_before && thermal_throttle_count(options_.system_root).value_or(0) > *throttle_count_before) {
    row.diagnostics.add(
        {"cpu_throttled", thermal_throttle_count(options_.system_root).value_or(0) - *throttle_count_before,
         "CPUs were throttled by temperature during the row", "check the cooling and run the row again"});
  }
  if (Status write_status = experiment_folder_.finish_attempt(**attempt, row, conditions); !write_status)
    return std::move(write_status).error();
  outcome.has_run = true;
  stop_requested_ = outcome.stop_requested = end && end->stop_requested;
  row.attempts = (*attempt)->attempt_number;
  return outcome;
}

}  // namespace joulemap::experiment
