// SPDX-License-Identifier: Apache-2.0
//
// What a PyTorch trace tells about itself beside its events: when its times begin, its rank, its GPUs, versions. It stands
// before or behind the list of events, depending on the version. Plain data; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"

namespace joulemap::ingest::kineto {

struct Metadata {
  std::optional<std::int64_t> base_ns;  // what the events' times count from, since 1970; else they count from 1970
  std::optional<std::int64_t> rank;
  std::string host;
  std::vector<EnvironmentFact> facts;
  bool damaged = false;
};

// `text`: members of the file, as far as an object's opening bracket or a comma stands before them. What comes behind the
// name of the list of events is not read.
void read_metadata(std::string_view text, Metadata& metadata);

}  // namespace joulemap::ingest::kineto
