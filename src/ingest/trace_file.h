// SPDX-License-Identifier: Apache-2.0
//
// Reads the file of a trace into memory, whole: for formats whose parts refer to each other from end to end. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::ingest {

// The bytes of a file. No std::string: that would write zeros over a gigabyte before it is read.
class TraceBytes {
 public:
  TraceBytes() = default;
  TraceBytes(std::unique_ptr<char[]> bytes, std::size_t size) : bytes_(std::move(bytes)), size_(size) {}
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
};

Result<TraceBytes> read_trace_file(const std::string& path);

}  // namespace joulemap::ingest
