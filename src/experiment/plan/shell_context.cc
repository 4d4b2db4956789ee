// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/shell_context.h"

#include <utility>

namespace joulemap::experiment {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Characters that end a word (POSIX, Shell Command Language, 2.2 and 2.3).
bool is_word_end(char c) { return is_blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos; }

}  // namespace

std::string_view ShellContext::unsafe_insertion_reason() const {
  if (is_in_here_document_)
    return "is in a here-document, where the shell executes $(...): pass it as an argument or variable";
  if (open_quote_ != 0 || delimiter_quote_ != 0) return "is inside quotes: remove them, joulemap quotes the value";
  if (is_escaped_) return "follows a backslash, which escapes its quotes: remove the backslash";
  if (is_in_backquotes_) return "is in backquotes, which a level may close: write $(...)";
  if (is_reading_delimiter_ || less_than_count_ == 2) return "is in the delimiter of a here-document";
  if (has_ansi_quotes_) return "follows $'...', which not every sh supports: use other quotes";
  return {};
}

void ShellContext::consume_character(char c) {
  if (is_in_here_document_) {
    consume_in_here_document(c);
  } else if (is_in_comment_) {
    is_in_comment_ = c != '\n';
    if (!is_in_comment_) consume_unquoted(c);
  } else if (is_reading_delimiter_ && consume_delimiter(c)) {
    return;
  } else if (is_escaped_) {
    is_escaped_ = false;
    less_than_count_ = 0;
    previous_character_ = 'x';  // an escaped character counts as an ordinary letter
  } else if (open_quote_ != 0) {
    consume_quoted(c);
  } else {
    consume_unquoted(c);
  }
}

void ShellContext::consume_in_here_document(char c) {
  if (c != '\n') {
    here_document_line_ += c;
    return;
  }
  std::string_view line = here_document_line_;
  while (here_documents_.front().strips_tabs && line.starts_with('\t')) line.remove_prefix(1);
  if (line == here_documents_.front().delimiter) here_documents_.pop_front();
  is_in_here_document_ = !here_documents_.empty();
  here_document_line_.clear();
  previous_character_ = '\n';
}

bool ShellContext::consume_delimiter(char c) {
  if (delimiter_quote_ != 0) {
    if (c == delimiter_quote_) {
      delimiter_quote_ = 0;
    } else {
      pending_here_document_.delimiter += c;
    }
    return true;
  }
  if (!has_delimiter_begun_ && c == '-' && previous_character_ == '<') {
    pending_here_document_.strips_tabs = true;
    previous_character_ = c;
    return true;
  }
  if (!has_delimiter_begun_ && is_blank(c)) {
    previous_character_ = c;
    return true;
  }
  if (is_word_end(c)) {
    here_documents_.push_back(std::exchange(pending_here_document_, {}));
    is_reading_delimiter_ = has_delimiter_begun_ = false;
    return false;
  }
  has_delimiter_begun_ = true;
  if (c == '\'' || c == '"') {
    delimiter_quote_ = c;
  } else if (c != '\\') {
    pending_here_document_.delimiter += c;
  }
  return true;
}

void ShellContext::consume_quoted(char c) {
  if (c == '\\' && open_quote_ == '"') {
    is_escaped_ = true;
  } else if (c == '`' && open_quote_ == '"') {
    is_in_backquotes_ = !is_in_backquotes_;
  } else if (c == open_quote_) {
    open_quote_ = 0;
  }
  previous_character_ = 'x';
}

void ShellContext::consume_unquoted(char c) {
  const bool ends_signs = c != '<' && less_than_count_ == 2;  // "<<<" is a here-string
  less_than_count_ = c == '<' ? less_than_count_ + 1 : 0;
  if (ends_signs) {
    is_reading_delimiter_ = true;
    if (consume_delimiter(c)) return;
  }
  if (c == '\\') {
    is_escaped_ = true;
  } else if (c == '\'' || c == '"') {
    has_ansi_quotes_ = has_ansi_quotes_ || (c == '\'' && previous_character_ == '$');
    open_quote_ = c;
  } else if (c == '`') {
    is_in_backquotes_ = !is_in_backquotes_;
  } else if (c == '#' && is_word_end(previous_character_)) {
    is_in_comment_ = true;
  } else if (c == '\n' && !here_documents_.empty()) {
    is_in_here_document_ = true;
  }
  previous_character_ = c;
}

}  // namespace joulemap::experiment
