// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace joulemap::cli {
namespace {

constexpr std::size_t kMinTerminalColumns = 60;   // least width for a table of numbers
constexpr std::size_t kMaxTerminalColumns = 200;  // longer lines are hard to read

std::string_view terminal_environment_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Unicode if the locale is UTF-8. The first of LC_ALL, LC_CTYPE and LANG that is set decides, as in the C library.
report::CharacterSet locale_character_set() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = terminal_environment_variable(name);
    if (locale.empty()) continue;
    const bool utf8 = locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
    return utf8 ? report::CharacterSet::unicode : report::CharacterSet::ascii;
  }
  return report::CharacterSet::ascii;
}

std::optional<std::size_t> terminal_columns(int fd) {
  if (const std::optional<std::uint64_t> requested_columns = parse_u64(terminal_environment_variable("COLUMNS"));
      requested_columns && *requested_columns > 0)
    return *requested_columns;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

report::TextStyle terminal_style(int fd, ColourMode colour) {
  report::TextStyle style;
  style.character_set = locale_character_set();
  if (const std::optional<std::size_t> columns = terminal_columns(fd)) {
    style.columns = std::clamp(*columns, kMinTerminalColumns, kMaxTerminalColumns);
  }
  const bool supports_colour = ::isatty(fd) == 1 && terminal_environment_variable("NO_COLOR").empty() &&
                               terminal_environment_variable("TERM") != "dumb";
  style.colour = colour == ColourMode::always || (colour == ColourMode::automatic && supports_colour);
  return style;
}

}  // namespace

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

report::TextStyle style_of_stdout(ColourMode colour) { return terminal_style(STDOUT_FILENO, colour); }
report::TextStyle style_of_stderr(ColourMode colour) { return terminal_style(STDERR_FILENO, colour); }

}  // namespace joulemap::cli
