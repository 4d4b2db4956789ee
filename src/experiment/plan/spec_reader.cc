// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/spec_reader.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace joulemap::experiment {

using formats::DocumentMember;
using formats::DocumentValue;

void Mistakes::add(std::size_t line, const std::string& what) {
  lines_.emplace_back(line,
                      line > 0 ? fmt::format("{}:{}: {}", file_, line, what) : fmt::format("{}: {}", file_, what));
}

Error Mistakes::error() const {
  std::vector<std::pair<std::size_t, std::string>> sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string message;
  for (const auto& [line, text] : sorted) message += (message.empty() ? "" : "\n") + text;
  return {ErrorCode::usage, message, "docs/experiment.md has the reference of this file"};
}

SpecReader::SpecReader(const DocumentValue* table, std::string where, Mistakes& mistakes)
    : table_(table), where_(std::move(where)), mistakes_(mistakes) {
  if (table_ == nullptr || table_->table() != nullptr) return;
  mistakes_.add(table_->line, where_ + " must be a table");
  table_ = nullptr;
}

std::size_t SpecReader::line() const { return table_ == nullptr ? 0 : table_->line; }

std::string SpecReader::named(std::string_view key) const {
  return where_.empty() ? std::string(key) : fmt::format("{} of {}", key, where_);
}

void SpecReader::wrong(const DocumentValue& value, const std::string& what) { mistakes_.add(value.line, what); }

const DocumentValue* SpecReader::any(std::string_view key) {
  asked_.emplace_back(key);
  return table_ == nullptr ? nullptr : table_->find(key);
}

void SpecReader::text(std::string_view key, std::string& into) {
  const DocumentValue* const value = any(key);
  if (value == nullptr) return;
  const std::optional<std::string> text = value->text();
  if (text && !text->empty()) {
    into = *text;
  } else {
    wrong(*value, named(key) + " must be a text in quotes, and not empty");
  }
}

void SpecReader::texts(std::string_view key, std::vector<std::string>& into) {
  const DocumentValue* const value = any(key);
  if (value == nullptr) return;
  std::vector<std::string> texts;
  for (const DocumentValue& element : value->array() == nullptr ? DocumentValue::Array{} : *value->array()) {
    if (const std::optional<std::string> text = element.text()) texts.push_back(*text);
  }
  if (value->array() == nullptr || texts.size() != value->array()->size()) {
    wrong(*value, named(key) + " must be a list of texts: [\"a\", \"b\"]");
    return;
  }
  into = std::move(texts);
}

void SpecReader::truth(std::string_view key, std::optional<bool>& into) {
  const DocumentValue* const value = any(key);
  if (value == nullptr) return;
  into = value->boolean();
  if (!into) wrong(*value, named(key) + " must be true or false");
}

void SpecReader::truth(std::string_view key, bool& into) {
  std::optional<bool> given;
  truth(key, given);
  into = given.value_or(into);
}

void SpecReader::number(std::string_view key, std::optional<double>& into, double least, double most) {
  const DocumentValue* const value = any(key);
  if (value == nullptr) return;
  const std::optional<double> number = value->number();
  if (number && *number >= least && *number <= most) {
    into = number;
  } else {
    wrong(*value, fmt::format("{} must be a number from {:g} to {:g}", named(key), least, most));
  }
}

void SpecReader::number(std::string_view key, double& into, double least, double most) {
  std::optional<double> given;
  number(key, given, least, most);
  into = given.value_or(into);
}

void SpecReader::count(std::string_view key, std::size_t& into, std::size_t least, std::size_t most) {
  const DocumentValue* const value = any(key);
  if (value == nullptr) return;
  const std::optional<std::int64_t> number = value->integer();
  if (number && *number >= static_cast<std::int64_t>(least) && *number <= static_cast<std::int64_t>(most)) {
    into = static_cast<std::size_t>(*number);
  } else {
    wrong(*value, fmt::format("{} must be a whole number from {} to {}", named(key), least, most));
  }
}

void SpecReader::command(std::string_view key, CommandSpec& into) {
  const DocumentValue* const value = any(key);
  if (value == nullptr) return;
  if (const std::optional<std::string> shell = value->text()) {
    if (trim(*shell).empty()) wrong(*value, named(key) + " is empty");
    into.shell = *shell;
    return;
  }
  std::vector<std::string> words;
  if (const DocumentValue::Array* const elements = value->array()) {
    for (const DocumentValue& element : *elements) {
      if (const std::optional<std::string> word = level_text(element)) words.push_back(*word);
    }
    if (!words.empty() && words.size() == elements->size() && !words.front().empty()) {
      into.words = std::move(words);
      return;
    }
  }
  wrong(*value, named(key) + " must be a list of words, [\"python\", \"train.py\"], or a text for the shell");
}

void SpecReader::finish() {
  if (table_ == nullptr) return;
  for (const DocumentMember& member : *table_->table()) {
    if (std::find(asked_.begin(), asked_.end(), member.key) != asked_.end()) continue;
    std::string known;
    for (auto key = asked_.begin(); key != asked_.end(); ++key) {
      if (std::find(asked_.begin(), key, *key) == key) known += (known.empty() ? "" : ", ") + *key;
    }
    wrong(member.value, fmt::format("{} knows no {}; it knows {}", where_.empty() ? "an experiment" : where_,
                                    joulemap::quoted(member.key), known));
  }
}

std::optional<std::string> level_text(const DocumentValue& value) {
  if (const std::optional<std::string> text = value.text()) return text;
  if (const std::optional<bool> truth = value.boolean()) return *truth ? "true" : "false";
  if (const std::optional<std::int64_t> whole = value.integer()) return fmt::format("{}", *whole);
  if (const std::optional<double> number = value.number()) return fmt::format("{}", *number);
  return std::nullopt;
}

}  // namespace joulemap::experiment
