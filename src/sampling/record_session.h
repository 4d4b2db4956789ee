// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap record` does: runs a command, writes every sample and what the command reports about itself into a
// folder of parts beside the file, and joins them into the file at the end. Whatever happens to us, the disk or the
// command, what was written until a second before can be read. Main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/kernel_power.h"
#include "model/record_result.h"
#include "model/recorded.h"
#include "sampling/meter.h"

namespace joulemap::sampling {

struct RecordOptions {
  std::vector<std::string> command;
  std::string file;                             // an older one of that name is kept as FILE.old
  std::string run;                              // its name on all machines that take part; empty: this one alone
  std::vector<EnvironmentFact> environment;     // of the setting, written as it is
  std::vector<ChannelCalibration> calibration;  // likewise
  std::vector<std::string> variables;           // "NAME=value", for the command: what makes it load the capture
  Diagnostics diagnostics;                      // of how the recording was set up; written and told
  // Asked when all parts are in the folder: what is known of the powers of their kernels, to be kept with them.
  std::function<std::vector<KernelPower>(const std::string& folder, Diagnostics&)> known_powers = {};
};

// Fails only before the command has started.
Result<RecordResult> record(Meter& meter, const RecordOptions& options);

}  // namespace joulemap::sampling
