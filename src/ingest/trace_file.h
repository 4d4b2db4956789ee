// SPDX-License-Identifier: Apache-2.0
//
// Reads a whole file into memory and decompresses gzip, for formats with references across the whole file. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

// The bytes of a file. Not a std::string, which would fill a gigabyte with zeros before the file is read into it.
class TraceBytes {
 public:
  TraceBytes() = default;
  TraceBytes(std::unique_ptr<char[]> bytes, std::size_t size, std::optional<Diagnostic> damage)
      : bytes_(std::move(bytes)), size_(size), damage_(std::move(damage)) {}
  std::string_view view() const { return {bytes_.get(), size_}; }
  // Adds a diagnostic if a compressed file is truncated or damaged.
  void report_damage(Diagnostics& diagnostics) const {
    if (damage_) diagnostics.add(*damage_);
  }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::optional<Diagnostic> damage_;
};

Result<TraceBytes> read_trace_file(const std::string& path);

}  // namespace joulemap::ingest
