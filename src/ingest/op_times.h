// SPDX-License-Identifier: Apache-2.0
//
// OpTimes: how the time of profiled steps splits among operations, from a trace of any format. Plain data; times are
// ns.
#pragma once

#include <cstdint>
#include <vector>

#include "model/diagnostics.h"
#include "scopes/op_names.h"

namespace joulemap::ingest {

struct OpTime {
  scopes::OpScope scope;
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

struct OpTimes {
  std::vector<OpTime> op_times;
  Diagnostics diagnostics;

  std::int64_t time_ns() const {
    std::int64_t sum_ns = 0;
    for (const OpTime& share : op_times) sum_ns += share.time_ns;
    return sum_ns;
  }
  // Time of operations whose phase and layer are known, ns.
  std::int64_t time_with_scope_ns() const {
    std::int64_t sum_ns = 0;
    for (const OpTime& share : op_times) {
      if (!share.scope.phase.empty() && !share.scope.module.empty()) sum_ns += share.time_ns;
    }
    return sum_ns;
  }
};

}  // namespace joulemap::ingest
