// SPDX-License-Identifier: Apache-2.0
//
// ShellContext follows a text for sh character by character, far enough to say whether a word in single quotes, put in at
// this point, reaches the command as it is. Where it would not, why_not() has the reason: within quotes, after a backslash,
// in backquotes, in a here-document. When in doubt it refuses. One owner; keeps no text but the open here-documents' ends.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace joulemap::experiment {

class ShellContext {
 public:
  void see(char c);
  // Empty where a quoted word is safe.
  std::string_view why_not() const;

 private:
  struct HereDocument {
    std::string end;  // the line that ends it
    bool strips_tabs = false;
  };

  void see_document(char c);
  bool see_document_end(char c);  // whether `c` belongs to the word behind <<
  void see_quoted(char c);
  void see_plain(char c);

  char quote_ = 0;
  bool escaped_ = false;
  bool in_comment_ = false;
  bool in_backquotes_ = false;
  bool has_ansi_quotes_ = false;  // $'...', which some shells know and others do not
  char previous_ = '\n';
  int less_signs_ = 0;  // in a row
  bool reads_end_ = false;
  bool end_has_begun_ = false;
  char end_quote_ = 0;
  HereDocument opened_;                 // whose end is being read
  std::deque<HereDocument> documents_;  // begun on this line, or open now
  bool in_document_ = false;
  std::string line_;  // of the document, so far
};

}  // namespace joulemap::experiment
