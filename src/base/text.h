// SPDX-License-Identifier: Apache-2.0
//
// Small text readers, strict about what they take: the whole text must be the number, surrounded by blanks at most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

std::string_view trim(std::string_view text);

// Decimal, or hexadecimal with 0x. Nothing for an empty text, a sign, trailing letters or an overflow.
std::optional<std::uint64_t> parse_u64(std::string_view text);

// Finite decimal number, "2.3283064365386962890625e-10" included.
std::optional<double> parse_double(std::string_view text);

// At every separator; empty pieces are kept, so that "a,,b" is seen to be odd.
std::vector<std::string_view> split(std::string_view text, char separator);

// At runs of blanks; empty pieces are dropped.
std::vector<std::string_view> split_blanks(std::string_view text);

// A Linux CPU list: "0,18-19" is 0, 18, 19. Nothing when it is malformed or names more than 65536 CPUs.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// Length of the UTF-8 character at the start of the text, 0 when there is none. Table 3-7 of the Unicode standard.
std::size_t utf8_length(std::string_view text);

// At most `limit` bytes of a text from outside, in quotes; what printable() replaces, and bytes that are no UTF-8, as
// "\xNN": safe in a message and on a terminal.
std::string quoted(std::string_view text, std::size_t limit = 40);

// The same text with every byte that belongs to no UTF-8 character replaced by U+FFFD.
std::string to_valid_utf8(std::string_view text);

}  // namespace joulemap
