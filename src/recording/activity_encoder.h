// SPDX-License-Identifier: Apache-2.0
//
// ActivityEncoder: makes the chunks of Activity, apart from the writer of the part that they go into, so that several
// threads can. Made by RecordingWriter::activity_encoder, which knows how exact times are. One thread each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/zstd.h"
#include "model/activity.h"

namespace joulemap::recording {

// Ready to be written, in this order.
struct EncodedActivity {
  std::vector<std::string> chunks;
};

class ActivityEncoder {
 public:
  explicit ActivityEncoder(unsigned time_shift) : time_shift_(time_shift) {}

  // However much: it is split where a chunk is full.
  EncodedActivity encode(Activity activity);

 private:
  unsigned time_shift_;
  formats::ZstdCompressor compressor_;
};

}  // namespace joulemap::recording
