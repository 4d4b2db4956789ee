// SPDX-License-Identifier: Apache-2.0
//
// ActivityEncoder: encodes Activity into chunks. It is separate from the writer of the part, so that several threads
// can encode. RecordingWriter::activity_encoder creates one with the writer's time resolution. Each encoder is used by
// one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/zstd.h"
#include "model/activity.h"

namespace joulemap::recording {

// Chunks to write in this order.
struct EncodedActivity {
  std::vector<std::string> chunks;
};

class ActivityEncoder {
 public:
  explicit ActivityEncoder(unsigned time_unit_log2) : time_unit_log2_(time_unit_log2) {}

  // Accepts an activity of any size and splits it into chunks.
  EncodedActivity encode(Activity activity);

 private:
  unsigned time_unit_log2_;
  formats::ZstdCompressor compressor_;
};

}  // namespace joulemap::recording
