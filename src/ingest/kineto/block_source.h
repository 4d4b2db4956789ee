// SPDX-License-Identifier: Apache-2.0
//
// BlockSource: cuts the text of a trace, as it comes from a file or from memory, into blocks that likely begin and end
// between events. What stands before the list of events is its header. Owned by the reader of the trace; whichever thread
// needs a block asks for it, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::ingest::kineto {

// Fills all of the room but at the end of the text; 0 ever after.
using ReadText = std::function<Result<std::size_t>(std::span<char>)>;

// A stretch of text with the padding that formats/byte_scan.h asks for.
class BlockText {
 public:
  std::string_view view() const { return {bytes_.get(), size_}; }
  std::uint64_t offset = 0;  // of its first byte in the whole text

  void assign(std::string_view text);
  void append(std::string_view text);
  // Keeps what is behind `from`.
  void drop_front(std::size_t from);
  // Reads up to `count` bytes behind the text. False: the text is over, or cannot be read.
  Result<bool> read_more(const ReadText& read, std::size_t count);
  void cut(std::size_t size);

 private:
  void resize(std::size_t size);

  std::unique_ptr<char[]> bytes_;
  std::size_t room_ = 0;
  std::size_t size_ = 0;
};

class BlockSource {
 public:
  BlockSource(ReadText read, std::size_t block_bytes) : read_(std::move(read)), block_bytes_(block_bytes) {}

  // Reads up to the list of events. An error when the text has none, or cannot be read.
  Status find_events();
  const std::string& header() const { return header_; }
  bool header_is_damaged() const { return header_is_damaged_; }
  bool is_bare_list() const { return header_.empty(); }

  // False: there is no more. The blocks, one after the other, are all of the text behind the header.
  Result<bool> next(BlockText& block);

 private:
  bool find_list(std::string_view text, bool is_all, std::size_t& begin, bool& wants_more);

  ReadText read_;
  std::size_t block_bytes_;
  std::string header_;
  bool header_is_damaged_ = false;
  BlockText rest_;  // read, and not yet given
  bool over_ = false;
};

}  // namespace joulemap::ingest::kineto
