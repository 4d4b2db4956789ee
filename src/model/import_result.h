// SPDX-License-Identifier: Apache-2.0
//
// ImportResult: what `joulemap import` has to say when the recording is written. Plain data.
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
  std::uint64_t events = 0;  // in the traces
  std::uint64_t events_dropped = 0;
  std::uint64_t kernels = 0;
  double kernel_s = 0;
  std::optional<double> placed_share;  // of the kernels' time: with a place; nothing without kernels
  double thread_s = 0;                 // of threads, at places
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t power_rows_dropped = 0;
  double elapsed_s = 0;  // where the traces and the power are known
  Diagnostics diagnostics;
};

}  // namespace joulemap
