// SPDX-License-Identifier: Apache-2.0
//
// Metadata of a PyTorch trace besides its events: base time, rank, GPUs, versions. It is before or after the list of
// events, depending on the version. Plain data; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"

namespace joulemap::ingest::kineto {

struct TraceMetadata {
  std::optional<std::int64_t>
      base_time_ns;  // base of the events' times, Unix ns; without it their times are Unix times
  std::optional<std::int64_t> rank;
  std::string host;
  std::vector<EnvironmentFact> environment;
  bool is_damaged = false;
};

// Adds what `text` contains: the members of the file's outer object before the list of events, or those after it.
void read_metadata(std::string_view text, TraceMetadata& metadata);

}  // namespace joulemap::ingest::kineto
