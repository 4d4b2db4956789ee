// SPDX-License-Identifier: Apache-2.0
//
// DamageLog: converts damaged ranges of recordings to diagnostics with the number of bytes. If there are samples before
// and after, it adds the missing time range. A heavily damaged file gets a few messages and a total. Owned by a reader.
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
  // Starts a new file.
  void begin_file(std::string_view name);

  void add(const DamagedRange& damage);

  // Adds samples that were read: they end the gap that the damage before them caused. `started_ns`: start of the
  // source, the origin of the times in messages.
  void add_samples(std::uint32_t source, std::int64_t started_ns, std::span<const Sample> samples);

  // Ends the current file and reports damage after its last samples.
  void end_file();

  std::uint64_t damaged_range_count() const { return range_count_; }
  std::uint64_t damaged_bytes() const { return damaged_bytes_; }
  Diagnostics diagnostics() const;

 private:
  struct LastSample {
    std::uint32_t source_index = 0;
    std::int64_t last_sample_ns = 0;
  };
  void report_pending_damage(const std::string& missing_time);

  std::string file_name_;
  std::optional<DamagedRange> pending_damage_;  // damage that waits for the next samples
  std::optional<LastSample> last_sample_;       // the last samples before the damage
  std::uint64_t range_count_ = 0;
  std::uint64_t damaged_bytes_ = 0;
  std::uint64_t unreported_ranges_ = 0;
  std::uint64_t unreported_bytes_ = 0;
  Diagnostics reported_diagnostics_;
};

}  // namespace joulemap::recording
