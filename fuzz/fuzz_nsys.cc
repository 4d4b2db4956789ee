// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of Nsight Systems exports: it must not crash, and the trace must be consistent.
#include <cstdint>
#include <string_view>

#include "check_trace.h"
#include "ingest/nsys/nsys_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  joulemap::ingest::check_trace(joulemap::ingest::read_nsys_trace_bytes(bytes));
  return 0;
}
