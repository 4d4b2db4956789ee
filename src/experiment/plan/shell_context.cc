// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/shell_context.h"

#include <utility>

namespace joulemap::experiment {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Characters that end a word (POSIX, Shell Command Language, 2.2 and 2.3).
bool ends_word(char c) { return is_blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos; }

}  // namespace

std::string_view ShellContext::why_not() const {
  if (in_document_)
    return "stands in a here-document, where the shell executes $(...): pass it as an argument or variable";
  if (quote_ != 0 || end_quote_ != 0) return "stands within quotes: leave them out, it is quoted by itself";
  if (escaped_) return "stands behind a backslash, which takes its quotes away: leave it out";
  if (in_backquotes_) return "stands in backquotes, which a level may close: write $(...)";
  if (reads_end_ || less_signs_ == 2) return "stands where a here-document names its end";
  if (has_ansi_quotes_) return "follows $'...', which not every sh reads: use other quotes";
  return {};
}

void ShellContext::see(char c) {
  if (in_document_) {
    see_document(c);
  } else if (in_comment_) {
    in_comment_ = c != '\n';
    if (!in_comment_) see_plain(c);
  } else if (reads_end_ && see_document_end(c)) {
    return;
  } else if (escaped_) {
    escaped_ = false;
    less_signs_ = 0;
    previous_ = 'x';  // an escaped character counts as an ordinary letter
  } else if (quote_ != 0) {
    see_quoted(c);
  } else {
    see_plain(c);
  }
}

void ShellContext::see_document(char c) {
  if (c != '\n') {
    line_ += c;
    return;
  }
  std::string_view line = line_;
  while (documents_.front().strips_tabs && line.starts_with('\t')) line.remove_prefix(1);
  if (line == documents_.front().end) documents_.pop_front();
  in_document_ = !documents_.empty();
  line_.clear();
  previous_ = '\n';
}

bool ShellContext::see_document_end(char c) {
  if (end_quote_ != 0) {
    if (c == end_quote_) {
      end_quote_ = 0;
    } else {
      opened_.end += c;
    }
    return true;
  }
  if (!end_has_begun_ && c == '-' && previous_ == '<') {
    opened_.strips_tabs = true;
    previous_ = c;
    return true;
  }
  if (!end_has_begun_ && is_blank(c)) {
    previous_ = c;
    return true;
  }
  if (ends_word(c)) {
    documents_.push_back(std::exchange(opened_, {}));
    reads_end_ = end_has_begun_ = false;
    return false;
  }
  end_has_begun_ = true;
  if (c == '\'' || c == '"') {
    end_quote_ = c;
  } else if (c != '\\') {
    opened_.end += c;
  }
  return true;
}

void ShellContext::see_quoted(char c) {
  if (c == '\\' && quote_ == '"') {
    escaped_ = true;
  } else if (c == '`' && quote_ == '"') {
    in_backquotes_ = !in_backquotes_;
  } else if (c == quote_) {
    quote_ = 0;
  }
  previous_ = 'x';
}

void ShellContext::see_plain(char c) {
  const bool ends_signs = c != '<' && less_signs_ == 2;  // "<<<" is a here-string
  less_signs_ = c == '<' ? less_signs_ + 1 : 0;
  if (ends_signs) {
    reads_end_ = true;
    if (see_document_end(c)) return;
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
  } else if (c == '\n' && !documents_.empty()) {
    in_document_ = true;
  }
  previous_ = c;
}

}  // namespace joulemap::experiment
