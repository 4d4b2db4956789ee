// SPDX-License-Identifier: Apache-2.0
//
// Selects the GPU that predictions are for: a named one, a profile file, or the built-in profile.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "predict/model/device_profile.h"

namespace joulemap::cli {

struct DeviceFlags {
  std::string device;
  std::string profile;
};

// --device and --profile.
void add_device_options(CLI::App& verb, DeviceFlags& flags);

Result<predict::DeviceProfile> load_profile(const DeviceFlags& flags);

// A note for the user if no GPU was named; else empty.
std::string assumed_device_note(const DeviceFlags& flags, const predict::DeviceProfile& profile);

}  // namespace joulemap::cli
