// SPDX-License-Identifier: Apache-2.0
//
// Records of TensorFlow event files. Each stores its length, its content and a masked CRC-32C of both, so that readers
// detect truncation. Pure; the CRC is ISA-L's, which no other folder includes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace joulemap::formats {

// CRC-32C (Castagnoli), as in iSCSI and TensorFlow; differs from crc32.h.
std::uint32_t crc32c(std::string_view bytes);

void append_tfrecord(std::string& file, std::string_view record);

}  // namespace joulemap::formats
