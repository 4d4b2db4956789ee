// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/block_source.h"

#include <algorithm>
#include <cstring>

#include "formats/json_cursor.h"
#include "ingest/kineto/event_edges.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::size_t kMaxHeader_bytes = 16 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kEventListKey = "\"traceEvents\"";

Error not_a_kineto_trace_error(std::string_view reason) {
  return Error{ErrorCode::malformed, std::string(reason),
               "pass the file that torch.profiler's export_chrome_trace or tensorboard_trace_handler wrote"};
}

// Finds the start of the list by pattern alone, for a header with unescaped quotes. Returns the offset after its
// bracket, or npos.
std::size_t find_event_list_by_pattern(std::string_view text) {
  for (std::size_t key_offset = text.find(kEventListKey); key_offset != std::string_view::npos;
       key_offset = text.find(kEventListKey, key_offset + 1)) {
    std::size_t value_offset = key_offset + kEventListKey.size();
    const auto skip_space = [&] {
      while (value_offset < text.size() && formats::is_json_space(text[value_offset])) ++value_offset;
    };
    skip_space();
    if (value_offset >= text.size() || text[value_offset++] != ':') continue;
    skip_space();
    if (value_offset < text.size() && text[value_offset] == '[') return value_offset + 1;
  }
  return std::string_view::npos;
}

}  // namespace

void BlockBuffer::resize(std::size_t size) {
  if (capacity_ < size + formats::kScanPadding_bytes) {
    capacity_ = std::max(size + formats::kScanPadding_bytes, capacity_ + capacity_ / 2);
    std::unique_ptr<char[]> larger_buffer = std::make_unique_for_overwrite<char[]>(capacity_);
    if (size_ > 0) std::memcpy(larger_buffer.get(), bytes_.get(), size_);
    bytes_ = std::move(larger_buffer);
  }
  size_ = size;
  std::memset(bytes_.get() + size_, 0, formats::kScanPadding_bytes);
}

void BlockBuffer::truncate(std::size_t size) { resize(size); }

void BlockBuffer::assign(std::string_view text) {
  size_ = 0;
  append(text);
}

void BlockBuffer::append(std::string_view text) {
  const std::size_t previous_size = size_;
  resize(previous_size + text.size());
  if (!text.empty()) std::memcpy(bytes_.get() + previous_size, text.data(), text.size());
}

void BlockBuffer::drop_front(std::size_t byte_count) {
  std::memmove(bytes_.get(), bytes_.get() + byte_count, size_ - byte_count);
  file_offset += byte_count;
  resize(size_ - byte_count);
}

Result<bool> BlockBuffer::read_more_text(const TextReader& read, std::size_t count) {
  const std::size_t previous_size = size_;
  resize(previous_size + count);
  Result<std::size_t> read_byte_count = read({bytes_.get() + previous_size, count});
  resize(previous_size + (read_byte_count ? *read_byte_count : 0));
  if (!read_byte_count) return std::move(read_byte_count).error();
  return *read_byte_count == count;
}

// Sets `begin` behind the bracket of the member "traceEvents", or of a bare list. Returns false if neither is found;
// `needs_more_text` is then whether it may follow. `is_complete_text`: no more text can be read.
bool BlockSource::find_event_list(std::string_view text, bool is_complete_text, std::size_t& begin,
                                  bool& needs_more_text) {
  formats::JsonCursor json(text.data() + begin, text.data() + text.size());
  if (json.peek() == '[') {
    json.enter_array();
    begin = static_cast<std::size_t>(json.at() - text.data());
    return true;
  }
  json.enter_object();
  for (std::string_view key; json.next_member(key);) {
    if (key == "traceEvents" && json.peek() == '[') {
      json.enter_array();
      begin = static_cast<std::size_t>(json.at() - text.data());
      header_ = text.substr(0, begin);
      return true;
    }
    json.skip();
  }
  needs_more_text = json.needs_more_text();
  if (needs_more_text && !is_complete_text) return false;
  is_header_damaged_ = json.failed();
  const std::size_t event_list_offset = json.failed() ? find_event_list_by_pattern(text) : std::string_view::npos;
  if (event_list_offset == std::string_view::npos) {
    needs_more_text = json.failed();
    return false;
  }
  begin = event_list_offset;
  header_ = text.substr(0, begin);
  return true;
}

Status BlockSource::read_header() {
  std::size_t begin = 0;
  for (bool needs_more_text = true; needs_more_text;) {
    Result<bool> read_result = pending_text_.read_more_text(read_text_, block_bytes_);
    if (!read_result) return std::move(read_result).error();
    is_at_end_ = !*read_result;
    const std::string_view text = pending_text_.contents();
    begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    const std::size_t content_offset = text.find_first_not_of(" \t\r\n", begin);
    if (content_offset == std::string_view::npos && !is_at_end_) continue;
    if (content_offset == std::string_view::npos) return not_a_kineto_trace_error("the file is empty");
    if (text[content_offset] != '{' && text[content_offset] != '[')
      return not_a_kineto_trace_error("the file is not JSON");
    const bool is_complete_text = is_at_end_ || text.size() > kMaxHeader_bytes;
    if (find_event_list(text, is_complete_text, begin, needs_more_text)) {
      pending_text_.drop_front(begin);
      return Done{};
    }
    if (is_complete_text) break;
  }
  return not_a_kineto_trace_error("the file is JSON, but it has no list \"traceEvents\"");
}

Result<bool> BlockSource::read_next_block(BlockBuffer& block) {
  if (!is_at_end_) {
    Result<bool> read_result = pending_text_.read_more_text(read_text_, block_bytes_);
    if (!read_result) return std::move(read_result).error();
    is_at_end_ = !*read_result;
  }
  const std::string_view text = pending_text_.contents();
  if (text.empty()) return false;
  const std::size_t edge = is_at_end_ ? std::string_view::npos : find_last_event_start(text);
  const std::size_t size = edge == std::string_view::npos ? text.size() : edge;
  std::swap(block, pending_text_);  // avoids a copy of the block; only the text after `edge` is copied
  pending_text_.file_offset = block.file_offset + size;
  pending_text_.assign(block.contents().substr(size));
  block.truncate(size);
  return true;
}

}  // namespace joulemap::ingest::kineto
