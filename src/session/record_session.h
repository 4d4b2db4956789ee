// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap record` does: runs a command, or watches a process, writes every sample and what is reported about what
// runs into a folder of parts beside the file, and joins them into the file at the end. Whatever happens to us, the disk
// or the command, what was written until a second before can be read. Main thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/framework_activity.h"
#include "model/kernel_power.h"
#include "model/record_result.h"
#include "model/recorded.h"
#include "sampling/meter.h"

namespace joulemap::session {

struct RecordOptions {
  std::vector<std::string> command;
  bool keep_arguments = false;               // else the recording and the result have *** for secrets in the command
  std::optional<pid_t> watched;              // a process instead of the command, which is then what it was started with
  std::string file;                          // an older one of that name is kept as FILE.old
  std::string recording_id;                  // shared with recorders of the same run elsewhere; empty: a new one
  std::vector<EnvironmentFact> environment;  // of the setting, written as it is
  std::vector<ChannelCalibration> calibration;  // likewise
  std::vector<std::string> variables;           // "NAME=value", for the command: what makes it load the capture
  Diagnostics diagnostics;                      // of how the recording was set up; written and told
  // Told once everything is being recorded: what a process needs in its environment to become part of it.
  std::function<Status(std::span<const std::string> variables)> on_begun = {};
  // Called when the command has ended: reads the traces in that folder and removes it.
  std::function<FrameworkActivity(const std::string& traces_folder)> read_framework_traces = {};
  // Asked when all parts are in the folder: what is known of the powers of their kernels, to be kept with them.
  std::function<std::vector<KernelPower>(const std::string& folder, Diagnostics&)> known_powers = {};
};

// Fails only before the command has started.
Result<RecordResult> record(sampling::Meter& meter, const RecordOptions& options);

}  // namespace joulemap::session
