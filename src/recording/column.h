// SPDX-License-Identifier: Apache-2.0
//
// A column: many integers of one kind (times, raw values of a channel), packed close to their entropy. About twenty
// values suffice, as in one second of a RAPL counter; general-purpose compressors need far more.
//
//   value = grid(prediction + residual); the residuals are zigzag and Rice coded
//
// - Predictions are a straight line (a timer that fires late by a jitter) or the previous value plus a constant
//   increment (a counter). The writer tries both and stores the shorter result.
// - Counters move in quanta: perf counts 2^-32 J in increments of 2^18, powercap rounds quanta of 61.035 uJ down to
//   whole uJ. If all values lie on such a grid, only the grid points are stored, without loss.
// Arithmetic is modulo 2^64, so any 64-bit value can be stored, whatever the prediction. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recording/wire.h"

namespace joulemap::recording {

void encode_column(WireWriter& out, std::span<const std::uint64_t> values);

// The caller bounds `count`. Fails `reader` if the bytes are not a valid column.
std::vector<std::uint64_t> decode_column(WireReader& reader, std::size_t count);

}  // namespace joulemap::recording
