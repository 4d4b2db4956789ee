// SPDX-License-Identifier: Apache-2.0
//
// Where calibrations are kept between runs: a recording that holds nothing else, so that it is written, checked and read
// like any other. One entry for each channel, device and driver; a new one replaces the old.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/channel.h"
#include "model/recorded.h"

namespace joulemap::recording {

// Nothing when there is no such file yet.
Result<std::vector<ChannelCalibration>> load_calibrations(const std::string& path);

// Adds to what the file holds; the new file replaces the old one at once. Makes the folder.
Status keep_calibrations(const std::string& path, std::span<const ChannelCalibration> findings);

// Those that hold for one of these channels: the same name, device and, where the channel knows it, driver.
std::vector<ChannelCalibration> calibrations_of(std::span<const ChannelCalibration> known,
                                                std::span<const Channel> channels);

}  // namespace joulemap::recording
