// SPDX-License-Identifier: Apache-2.0
//
// MachineSettings: governor and turbo as the plan wants them, as long as it lives; then what they were before. What they
// were is written into the experiment's folder first, so that the next runner restores it even when this one is killed.
// One owner, main thread.
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
  // `memory` is the file that keeps what was there before. Fails where a file cannot be written, with nothing changed.
  static Result<MachineSettings> apply(const SystemRoot& root, const ChecksSpec& spec, std::string memory);
  MachineSettings(MachineSettings&& other) noexcept;
  MachineSettings& operator=(MachineSettings&&) = delete;
  ~MachineSettings();

  const std::vector<SettingChange>& changes() const { return changes_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }  // what an earlier runner's file said and is refused
  // Says what could not be restored; the destructor does it in silence.
  Status restore();

 private:
  explicit MachineSettings(std::string memory) : memory_(std::move(memory)) {}

  std::string memory_;
  std::vector<SettingChange> changes_;
  Diagnostics diagnostics_;
};

}  // namespace joulemap::experiment
