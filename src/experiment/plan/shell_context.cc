// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/shell_context.h"

#include <utility>

namespace joulemap::experiment {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Characters that end a word (POSIX, Shell Command Language, 2.2 and 2.3).
bool ends_word(char c) { return is_blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos; }

}  // namespace

std::string_view ShellContext::unsafe_reason() const {
  if (in_here_document_)
    return "is in a here-document, where the shell executes $(...): pass it as an argument or variable";
  if (quote_ != 0 || delimiter_quote_ != 0) return "is inside quotes: remove them, joulemap quotes the value";
  if (escaped_) return "follows a backslash, which escapes its quotes: remove the backslash";
  if (in_backquotes_) return "is in backquotes, which a level may close: write $(...)";
  if (reads_delimiter_ || less_than_count_ == 2) return "is in the delimiter of a here-document";
  if (has_ansi_quotes_) return "follows $'...', which not every sh supports: use other quotes";
  return {};
}

void ShellContext::consume(char c) {
  if (in_here_document_) {
    consume_in_here_document(c);
  } else if (in_comment_) {
    in_comment_ = c != '\n';
    if (!in_comment_) consume_unquoted(c);
  } else if (reads_delimiter_ && consume_delimiter(c)) {
    return;
  } else if (escaped_) {
    escaped_ = false;
    less_than_count_ = 0;
    previous_ = 'x';  // an escaped character counts as an ordinary letter
  } else if (quote_ != 0) {
    consume_quoted(c);
  } else {
    consume_unquoted(c);
  }
}

void ShellContext::consume_in_here_document(char c) {
  if (c != '\n') {
    line_ += c;
    return;
  }
  std::string_view line = line_;
  while (here_documents_.front().strips_tabs && line.starts_with('\t')) line.remove_prefix(1);
  if (line == here_documents_.front().delimiter) here_documents_.pop_front();
  in_here_document_ = !here_documents_.empty();
  line_.clear();
  previous_ = '\n';
}

bool ShellContext::consume_delimiter(char c) {
  if (delimiter_quote_ != 0) {
    if (c == delimiter_quote_) {
      delimiter_quote_ = 0;
    } else {
      pending_document_.delimiter += c;
    }
    return true;
  }
  if (!delimiter_has_begun_ && c == '-' && previous_ == '<') {
    pending_document_.strips_tabs = true;
    previous_ = c;
    return true;
  }
  if (!delimiter_has_begun_ && is_blank(c)) {
    previous_ = c;
    return true;
  }
  if (ends_word(c)) {
    here_documents_.push_back(std::exchange(pending_document_, {}));
    reads_delimiter_ = delimiter_has_begun_ = false;
    return false;
  }
  delimiter_has_begun_ = true;
  if (c == '\'' || c == '"') {
    delimiter_quote_ = c;
  } else if (c != '\\') {
    pending_document_.delimiter += c;
  }
  return true;
}

void ShellContext::consume_quoted(char c) {
  if (c == '\\' && quote_ == '"') {
    escaped_ = true;
  } else if (c == '`' && quote_ == '"') {
    in_backquotes_ = !in_backquotes_;
  } else if (c == quote_) {
    quote_ = 0;
  }
  previous_ = 'x';
}

void ShellContext::consume_unquoted(char c) {
  const bool ends_signs = c != '<' && less_than_count_ == 2;  // "<<<" is a here-string
  less_than_count_ = c == '<' ? less_than_count_ + 1 : 0;
  if (ends_signs) {
    reads_delimiter_ = true;
    if (consume_delimiter(c)) return;
  }
  if (c == '\\') {
    escaped_ = true;
  } else if (c == '\'' || c == '"') {
    has_ansi_quotes_ = has_ansi_quotes_ || (c == '\'' && previous_ == '$');
    quote_ = c;
  } else if (c == '`') {
    in_backquotes_ = !in_backquotes_;
  } else if (c == '#' && ends_word(previous_)) {
    in_comment_ = true;
  } else if (c == '\n' && !here_documents_.empty()) {
    in_here_document_ = true;
  }
  previous_ = c;
}

}  // namespace joulemap::experiment
