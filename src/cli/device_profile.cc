// SPDX-License-Identifier: Apache-2.0
#include "cli/device_profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/data_folder.h"
#include "cli/model_file.h"

namespace joulemap::cli {

void add_device_options(CLI::App& verb, DeviceFlags& flags) {
  CLI::Option* const device =
      verb.add_option("--device", flags.device, "GPU model: h200, a100, l40s ... (h200)")->type_name("D");
  verb.add_option("--profile", flags.profile, "profile written by joulemap model fit")
      ->type_name("FILE")
      ->excludes(device);
}

Result<predict::DeviceProfile> load_profile(const DeviceFlags& flags) {
  // The options exclude each other: with both, the profile is a default of the configuration file.
  if (flags.profile.empty() || !flags.device.empty()) {
    if (const std::string own = profile_path(flags.device); !flags.device.empty() && ::access(own.c_str(), R_OK) == 0) {
      return load_profile({.device = {}, .profile = own});
    }
    return flags.device.empty() ? Result<predict::DeviceProfile>(predict::h200_profile())
                                : predict::find_device_profile(flags.device);
  }
  const Result<std::string> text = read_maybe_gzip(flags.profile);
  if (!text) return text.error();
  return predict::read_profile(*text, flags.profile);
}

std::string assumed_device_note(const DeviceFlags& flags, const predict::DeviceProfile& profile) {
  if (!flags.device.empty() || !flags.profile.empty()) return {};
  return fmt::format("no GPU given: this is for {}; choose another with --device", profile.device);
}

}  // namespace joulemap::cli
