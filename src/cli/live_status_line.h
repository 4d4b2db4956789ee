// SPDX-License-Identifier: Apache-2.0
//
// LiveStatusLine: a status line in the last row of the terminal on stderr, while the measured command writes to the
// same terminal. The last row is excluded from the scroll region, as apt does, so that neither output overwrites the
// other. The destructor restores the scroll region. Main thread.
#pragma once

#include <memory>
#include <string_view>

namespace joulemap::cli {

class LiveStatusLine {
 public:
  // Returns null if stderr is not a terminal, TERM is unset or "dumb", or the terminal has fewer than 4 rows.
  static std::unique_ptr<LiveStatusLine> open();
  ~LiveStatusLine();
  LiveStatusLine(const LiveStatusLine&) = delete;
  LiveStatusLine& operator=(const LiveStatusLine&) = delete;

  // Replaces the line; shortens text that is wider than the terminal.
  void show(std::string_view text);

 private:
  LiveStatusLine() = default;
  void reserve_last_row(unsigned rows);

  unsigned terminal_row_count_ = 0;  // rows of the terminal when its last row was reserved; 0: not reserved
};

}  // namespace joulemap::cli
