// SPDX-License-Identifier: Apache-2.0
//
// LiveLine: a status line at the bottom of the terminal on stderr while another program writes to the same terminal.
// The last line is taken out of the region that scrolls, as apt does it, so that neither overwrites the other. The
// destructor gives it back. Main thread.
#pragma once

#include <memory>
#include <string_view>

namespace joulemap::cli {

class LiveLine {
 public:
  // None if stderr is no terminal that can do this.
  static std::unique_ptr<LiveLine> open();
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Replaces the line; longer text is cut.
  void show(std::string_view text);

 private:
  LiveLine() = default;
  void reserve(unsigned rows);

  unsigned rows_ = 0;  // of the terminal when the line was reserved; 0: not reserved
};

}  // namespace joulemap::cli
