// SPDX-License-Identifier: Apache-2.0
//
// Processes that register themselves on a fake GPU while a test runs.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "fake_nvml/script.h"

namespace joulemap::fake_nvml {

// Adds the processes that wrote "pid percent" into a file and hold its lock, which ends with them.
inline void add_clients(const std::string& folder, std::vector<ScriptedDevice::Process>& processes) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const FileDescriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open() || ::flock(file.get(), LOCK_SH | LOCK_NB) == 0) continue;
    ScriptedDevice::Process client;
    std::ifstream text(entry.path());
    if (text >> client.pid >> client.sm_percent) processes.push_back(client);
  }
}

}  // namespace joulemap::fake_nvml
