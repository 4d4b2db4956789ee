// SPDX-License-Identifier: Apache-2.0
#include "cli/live_status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cli/terminal.h"
#include "report/text/text_style.h"

namespace joulemap::cli {
namespace {

// Control sequences of ECMA-48 and DEC that every terminal emulator knows.
constexpr std::string_view kSaveCursor =
    "\x1b"
    "7";
constexpr std::string_view kRestoreCursor =
    "\x1b"
    "8";
constexpr std::string_view kClearLine = "\x1b[2K";
constexpr unsigned kMinTerminalRows = 4;

winsize query_terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

// Writes to stderr directly, because write_to_stream() would escape control sequences. Ignores errors: the line is
// optional.
void write_escape_sequence(std::string_view text) {
  const ssize_t written_byte_count = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written_byte_count);
}

std::string set_scroll_region(unsigned rows) {
  return fmt::format("{}\x1b[1;{}r{}", kSaveCursor, rows, kRestoreCursor);
}

}  // namespace

std::unique_ptr<LiveStatusLine> LiveStatusLine::open() {
  const char* const term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): main thread
  if (!stderr_is_terminal() || term == nullptr || std::string_view(term) == "dumb") return nullptr;
  if (query_terminal_size().ws_row < kMinTerminalRows) return nullptr;
  return std::unique_ptr<LiveStatusLine>(new LiveStatusLine());
}

void LiveStatusLine::reserve_last_row(unsigned rows) {
  // If the cursor is in the last row, the line feed scrolls the screen by one row. Then moves the cursor up again.
  if (terminal_row_count_ == 0) write_escape_sequence("\n\x1b[1A");
  write_escape_sequence(set_scroll_region(rows - 1));
  terminal_row_count_ = rows;
}

void LiveStatusLine::show(std::string_view text) {
  const winsize size = query_terminal_size();
  if (size.ws_row < kMinTerminalRows || size.ws_col == 0) return;
  if (size.ws_row != terminal_row_count_) reserve_last_row(size.ws_row);
  write_escape_sequence(fmt::format("{}\x1b[{};1H{}{}{}", kSaveCursor, terminal_row_count_, kClearLine,
                                    report::shorten_to_columns(text, size.ws_col), kRestoreCursor));
}

LiveStatusLine::~LiveStatusLine() {
  if (terminal_row_count_ == 0) return;
  write_escape_sequence(fmt::format("{}\x1b[{};1H{}{}", kSaveCursor, terminal_row_count_, kClearLine, kRestoreCursor));
  write_escape_sequence(fmt::format("{}\x1b[r{}", kSaveCursor, kRestoreCursor));
}

}  // namespace joulemap::cli
