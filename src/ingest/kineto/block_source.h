// SPDX-License-Identifier: Apache-2.0
//
// BlockSource: splits the text of a trace, from a file or from memory, into blocks that likely begin and end between
// events. The text before the list of events is the header. Owned by the reader of the trace; any thread may request a
// block, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::ingest::kineto {

// Reads the next text into the span. Returns the number of bytes: the whole span except at the end of the text, then 0.
using TextReader = std::function<Result<std::size_t>(std::span<char>)>;

// A part of the text, followed by the padding that formats/byte_scan.h requires.
class BlockBuffer {
 public:
  std::string_view contents() const { return {bytes_.get(), size_}; }
  std::uint64_t file_offset = 0;  // position of the first byte in the whole text

  void assign(std::string_view text);
  void append(std::string_view text);
  // Removes the first `byte_count` bytes.
  void drop_front(std::size_t byte_count);
  // Appends up to `count` bytes. Returns false at the end of the text.
  Result<bool> read_more_text(const TextReader& read, std::size_t count);
  void truncate(std::size_t size);

 private:
  void resize(std::size_t size);

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

class BlockSource {
 public:
  BlockSource(TextReader read, std::size_t block_bytes) : read_text_(std::move(read)), block_bytes_(block_bytes) {}

  // Reads up to the list of events. Fails if the text has none or cannot be read.
  Status read_header();
  const std::string& header() const { return header_; }
  bool is_header_damaged() const { return is_header_damaged_; }
  bool is_bare_event_list() const { return header_.empty(); }

  // Stores the next block in `block`, or returns false at the end. The blocks together are all text after the header.
  Result<bool> read_next_block(BlockBuffer& block);

 private:
  bool find_event_list(std::string_view text, bool is_complete_text, std::size_t& begin, bool& needs_more_text);

  TextReader read_text_;
  std::size_t block_bytes_;
  std::string header_;
  bool is_header_damaged_ = false;
  BlockBuffer pending_text_;  // read but not yet returned
  bool is_at_end_ = false;
};

}  // namespace joulemap::ingest::kineto
