// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of ONNX Runtime profiles: it must not crash, and the trace must be consistent.
#include <cstdint>
#include <string_view>

#include "check_trace.h"
#include "ingest/onnxruntime/onnxruntime_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  joulemap::ingest::check_trace(joulemap::ingest::read_onnxruntime_trace_text(bytes));
  return 0;
}
