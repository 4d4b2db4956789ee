// SPDX-License-Identifier: Apache-2.0
//
// Which GPU predictions are for: one that is named, a profile's file, or the one that the program comes with.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "predict/model/profile.h"

namespace joulemap::cli {

struct DeviceFlags {
  std::string device;
  std::string profile;
};

// --device and --profile.
void add_device_options(CLI::App& verb, DeviceFlags& flags);

Result<predict::Profile> profile_of(const DeviceFlags& flags);

// A sentence for the reader where no GPU was named; else empty.
std::string assumed_device_note(const DeviceFlags& flags, const predict::Profile& profile);

}  // namespace joulemap::cli
