// SPDX-License-Identifier: Apache-2.0
//
// Rice codes with an escape, packed into bytes from the lowest bit up. A value is coded as its quotient by 2^k in unary
// (ones, then a zero) and its k low bits; from a quotient of 16 on, as 16 ones, its width minus one in 6 bits, and all
// its bits. The size is close to the entropy of jitter and noise, whose frequency falls off exponentially. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::recording {

inline constexpr unsigned kMaxRiceK = 63;

// The k that encodes these values in the fewest bits, among 0 and those near log2 of the mean. Not for empty input.
unsigned choose_rice_k(std::span<const std::uint64_t> values);

std::string rice_encode(std::span<const std::uint64_t> values, unsigned k);

struct RiceDecoded {
  bool operator==(const RiceDecoded&) const = default;
  std::vector<std::uint64_t> values;
  std::size_t consumed_bytes = 0;  // number of bytes consumed
};
// Returns nullopt if the bytes end too early.
std::optional<RiceDecoded> rice_decode(std::string_view bytes, std::size_t count, unsigned k);

}  // namespace joulemap::recording
