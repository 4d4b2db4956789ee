// SPDX-License-Identifier: Apache-2.0
//
// The reader of exports of Nsight Systems on any bytes: none may crash it, and what it makes of them holds together.
#include <cstdint>
#include <string_view>

#include "check_trace.h"
#include "ingest/nsys/nsys_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  joulemap::ingest::check_trace(joulemap::ingest::read_nsys_trace_bytes(bytes));
  return 0;
}
