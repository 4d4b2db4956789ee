// SPDX-License-Identifier: Apache-2.0
#include "cli/device_profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/data_folder.h"
#include "cli/model_file.h"

namespace joulemap::cli {

void add_device_options(CLI::App& verb, DeviceFlags& flags) {
  CLI::Option* const device =
      verb.add_option("--device", flags.device_name, "GPU model: h200, a100, l40s ...; default: h200")->type_name("D");
  verb.add_option("--profile", flags.profile_file, "profile written by joulemap model fit")
      ->type_name("FILE")
      ->excludes(device);
}

Result<predict::DeviceProfile> load_device_profile(const DeviceFlags& flags) {
  // The options exclude each other: with both, the profile is a default of the configuration file.
  if (flags.profile_file.empty() || !flags.device_name.empty()) {
    if (const std::string profile_path = device_profile_path(flags.device_name);
        !flags.device_name.empty() && ::access(profile_path.c_str(), R_OK) == 0) {
      return load_device_profile({.device_name = {}, .profile_file = profile_path});
    }
    return flags.device_name.empty() ? Result<predict::DeviceProfile>(predict::h200_profile())
                                     : predict::find_device_profile(flags.device_name);
  }
  const Result<std::string> text = read_plain_or_gzip_file(flags.profile_file);
  if (!text) return text.error();
  return predict::read_profile(*text, flags.profile_file);
}

std::string assumed_device_note(const DeviceFlags& flags, const predict::DeviceProfile& profile) {
  if (!flags.device_name.empty() || !flags.profile_file.empty()) return {};
  return fmt::format("no GPU given: this is for {}; choose another with --device", profile.device);
}

}  // namespace joulemap::cli
