// SPDX-License-Identifier: Apache-2.0
//
// DamageLog: turns the damaged places of recordings into diagnostics that say how many bytes and, where samples before
// and after are known, which time is missing. A file that is damaged everywhere gets a few messages and a sum. Owner: a
// reader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/diagnostics.h"
#include "model/sample.h"
#include "recording/chunk_scanner.h"

namespace joulemap::recording {

class DamageLog {
 public:
  // A new file begins.
  void begin_file(std::string_view name);

  void add(const Damage& damage);

  // Samples of a source were read: they end the hole that a damage before them has torn. Times count from `started_ns`.
  void add_samples(std::uint32_t source, std::int64_t started_ns, std::span<const Sample> samples);

  // No more of this file.
  void end_file();

  std::uint64_t places() const { return places_; }
  std::uint64_t bytes() const { return bytes_; }
  Diagnostics diagnostics() const;

 private:
  struct Seen {
    std::uint32_t source = 0;
    std::int64_t last_ns = 0;
  };
  void report(const std::string& missing_time);

  std::string name_;
  std::optional<Damage> open_;  // waits for the samples after it
  std::optional<Seen> seen_;    // the last samples before it
  std::uint64_t places_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t untold_places_ = 0;
  std::uint64_t untold_bytes_ = 0;
  Diagnostics told_;
};

}  // namespace joulemap::recording
