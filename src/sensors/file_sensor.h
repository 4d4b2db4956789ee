// SPDX-License-Identifier: Apache-2.0
//
// FileSensor: a sensor whose channels are counter files, one each. Used by powercap and hwmon.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "sensors/counter_file.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {

class FileSensor final : public Sensor {
 public:
  FileSensor(std::vector<CounterFile> files, std::vector<Channel> channels)
      : files_(std::move(files)), channels_(std::move(channels)) {}

  std::span<const Channel> channels() const override { return channels_; }

  void read(std::span<Reading> readings, SamplingMode /*mode*/) noexcept override {
    const std::size_t count = std::min(readings.size(), files_.size());
    for (std::size_t i = 0; i < count; ++i) readings[i] = files_[i].read();
  }

 private:
  std::vector<CounterFile> files_;
  std::vector<Channel> channels_;
};

}  // namespace joulemap::sensors
