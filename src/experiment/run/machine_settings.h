// SPDX-License-Identifier: Apache-2.0
//
// MachineSettings: applies the governor and turbo settings of the plan during its lifetime, then restores the previous
// values. It first writes the previous values into the experiment's folder, so that the next runner restores them even
// if this one is killed. One owner, main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/run/row_json.h"
#include "model/diagnostics.h"

namespace joulemap::experiment {

class MachineSettings {
 public:
  // `backup_path` is the path of the file with the previous values. Fails if a file cannot be written, with nothing
  // changed.
  static Result<MachineSettings> apply_settings(const SystemRoot& root, const ChecksSpec& spec,
                                                std::string backup_path);
  MachineSettings(MachineSettings&& other_settings) noexcept;
  MachineSettings& operator=(MachineSettings&&) = delete;
  ~MachineSettings();

  const std::vector<SettingChange>& setting_changes() const { return setting_changes_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }  // rejected lines of an earlier runner's file
  // Restores the previous values; fails if one could not be restored. The destructor restores, too, but reports
  // nothing.
  Status restore();

 private:
  explicit MachineSettings(std::string backup_path) : backup_path_(std::move(backup_path)) {}

  std::string backup_path_;
  std::vector<SettingChange> setting_changes_;
  Diagnostics diagnostics_;
};

}  // namespace joulemap::experiment
