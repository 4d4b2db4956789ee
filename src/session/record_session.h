// SPDX-License-Identifier: Apache-2.0
//
// Implements `joulemap record`: runs a command, or attaches to a process, and writes every sample and all captured
// activity into a folder of parts beside the file. At the end it joins them into the file. Data written up to a second
// before a crash of ours, of the command or of the disk remain readable. Main thread.
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
  bool keep_arguments = false;               // false: the recording and the result contain *** for secrets in the
                                             // command
  std::optional<pid_t> attached_pid;         // attached process; `command` is then its command line
  std::string file;                          // an existing file of that name is kept as FILE.old
  std::string recording_id;                  // shared with recorders of the same run on other hosts; empty: a new one
  std::vector<EnvironmentFact> environment;  // written unchanged
  std::vector<ChannelCalibration> calibration;  // likewise
  std::vector<std::string> variables;           // "NAME=value" for the command: make it load the capture library
  Diagnostics diagnostics;                      // of the setup; written and reported
  // Called once recording has begun, with the environment variables that make a process part of the recording.
  std::function<Status(std::span<const std::string> variables)> on_begun = {};
  // Called about once a second while the command runs.
  std::function<void(const LiveStatus&)> on_status = {};
  // Called when the command has ended: reads the traces in that folder and removes it.
  std::function<FrameworkActivity(const std::string& traces_folder)> read_framework_traces = {};
  // Called when all parts are in the folder: returns the known powers of their kernels, which are stored with them.
  std::function<std::vector<KernelPower>(const std::string& folder, Diagnostics&)> known_powers = {};
};

// Fails only before the command has started.
Result<RecordResult> record(sampling::Meter& meter, const RecordOptions& options);

}  // namespace joulemap::session
