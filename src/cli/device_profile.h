// SPDX-License-Identifier: Apache-2.0
//
// Selects the GPU profile for predictions: by GPU name (--device), from a file (--profile), or by default the H200's.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "predict/model/device_profile.h"

namespace joulemap::cli {

struct DeviceFlags {
  std::string device_name;
  std::string profile_file;
};

// Declares --device and --profile on `verb`. `flags` must outlive the parser.
void add_device_options(CLI::App& verb, DeviceFlags& flags);

// Prefers a profile made on this machine (device_profile_path()) to the built-in one of the same GPU.
Result<predict::DeviceProfile> load_device_profile(const DeviceFlags& flags);

// A note that names the assumed GPU, if the user chose none; else empty.
std::string assumed_device_note(const DeviceFlags& flags, const predict::DeviceProfile& profile);

}  // namespace joulemap::cli
