// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/machine_settings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file_descriptor.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/write_fully.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/machine_state.h"
#include "formats/csv.h"

namespace joulemap::experiment {
namespace {

Status write_setting(const std::string& path, const std::string& value) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open()) {
    Error error = system_error("set", path, errno);
    error.remedy = "run as root, or remove it from set in [checks]";
    return error;
  }
  return write_fully(fd.get(), value + "\n", path);
}

// Settings to change, with their current values.
Result<std::vector<SettingChange>> requested_setting_changes(const SystemRoot& root, const ChecksSpec& spec) {
  std::vector<SettingChange> changes;
  const auto add = [&](const std::string& path, const std::string& value) -> Status {
    const Result<std::string> current_value = read_small_file(path);
    if (!current_value) return current_value.error();
    if (trim(*current_value) != value) changes.push_back({path, std::string(trim(*current_value)), value});
    return Done{};
  };
  for (const std::string& name : spec.applied_settings) {
    if (name == "governor") {
      for (const std::string& path : governor_files(root)) {
        if (Status add_status = add(path, spec.governor); !add_status) return std::move(add_status).error();
      }
    } else if (const std::optional<TurboFile> file = find_turbo_file(root)) {
      const bool wants_turbo = spec.turbo.value_or(false);  // default off: stable clocks are the purpose of the setting
      if (Status add_status = add(file->path, wants_turbo ? file->on_value : file->off_value); !add_status)
        return std::move(add_status).error();
    }
  }
  return changes;
}

// Governors accepted if the kernel does not list them: its built-in ones (admin-guide/pm/cpufreq.rst).
constexpr std::string_view kKnownGovernors = "performance powersave userspace ondemand conservative schedutil";

bool is_offered_governor(const std::string& governor_file, std::string_view value) {
  const std::string folder = governor_file.substr(0, governor_file.rfind('/'));
  const Result<std::string> governor_list = read_small_file(folder + "/scaling_available_governors");
  const std::vector<std::string_view> offered_governors =
      split_whitespace(governor_list ? std::string_view(*governor_list) : kKnownGovernors);
  return std::find(offered_governors.begin(), offered_governors.end(), value) != offered_governors.end();
}

// Why joulemap cannot have written a line of the backup file; empty if the line is valid.
std::string backup_rejection_reason(const SystemRoot& root, const formats::CsvRecord& record) {
  if (record.size() != 3) return "a line does not have three fields";
  const auto are_values_offered = [&](const auto& is_offered) {
    return is_offered(record[1]) && is_offered(record[2]);
  };
  const std::vector<std::string> governor_paths = governor_files(root);
  const std::optional<TurboFile> turbo = find_turbo_file(root);
  bool is_known = false;
  if (std::find(governor_paths.begin(), governor_paths.end(), record[0]) != governor_paths.end()) {
    is_known = are_values_offered([&](const std::string& value) { return is_offered_governor(record[0], value); });
  } else if (turbo && turbo->path == record[0]) {
    is_known = are_values_offered(
        [&](const std::string& value) { return value == turbo->on_value || value == turbo->off_value; });
  } else {
    return fmt::format("{} is neither a governor nor a turbo file", joulemap::quoted(record[0], 200));
  }
  if (!is_known) return fmt::format("{} does not offer {}", record[0], joulemap::quoted(record[1]));
  struct stat status {};
  if (::lstat(record[0].c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fmt::format("{} is not a regular file", record[0]);
  }
  return {};
}

// Content of the backup file that an earlier runner of the same user left; empty if there is none. Refuses a file that
// another user could have written: other users with write access to the folder must not choose what is restored.
Result<std::string> read_settings_backup(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.is_open()) {
    if (errno == ENOENT) return std::string();
    return system_error("open", path, errno);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::permission, path + " is not a regular file", {}};
  if (status.st_uid != ::geteuid()) return Error{ErrorCode::permission, path + " belongs to another user", {}};
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{ErrorCode::permission, path + " is writable by other users", {}};
  }
  return read_small_file(fmt::format("/proc/self/fd/{}", fd.get()));
}

// If a killed runner left settings changed, its saved values count as the previous values.
void adopt_values_of_older_backup(const SystemRoot& root, const std::string& backup_path,
                                  std::vector<SettingChange>& changes, Diagnostics& diagnostics) {
  const auto refuse_backup = [&](const std::string& reason) {
    diagnostics.add({"settings_refused", 1, fmt::format("a setting was not restored from {}: {}", backup_path, reason),
                     "check the governor and turbo of this machine; only joulemap may write that file"});
  };
  const Result<std::string> text = read_settings_backup(backup_path);
  if (!text) return refuse_backup(text.error().message);
  for (const formats::CsvRecord& record : formats::read_csv(*text)) {
    if (const std::string reason = backup_rejection_reason(root, record); !reason.empty()) {
      refuse_backup(reason);
      continue;
    }
    const auto matching_change = std::find_if(
        changes.begin(), changes.end(), [&](const SettingChange& change) { return change.setting_file == record[0]; });
    if (matching_change != changes.end()) {
      matching_change->value_before = record[1];
    } else {
      changes.push_back({record[0], record[1], record[2]});
    }
  }
}

}  // namespace

Result<MachineSettings> MachineSettings::apply_settings(const SystemRoot& root, const ChecksSpec& spec,
                                                        std::string backup_path) {
  Result<std::vector<SettingChange>> changes = requested_setting_changes(root, spec);
  if (!changes) return std::move(changes).error();
  MachineSettings settings(std::move(backup_path));
  adopt_values_of_older_backup(root, settings.backup_path_, *changes, settings.diagnostics_);
  if (changes->empty()) return settings;
  std::string text;
  for (const SettingChange& change : *changes)
    text += formats::csv_line({change.setting_file, change.value_before, change.value_after});
  if (Status backup_status = replace_file_nofollow(settings.backup_path_, text); !backup_status)
    return std::move(backup_status).error();
  for (SettingChange& change : *changes) {
    Status write_status = write_setting(change.setting_file, change.value_after);
    settings.setting_changes_.push_back(std::move(change));
    if (!write_status) {
      settings.setting_changes_.pop_back();
      return std::move(write_status).error();  // the destructor restores the earlier changes
    }
  }
  return settings;
}

MachineSettings::MachineSettings(MachineSettings&& other_settings) noexcept
    : backup_path_(std::move(other_settings.backup_path_)),
      setting_changes_(std::exchange(other_settings.setting_changes_, {})),
      diagnostics_(std::move(other_settings.diagnostics_)) {}

Status MachineSettings::restore() {
  Status result = Done{};
  const bool were_settings_changed = !setting_changes_.empty();
  for (const SettingChange& change : std::exchange(setting_changes_, {})) {
    if (Status write_status = write_setting(change.setting_file, change.value_before); !write_status)
      result = std::move(write_status);
  }
  if (result && were_settings_changed) ::unlink(backup_path_.c_str());
  return result;
}

MachineSettings::~MachineSettings() {
  if (!setting_changes_.empty()) static_cast<void>(restore());  // a destructor cannot report the error
}

}  // namespace joulemap::experiment
