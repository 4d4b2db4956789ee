// SPDX-License-Identifier: Apache-2.0
//
// SampleFilter: decides which samples of a file reach the visitor, and under which channel number. Enforces time order
// and removes samples that two samplers of one machine both recorded (rules in recording_reader.h). Owned by a reader;
// one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/diagnostics.h"
#include "model/recorded.h"
#include "model/sample.h"

namespace joulemap::recording {

class SampleFilter {
 public:
  // Numbers the known channels of a source in order. Returns the first number.
  std::uint32_t add_source(const RecordingSource& source, const std::vector<std::optional<Channel>>& channels);

  // Filters in place: keeps the accepted samples, with their new channel numbers. `source` is the index of its
  // add_source call.
  void filter(std::uint32_t source, std::vector<Sample>& samples);

  Diagnostics diagnostics() const;

 private:
  using DeviceChannel = std::tuple<std::string, std::string, std::string, std::string>;  // boot, sensor, device, name
  struct SampledSpan {
    std::uint32_t source = 0;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
  };
  struct ChannelState {
    std::uint32_t output_channel = 0;
    std::optional<std::int64_t> last_ns;
    std::vector<SampledSpan>* sampled_spans =
        nullptr;  // of all sources that sampled this channel; owned by sampled_spans_
  };
  bool accepts_sample(std::uint32_t source, ChannelState& track, std::int64_t before_ns);

  std::vector<std::vector<std::optional<ChannelState>>> channel_states_;  // indexed by [source][channel in the file]
  std::map<DeviceChannel, std::vector<SampledSpan>> sampled_spans_;
  std::uint32_t next_channel_number_ = 0;
  std::uint64_t out_of_order_count_ = 0;
  std::uint64_t duplicate_count_ = 0;
  std::uint64_t unknown_channel_count_ = 0;
};

}  // namespace joulemap::recording
