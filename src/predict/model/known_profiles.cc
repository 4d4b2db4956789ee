// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "predict/model/built_in_profiles.h"
#include "predict/model/device_profile.h"

namespace joulemap::predict {
namespace {

// Half width, as a natural logarithm, of intervals for a GPU that was not measured: a factor of one half to two.
constexpr double kDatasheetLogHalfWidth = 0.7;

std::string known_device_names() {
  std::string names;
  for (const Datasheet& datasheet : known_datasheets())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", datasheet.name);
  return names;
}

}  // namespace

DeviceProfile h200_profile() {
  Result<DeviceProfile> profile = read_profile(built_in_h200_profile_json(), "the built-in profile");
  JOULEMAP_CHECK(profile.has_value(), profile ? "" : profile.error().message);
  return std::move(*profile);
}

Result<DeviceProfile> find_device_profile(std::string_view device) {
  const std::optional<Datasheet> datasheet = find_datasheet(device);
  if (!datasheet) {
    return Error{ErrorCode::usage, fmt::format("unknown GPU \"{}\"; known GPUs: {}", device, known_device_names()),
                 "pass a profile of it (--profile FILE), made by joulemap model fit"};
  }
  DeviceProfile profile = h200_profile();
  if (datasheet->name == profile.device) return profile;
  DeviceProfile scaled_profile;
  scaled_profile.device = datasheet->name;
  scaled_profile.basis = ProfileBasis::datasheet;
  scaled_profile.software = profile.software;
  scaled_profile.operation_model = make_datasheet_model(profile.operation_model, *datasheet);
  scaled_profile.network_model = profile.network_model;
  scaled_profile.network_model.idle_w = datasheet->idle_w;
  scaled_profile.network_model.power_limit_w = datasheet->power_limit_w;
  scaled_profile.network_model.inference_log_half_width = kDatasheetLogHalfWidth;
  scaled_profile.network_model.training_log_half_width = kDatasheetLogHalfWidth;
  scaled_profile.network_model.host_bound_width_factor = 0.5;
  scaled_profile.network_model.layer_log_half_width = 1.2;
  return scaled_profile;
}

}  // namespace joulemap::predict
