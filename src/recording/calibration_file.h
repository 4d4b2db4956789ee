// SPDX-License-Identifier: Apache-2.0
//
// Stores calibrations between runs in a recording that contains nothing else, so it is written, verified and read like
// any recording. One entry per channel, device and driver; a new entry replaces the old one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/channel.h"
#include "model/recorded.h"

namespace joulemap::recording {

// Returns an empty list if the file does not exist.
Result<std::vector<ChannelCalibration>> load_calibrations(const std::string& path);

// Merges `findings` into the file and replaces it atomically. Creates the folder.
Status merge_into_calibration_file(const std::string& path, std::span<const ChannelCalibration> findings);

// Calibrations that apply to one of these channels: same name, device and, if the channel has one, driver.
std::vector<ChannelCalibration> find_calibrations_for_channels(std::span<const ChannelCalibration> calibrations,
                                                               std::span<const Channel> channels);

}  // namespace joulemap::recording
