// SPDX-License-Identifier: Apache-2.0
#include "experiment/machine_settings.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file_descriptor.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/write_fully.h"
#include "experiment/experiment_folder.h"
#include "experiment/machine_state.h"
#include "formats/csv.h"

namespace joulemap::experiment {
namespace {

Status write_setting(const std::string& path, const std::string& value) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd.is_open()) {
    Error error = system_error("set", path, errno);
    error.remedy = "run as root, or take it out of set of [checks]";
    return error;
  }
  return write_fully(fd.get(), value + "\n", path);
}

// What is to be changed, with what is there now.
Result<std::vector<SettingChange>> wanted_changes(const SystemRoot& root, const ChecksSpec& spec) {
  std::vector<SettingChange> changes;
  const auto add = [&](const std::string& path, const std::string& value) -> Status {
    const Result<std::string> before = read_small_file(path);
    if (!before) return before.error();
    if (trim(*before) != value) changes.push_back({path, std::string(trim(*before)), value});
    return Done{};
  };
  for (const std::string& name : spec.set) {
    if (name == "governor") {
      for (const std::string& path : governor_files(root)) {
        if (Status added = add(path, spec.governor); !added) return std::move(added).error();
      }
    } else if (const std::optional<TurboFile> file = turbo_file(root)) {
      const bool wants_turbo = spec.turbo.value_or(false);  // clocks that stay where they are: what one sets it for
      if (Status added = add(file->path, wants_turbo ? file->on : file->off); !added) return std::move(added).error();
    }
  }
  return changes;
}

// What a runner that was killed has left changed counts as what was there before.
void remember_older(const std::string& memory, std::vector<SettingChange>& changes) {
  const Result<std::string> text = read_small_file(memory);
  if (!text) return;
  for (const formats::CsvRecord& record : formats::read_csv(*text)) {
    if (record.size() != 3) continue;
    const auto known = std::find_if(changes.begin(), changes.end(),
                                    [&](const SettingChange& change) { return change.path == record[0]; });
    if (known != changes.end()) {
      known->before = record[1];
    } else {
      changes.push_back({record[0], record[1], record[2]});
    }
  }
}

}  // namespace

Result<MachineSettings> MachineSettings::apply(const SystemRoot& root, const ChecksSpec& spec, std::string memory) {
  Result<std::vector<SettingChange>> changes = wanted_changes(root, spec);
  if (!changes) return std::move(changes).error();
  remember_older(memory, *changes);
  MachineSettings settings(std::move(memory));
  if (changes->empty()) return settings;
  std::string text;
  for (const SettingChange& change : *changes) text += formats::csv_line({change.path, change.before, change.after});
  if (Status kept = replace_file(settings.memory_, text); !kept) return std::move(kept).error();
  for (SettingChange& change : *changes) {
    Status written = write_setting(change.path, change.after);
    settings.changes_.push_back(std::move(change));
    if (!written) {
      settings.changes_.pop_back();
      return std::move(written).error();  // what was changed before is restored on the way out
    }
  }
  return settings;
}

MachineSettings::MachineSettings(MachineSettings&& other) noexcept
    : memory_(std::move(other.memory_)), changes_(std::exchange(other.changes_, {})) {}

Status MachineSettings::restore() {
  Status result = Done{};
  for (const SettingChange& change : std::exchange(changes_, {})) {
    if (Status written = write_setting(change.path, change.before); !written) result = std::move(written);
  }
  if (result && !memory_.empty()) ::unlink(memory_.c_str());
  return result;
}

MachineSettings::~MachineSettings() {
  if (!changes_.empty()) static_cast<void>(restore());  // nobody is left to be told
}

}  // namespace joulemap::experiment
