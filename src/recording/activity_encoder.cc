// SPDX-License-Identifier: Apache-2.0
#include "recording/activity_encoder.h"

#include "recording/activity_codec.h"
#include "recording/chunk.h"

namespace joulemap::recording {

EncodedActivity ActivityEncoder::encode(Activity activity) {
  EncodedActivity encoded;
  for (const Activity& part : split_activity(std::move(activity))) {
    encoded.chunks.push_back(
        make_chunk(ChunkType::activity, kPartSourceNumber, encode_activity(part, time_unit_log2_), compressor_));
  }
  return encoded;
}

}  // namespace joulemap::recording
