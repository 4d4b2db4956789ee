// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/block_reader.h"

#include <algorithm>
#include <utility>

#include "ingest/kineto/event_edges.h"

namespace joulemap::ingest::kineto {
namespace {

using formats::JsonPosition;
using formats::QuoteRule;

// The search for valid events in broken text may parse kMaxSearchPasses times the block, plus kMinSearchBudget_bytes
// bytes, so that parsing of garbage ends in bounded time.
constexpr std::size_t kMaxSearchPasses = 16;
constexpr std::size_t kMinSearchBudget_bytes = 1 << 20;

class BlockParser {
 public:
  BlockParser(std::string_view text, bool is_last, EventTables& tables)
      : text_(text),
        is_last_block_(is_last),
        tables_(tables),
        remaining_search_bytes_(kMaxSearchPasses * text.size() + kMinSearchBudget_bytes) {
    tables_.block_events.clear();
  }

  ParsedBlock parse_block_events() {
    while (!is_done_) parse_next_list_item();
    parsed_block_.events = tables_.block_events;  // a copy without spare capacity; block_events is reused
    return std::move(parsed_block_);
  }

 private:
  // Parses one event or the end of the list, or skips garbage.
  void parse_next_list_item() {
    while (position_ < text_.size() && (formats::is_json_space(text_[position_]) || text_[position_] == ','))
      ++position_;
    if (position_ >= text_.size()) return finish_block(BlockEndReason::after_event, text_.size());
    if (text_[position_] == '{') return parse_next_event();
    if (text_[position_] == ']' && is_end_of_event_list(position_ + 1))
      return finish_block(BlockEndReason::end_of_event_list, position_ + 1);
    count_dropped_event();
    resume_at_event(find_event_start(text_, position_));
  }

  void parse_next_event() {
    const JsonPosition step = read_event_at(position_, QuoteRule::strict, raw_event_);
    if (!step.failed) return add_event(raw_event_, step);
    if (needs_more_text(step)) return finish_block(BlockEndReason::inside_event, position_);
    consume_search_budget(step);
    recover_broken_event();
  }

  JsonPosition read_event_at(std::size_t event_offset, QuoteRule rule, RawEvent& raw) const {
    return read_event(text_.data() + event_offset, text_.data() + text_.size(), rule, raw);
  }
  // Whether parsing failed at the end of the text, with more text to come.
  bool needs_more_text(const JsonPosition& step) const {
    return step.failed && step.at >= text_.data() + text_.size() && !is_last_block_;
  }

  void add_event(const RawEvent& raw, const JsonPosition& step) {
    if (raw.phase == '\0') {
      if (!is_empty_object()) count_dropped_event();
    } else if (!tables_.add(raw, tables_.block_events, parsed_block_.event_counts)) {
      record_first_damage_offset();
    }
    position_ = static_cast<std::size_t>(step.at - text_.data());
  }

  // Parses the broken event at position_ with the lenient rule, else drops it and moves to the next event that can be
  // parsed.
  void recover_broken_event() {
    const JsonPosition lenient = read_event_at(position_, QuoteRule::lenient, raw_event_);
    if (!lenient.failed && raw_event_.phase != '\0' && !contains_next_event(lenient)) {
      ++parsed_block_.event_counts.repaired_event_count;
      record_first_damage_offset();
      return add_event(raw_event_, lenient);
    }
    consume_search_budget(lenient);
    count_dropped_event();
    for (std::size_t event_offset = find_event_start(text_, position_ + 1); remaining_search_bytes_ > 0;
         event_offset = find_event_start(text_, event_offset + 1)) {
      if (event_offset == std::string_view::npos) return resume_at_event(event_offset);
      const JsonPosition parse_position = read_event_at(event_offset, QuoteRule::strict, raw_event_);
      if (!parse_position.failed && raw_event_.phase != '\0') return resume_at_event(event_offset);
      if (needs_more_text(parse_position)) return finish_block(BlockEndReason::inside_event, event_offset);
      consume_search_budget(parse_position);
    }
    finish_block(BlockEndReason::after_event, text_.size());
  }

  // Whether a leniently parsed event contains the start of another one: an unescaped backslash before a closing quote
  // hides the quote, so that the string continues into the next event.
  bool contains_next_event(const JsonPosition& step) const {
    const std::string_view read_text = text_.substr(0, static_cast<std::size_t>(step.at - text_.data()));
    return find_event_start_after_event(read_text, position_ + 1) != std::string_view::npos;
  }

  // Some writers end the list with an empty object, to avoid a trailing comma.
  bool is_empty_object() const {
    const std::size_t next_token_offset = text_.find_first_not_of(" \t\r\n", position_ + 1);
    return next_token_offset != std::string_view::npos && text_[next_token_offset] == '}';
  }

  // In broken text a bracket inside an event may look like the end of the list. After the real end comes a comma, a
  // closing brace or the end of the text.
  bool is_end_of_event_list(std::size_t end_position) const {
    while (end_position < text_.size() && formats::is_json_space(text_[end_position])) ++end_position;
    return end_position >= text_.size() || text_[end_position] == ',' || text_[end_position] == '}';
  }

  void consume_search_budget(const JsonPosition& step) {
    const auto read_byte_count = static_cast<std::size_t>(step.at - text_.data()) - position_ + 1;
    remaining_search_bytes_ -= std::min(remaining_search_bytes_, read_byte_count);
  }
  void record_first_damage_offset() {
    if (!parsed_block_.first_damage_offset) parsed_block_.first_damage_offset = position_;
  }
  void count_dropped_event() {
    record_first_damage_offset();
    ++parsed_block_.event_counts.event_count;
    ++parsed_block_.event_counts.dropped_event_count;
  }
  void resume_at_event(std::size_t position) {
    if (position != std::string_view::npos) {
      position_ = position;
      return;
    }
    const std::size_t end_position = find_event_list_end(text_, position_);
    if (end_position != std::string_view::npos) return finish_block(BlockEndReason::end_of_event_list, end_position);
    finish_block(BlockEndReason::after_event, text_.size());
  }
  void finish_block(BlockEndReason end, std::size_t end_offset) {
    parsed_block_.end_reason = end;
    parsed_block_.end_offset = end_offset;
    is_done_ = true;
  }

  std::string_view text_;
  bool is_last_block_;
  EventTables& tables_;
  std::size_t remaining_search_bytes_;
  std::size_t position_ = 0;
  bool is_done_ = false;
  RawEvent raw_event_;  // the current event
  ParsedBlock parsed_block_;
};

}  // namespace

ParsedBlock parse_json_block(std::string_view text, bool is_last, EventTables& tables) {
  return BlockParser(text, is_last, tables).parse_block_events();
}

}  // namespace joulemap::ingest::kineto
