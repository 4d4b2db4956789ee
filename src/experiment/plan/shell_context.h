// SPDX-License-Identifier: Apache-2.0
//
// ShellContext parses a text for sh character by character. It determines whether a single-quoted word inserted at the
// current position reaches the command unchanged. If not, unsafe_insertion_reason() returns the reason: within quotes,
// after a backslash, in backquotes, in a here-document. When in doubt it refuses. One owner; stores only the delimiters
// of open here-documents.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace joulemap::experiment {

class ShellContext {
 public:
  void consume_character(char c);
  // Reason why a quoted word is not safe here; empty if it is safe.
  std::string_view unsafe_insertion_reason() const;

 private:
  struct HereDocument {
    std::string delimiter;  // the line that ends the here-document
    bool strips_tabs = false;
  };

  void consume_in_here_document(char c);
  bool consume_delimiter(char c);  // whether `c` belongs to the delimiter word after <<
  void consume_quoted(char c);
  void consume_unquoted(char c);

  char open_quote_ = 0;
  bool is_escaped_ = false;
  bool is_in_comment_ = false;
  bool is_in_backquotes_ = false;
  bool has_ansi_quotes_ = false;  // $'...', which not every shell supports
  char previous_character_ = '\n';
  int less_than_count_ = 0;  // count of consecutive '<'
  bool is_reading_delimiter_ = false;
  bool has_delimiter_begun_ = false;
  char delimiter_quote_ = 0;
  HereDocument pending_here_document_;       // here-document whose delimiter is being read
  std::deque<HereDocument> here_documents_;  // those started on this line, or the open ones
  bool is_in_here_document_ = false;
  std::string here_document_line_;  // current line of the here-document, so far
};

}  // namespace joulemap::experiment
