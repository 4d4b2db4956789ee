// SPDX-License-Identifier: Apache-2.0
//
// ImportResult: the summary that `joulemap import` prints after it has written the recording. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"

namespace joulemap {

struct ImportResult {
  std::string format;
  std::vector<std::string> inputs;
  std::string file;
  std::uint64_t file_bytes = 0;
  std::uint64_t events = 0;  // read from the traces
  std::uint64_t events_dropped = 0;
  std::uint64_t kernels = 0;
  double kernel_s = 0;
  std::optional<double> kernel_scope_share;  // fraction of kernel time that has a scope; none without kernels
  double thread_time_s = 0;                  // time of host threads within scopes, summed over threads
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t power_rows_dropped = 0;
  double elapsed_s = 0;  // time that both the traces and the power log cover
  Diagnostics diagnostics;
};

}  // namespace joulemap
