// SPDX-License-Identifier: Apache-2.0
//
// Strict text parsers: the whole text must be the number, with at most surrounding whitespace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

std::string_view trim(std::string_view text);

// Decimal, or hexadecimal with 0x. Returns nullopt for empty text, a sign, trailing letters or overflow.
std::optional<std::uint64_t> parse_u64(std::string_view text);

// Parses a finite decimal number, also with an exponent: the kernel writes "2.3283064365386962890625e-10" as a scale.
std::optional<double> parse_double(std::string_view text);

// Splits at every separator. Keeps empty pieces, so that callers can detect "a,,b".
std::vector<std::string_view> split(std::string_view text, char separator);

// Splits at runs of whitespace. Drops empty pieces.
std::vector<std::string_view> split_whitespace(std::string_view text);

// Parses a Linux CPU list: "0,18-19" is 0, 18, 19. Returns nullopt if malformed or above 65536 CPUs.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// Length in bytes of the UTF-8 character at the start of the text, 0 if invalid. Unicode standard, table 3-7.
std::size_t utf8_length(std::string_view text);

// At most `limit` bytes of a text from outside, in quotes. Writes characters that printable() replaces and invalid
// UTF-8 bytes as "\xNN", so the result is safe in messages and on terminals.
std::string quoted(std::string_view text, std::size_t limit = 40);

// Replaces every invalid UTF-8 byte by U+FFFD.
std::string to_valid_utf8(std::string_view text);

}  // namespace joulemap
