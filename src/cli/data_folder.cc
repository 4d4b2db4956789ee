// SPDX-License-Identifier: Apache-2.0
#include "cli/data_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>

namespace joulemap::cli {
namespace {

// Value of an environment variable. Empty if it is unset, or if joulemap runs with file capabilities (AT_SECURE).
std::string unprivileged_environment_variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

std::string home_folder() {
  if (std::string home_path = unprivileged_environment_variable("HOME"); !home_path.empty()) return home_path;
  const passwd* user = ::getpwuid(::getuid());  // NOLINT(concurrency-mt-unsafe): there is one thread
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/";
}

std::string data_folder() {
  if (std::string data_path = unprivileged_environment_variable("JOULEMAP_DATA"); !data_path.empty()) return data_path;
  if (const std::string xdg = unprivileged_environment_variable("XDG_DATA_HOME"); !xdg.empty())
    return xdg + "/joulemap";
  return home_folder() + "/.local/share/joulemap";
}

}  // namespace

std::string calibration_path() { return data_folder() + "/calibration.joule"; }

std::string kernel_library_path() { return data_folder() + "/kernels.joule"; }

std::string device_profile_path(std::string_view device) {
  std::string name;
  for (const char letter : device) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  return data_folder() + "/profiles/" + name + ".json";
}

std::string prediction_measurements_folder() { return data_folder() + "/prediction"; }

}  // namespace joulemap::cli
