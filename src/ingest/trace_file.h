// SPDX-License-Identifier: Apache-2.0
//
// Reads a file into memory, whole, unpacked where it is gzip's: for formats whose parts refer to each other from end to end.
// Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

// The bytes of a file. No std::string: that would write zeros over a gigabyte before it is read.
class TraceBytes {
 public:
  TraceBytes() = default;
  TraceBytes(std::unique_ptr<char[]> bytes, std::size_t size, std::optional<Diagnostic> damage)
      : bytes_(std::move(bytes)), size_(size), damage_(std::move(damage)) {}
  std::string_view view() const { return {bytes_.get(), size_}; }
  // Says what is missing of a compressed file.
  void tell_damage(Diagnostics& diagnostics) const {
    if (damage_) diagnostics.add(*damage_);
  }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::optional<Diagnostic> damage_;
};

Result<TraceBytes> read_trace_file(const std::string& path);

}  // namespace joulemap::ingest
