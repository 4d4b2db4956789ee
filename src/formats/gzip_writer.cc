// SPDX-License-Identifier: Apache-2.0
// unity: alone (cmake/unity_groups.py), so that only programs that call this function link ISA-L
#include "formats/gzip_writer.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace joulemap::formats {

// Passes the text in pieces of at most 2 GiB, because ISA-L counts bytes in 32 bits.
std::string gzip_compress(std::string_view text) {
  constexpr std::size_t kMaxWriteBytes = std::numeric_limits<std::int32_t>::max();
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.flush = NO_FLUSH;
  std::string out;
  std::string buffer(1 << 16, '\0');
  do {
    const std::string_view input_block = text.substr(0, kMaxWriteBytes);
    text.remove_prefix(input_block.size());
    stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(input_block.data()));  // input is only read
    stream.avail_in = static_cast<std::uint32_t>(input_block.size());
    stream.end_of_stream = text.empty() ? 1 : 0;
    do {
      stream.next_out = reinterpret_cast<std::uint8_t*>(buffer.data());
      stream.avail_out = static_cast<std::uint32_t>(buffer.size());
      JOULEMAP_CHECK(isal_deflate(&stream) == COMP_OK, "deflate refused plain bytes");
      out.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (!text.empty());
  return out;
}

}  // namespace joulemap::formats
