// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/block_reader.h"

#include <algorithm>
#include <utility>

#include "ingest/kineto/event_edges.h"

namespace joulemap::ingest::kineto {
namespace {

using formats::JsonPosition;
using formats::QuoteRule;

// The search for valid events in broken text may parse kMaxPasses times the block, plus kFreeSearch bytes, so that
// parsing of garbage ends in bounded time.
constexpr std::size_t kMaxPasses = 16;
constexpr std::size_t kFreeSearch = 1 << 20;

class BlockParser {
 public:
  BlockParser(std::string_view text, bool is_last, EventTables& tables)
      : text_(text), is_last_(is_last), tables_(tables), search_budget_(kMaxPasses * text.size() + kFreeSearch) {
    tables_.block_events.clear();
  }

  ParsedBlock run() {
    while (!is_done_) step();
    block_.events = tables_.block_events;  // a copy without spare capacity; block_events is reused
    return std::move(block_);
  }

 private:
  // Parses one event or the end of the list, or skips garbage.
  void step() {
    while (at_ < text_.size() && (formats::is_json_space(text_[at_]) || text_[at_] == ',')) ++at_;
    if (at_ >= text_.size()) return finish(BlockEnd::after_event, text_.size());
    if (text_[at_] == '{') return parse_next_event();
    if (text_[at_] == ']' && is_end_of_list(at_ + 1)) return finish(BlockEnd::end_of_event_list, at_ + 1);
    count_dropped();
    continue_at(find_event_start(text_, at_));
  }

  void parse_next_event() {
    const JsonPosition step = read_at(at_, QuoteRule::strict, raw_);
    if (!step.failed) return add_event(raw_, step);
    if (needs_more_text(step)) return finish(BlockEnd::inside_event, at_);
    consume_budget(step);
    recover();
  }

  JsonPosition read_at(std::size_t at, QuoteRule rule, RawEvent& raw) const {
    return read_event(text_.data() + at, text_.data() + text_.size(), rule, raw);
  }
  // Whether parsing failed at the end of the text, with more text to come.
  bool needs_more_text(const JsonPosition& step) const {
    return step.failed && step.at >= text_.data() + text_.size() && !is_last_;
  }

  void add_event(const RawEvent& raw, const JsonPosition& step) {
    if (raw.phase == '\0') {
      if (!is_empty_object()) count_dropped();
    } else if (!tables_.add(raw, tables_.block_events, block_.counts)) {
      note_first_damage();
    }
    at_ = static_cast<std::size_t>(step.at - text_.data());
  }

  // Parses the broken event at at_ with the lenient rule, else drops it and moves to the next event that can be parsed.
  void recover() {
    const JsonPosition lenient = read_at(at_, QuoteRule::lenient, raw_);
    if (!lenient.failed && raw_.phase != '\0' && !runs_into_next_event(lenient)) {
      ++block_.counts.repaired;
      note_first_damage();
      return add_event(raw_, lenient);
    }
    consume_budget(lenient);
    count_dropped();
    for (std::size_t next = find_event_start(text_, at_ + 1); search_budget_ > 0;
         next = find_event_start(text_, next + 1)) {
      if (next == std::string_view::npos) return continue_at(next);
      const JsonPosition tried = read_at(next, QuoteRule::strict, raw_);
      if (!tried.failed && raw_.phase != '\0') return continue_at(next);
      if (needs_more_text(tried)) return finish(BlockEnd::inside_event, next);
      consume_budget(tried);
    }
    finish(BlockEnd::after_event, text_.size());
  }

  // Whether a leniently parsed event contains the start of another one: an unescaped backslash before a closing quote
  // hides the quote, so that the string continues into the next event.
  bool runs_into_next_event(const JsonPosition& step) const {
    const std::string_view read = text_.substr(0, static_cast<std::size_t>(step.at - text_.data()));
    return find_event_start_after_event(read, at_ + 1) != std::string_view::npos;
  }

  // Some writers end the list with an empty object, to avoid a trailing comma.
  bool is_empty_object() const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", at_ + 1);
    return next != std::string_view::npos && text_[next] == '}';
  }

  // In broken text a bracket inside an event may look like the end of the list. After the real end comes a comma, a
  // closing brace or the end of the text.
  bool is_end_of_list(std::size_t behind) const {
    while (behind < text_.size() && formats::is_json_space(text_[behind])) ++behind;
    return behind >= text_.size() || text_[behind] == ',' || text_[behind] == '}';
  }

  void consume_budget(const JsonPosition& step) {
    const auto read = static_cast<std::size_t>(step.at - text_.data()) - at_ + 1;
    search_budget_ -= std::min(search_budget_, read);
  }
  void note_first_damage() {
    if (!block_.first_damage_offset) block_.first_damage_offset = at_;
  }
  void count_dropped() {
    note_first_damage();
    ++block_.counts.total;
    ++block_.counts.dropped;
  }
  void continue_at(std::size_t position) {
    if (position != std::string_view::npos) {
      at_ = position;
      return;
    }
    const std::size_t behind = find_event_list_end(text_, at_);
    if (behind != std::string_view::npos) return finish(BlockEnd::end_of_event_list, behind);
    finish(BlockEnd::after_event, text_.size());
  }
  void finish(BlockEnd end, std::size_t at) {
    block_.end = end;
    block_.end_offset = at;
    is_done_ = true;
  }

  std::string_view text_;
  bool is_last_;
  EventTables& tables_;
  std::size_t search_budget_;
  std::size_t at_ = 0;
  bool is_done_ = false;
  RawEvent raw_;  // the current event
  ParsedBlock block_;
};

}  // namespace

ParsedBlock parse_json_block(std::string_view text, bool is_last, EventTables& tables) {
  return BlockParser(text, is_last, tables).run();
}

}  // namespace joulemap::ingest::kineto
