// SPDX-License-Identifier: Apache-2.0
//
// A column: many integers of one kind (the times, the raw values of a channel), packed close to their entropy even when
// there are only twenty of them, as in one second of a RAPL counter. General compressors need far more to learn from.
//
//   values = grid(line or steps + residual), each residual zigzagged and Rice coded
//
// - The writer tries a straight line (a timer that fires late by a jitter) and equal steps (a counter), takes the shorter.
// - Counters move in quanta: perf counts 2^-32 J in steps of 2^18, powercap rounds quanta of 61.035 uJ down to whole uJ.
//   Where all values lie on such a grid only its points are stored, which loses nothing.
// Integers are 64 bits modulo 2^64: any value can be stored, whatever was guessed. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recording/wire.h"

namespace joulemap::recording {

void put_column(WireWriter& out, std::span<const std::uint64_t> values);

// `count` is bounded by the caller. Fails `in` where the bytes are no such column.
std::vector<std::uint64_t> take_column(WireReader& in, std::size_t count);

}  // namespace joulemap::recording
