// SPDX-License-Identifier: Apache-2.0
//
// Implements `joulemap record`: runs a command, or attaches to a process. Every sample and all captured activity are
// written as parts into a folder beside the recording file, and joined into the file at the end. After a crash of
// joulemap, of the command or of the machine, all data except the last second is readable. Main thread.
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
  bool keep_arguments = false;        // false: the recording and the result contain *** for secrets in the
                                      // command
  std::optional<pid_t> attached_pid;  // attached process; `command` is then its command line
  std::string output_file;            // an existing file of that name is kept as FILE.old
  std::string recording_id;           // shared with recorders of the same run on other hosts; empty: a new one
  std::vector<EnvironmentFact> environment_facts;        // written to the recording unchanged
  std::vector<ChannelCalibration> channel_calibrations;  // written to the recording unchanged
  std::vector<std::string> command_variables;            // "NAME=value" for the command, to load the capture library
  Diagnostics setup_diagnostics;                         // of the setup; become part of the recording and the result
  // Called once recording has begun, with the environment variables that make a process part of the recording.
  std::function<Status(std::span<const std::string> variables)> on_recording_begun = {};
  // Called about once a second while the command runs, on the thread of record_command(), whose loop waits for it.
  std::function<void(const LiveStatus&)> on_status = {};
  // Called when the command has ended: reads the traces in that folder and removes it.
  std::function<FrameworkActivity(const std::string& traces_folder)> read_framework_traces = {};
  // Called when all parts are in the folder: returns the powers that the kernel library knows for the kernels of these
  // parts, which record_command() stores in the recording.
  std::function<std::vector<KernelPower>(const std::string& folder, Diagnostics&)> find_known_kernel_powers = {};
};

// Fails only before the command has started.
Result<RecordResult> record_command(sampling::Meter& meter, const RecordOptions& options);

}  // namespace joulemap::session
