// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/block_reader.h"

#include <algorithm>
#include <utility>

#include "ingest/kineto/event_edges.h"

namespace joulemap::ingest::kineto {
namespace {

using formats::JsonStep;
using formats::QuoteRule;

// Limits how often text is parsed again in search of valid events, so that garbage ends in bounded time.
constexpr std::size_t kMostPasses = 16;
constexpr std::size_t kFreeSearch = 1 << 20;

class BlockReading {
 public:
  BlockReading(std::string_view text, bool is_last, EventTables& tables)
      : text_(text), is_last_(is_last), tables_(tables), patience_(kMostPasses * text.size() + kFreeSearch) {
    tables_.scratch.clear();
  }

  ReadBlock run() {
    while (!over_) step();
    block_.events = tables_.scratch;  // copy of exact size
    return std::move(block_);
  }

 private:
  // Parses one event, the end of the list, or garbage.
  void step() {
    while (at_ < text_.size() && (formats::is_json_space(text_[at_]) || text_[at_] == ',')) ++at_;
    if (at_ >= text_.size()) return finish(BlockEnd::clean, text_.size());
    if (text_[at_] == '{') return read_one();
    if (text_[at_] == ']' && is_end_of_list(at_ + 1)) return finish(BlockEnd::events_over, at_ + 1);
    note_damage();
    go_on_at(find_event(text_, at_));
  }

  void read_one() {
    const JsonStep step = read_at(at_, QuoteRule::first_ends, raw_);
    if (!step.failed) return take(raw_, step);
    if (wants_more(step)) return finish(BlockEnd::unfinished, at_);
    spend(step);
    recover();
  }

  JsonStep read_at(std::size_t at, QuoteRule rule, RawEvent& raw) const {
    return read_event(text_.data() + at, text_.data() + text_.size(), rule, raw);
  }
  // Whether parsing failed at the end of the text, with more text to come.
  bool wants_more(const JsonStep& step) const {
    return step.failed && step.at >= text_.data() + text_.size() && !is_last_;
  }

  void take(const RawEvent& raw, const JsonStep& step) {
    if (raw.phase == '\0') {
      if (!is_empty_object()) note_damage();
    } else if (!tables_.add(raw, tables_.scratch, block_.notes)) {
      note_scope();
    }
    at_ = static_cast<std::size_t>(step.at - text_.data());
  }

  // Parses the event at this position with the lenient rule, or finds the next one that can be parsed.
  void recover() {
    const JsonStep kinder = read_at(at_, QuoteRule::likely_ends, raw_);
    if (!kinder.failed && raw_.phase != '\0' && !swallows_another(kinder)) {
      ++block_.notes.repaired;
      note_scope();
      return take(raw_, kinder);
    }
    spend(kinder);
    note_damage();
    for (std::size_t next = find_event(text_, at_ + 1); patience_ > 0; next = find_event(text_, next + 1)) {
      if (next == std::string_view::npos) return go_on_at(next);
      const JsonStep tried = read_at(next, QuoteRule::first_ends, raw_);
      if (!tried.failed && raw_.phase != '\0') return go_on_at(next);
      if (wants_more(tried)) return finish(BlockEnd::unfinished, next);
      spend(tried);
    }
    finish(BlockEnd::clean, text_.size());
  }

  // An unescaped backslash hides the quote behind it: the text then runs into the next event.
  bool swallows_another(const JsonStep& step) const {
    const std::string_view read = text_.substr(0, static_cast<std::size_t>(step.at - text_.data()));
    return find_event_behind_another(read, at_ + 1) != std::string_view::npos;
  }

  // Some writers end the list with an empty object, to avoid a trailing comma.
  bool is_empty_object() const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", at_ + 1);
    return next != std::string_view::npos && text_[next] == '}';
  }

  // In broken text a bracket may look like the end of the list; then something else follows.
  bool is_end_of_list(std::size_t behind) const {
    while (behind < text_.size() && formats::is_json_space(text_[behind])) ++behind;
    return behind >= text_.size() || text_[behind] == ',' || text_[behind] == '}';
  }

  void spend(const JsonStep& step) {
    const auto read = static_cast<std::size_t>(step.at - text_.data()) - at_ + 1;
    patience_ -= std::min(patience_, read);
  }
  void note_scope() {
    if (!block_.first_damage) block_.first_damage = at_;
  }
  void note_damage() {
    note_scope();
    ++block_.notes.seen;
    ++block_.notes.dropped;
  }
  void go_on_at(std::size_t position) {
    if (position != std::string_view::npos) {
      at_ = position;
      return;
    }
    const std::size_t behind = find_end_of_events(text_, at_);
    if (behind != std::string_view::npos) return finish(BlockEnd::events_over, behind);
    finish(BlockEnd::clean, text_.size());
  }
  void finish(BlockEnd end, std::size_t at) {
    block_.end = end;
    block_.end_at = at;
    over_ = true;
  }

  std::string_view text_;
  bool is_last_;
  EventTables& tables_;
  std::size_t patience_;
  std::size_t at_ = 0;
  bool over_ = false;
  RawEvent raw_;  // the current event
  ReadBlock block_;
};

}  // namespace

ReadBlock read_block(std::string_view text, bool is_last, EventTables& tables) {
  return BlockReading(text, is_last, tables).run();
}

}  // namespace joulemap::ingest::kineto
