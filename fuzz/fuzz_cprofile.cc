// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of cProfile's marshal files: it must not crash, and times and calls of a profile must be consistent.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/cprofile/cprofile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const joulemap::Result<joulemap::ingest::FunctionProfile> profile = joulemap::ingest::parse_cprofile(bytes);
  if (!profile) return 0;
  double total_s = 0;
  for (const joulemap::ingest::ProfiledFunction& function : profile->functions) {
    JOULEMAP_CHECK(std::isfinite(function.self_s) && function.self_s >= 0, "an own time that is none");
    JOULEMAP_CHECK(std::isfinite(function.cumulative_s) && function.cumulative_s >= 0,
                   "a cumulative time that is none");
    JOULEMAP_CHECK(function.recursive_call_count <= function.call_count, "more recursive calls than calls");
    total_s += function.self_s;
  }
  JOULEMAP_CHECK(std::abs(total_s - profile->total_s) <= 1e-6 * (1 + total_s), "a total that is not the sum");
  return 0;
}
