// SPDX-License-Identifier: Apache-2.0
#include "recording/column.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "recording/rice.h"

namespace joulemap::recording {
namespace {

// The head byte of a column: k of the Rice code, and two flags.
constexpr std::uint8_t kRiceKMask = 0x3F;
constexpr std::uint8_t kPreviousValueFlag = 0x40;     // predicts from the previous value; otherwise by a straight line
constexpr std::uint8_t kQuantizationGridFlag = 0x80;  // grid points are stored instead of values

// value = floor(point * multiplier / divisor)
struct QuantizationGrid {
  std::uint64_t multiplier = 1;
  std::uint64_t divisor = 1;
};

constexpr std::size_t kMinValuesForGrid = 4;  // with fewer values the grid would cost more than it saves
constexpr std::uint64_t kMinLargestValueForGrid = 1 << 16;
constexpr std::uint64_t kMaxGridPointProduct = std::numeric_limits<std::uint64_t>::max() / 2;

// Linux's powercap driver computes microjoules = raw * unit / 1000 with unit = 10^9 / 2^ESU nanojoules in integers.
// 15300 is its fixed unit for the memory of Xeon servers (drivers/powercap/intel_rapl_common.c).
constexpr std::array<std::uint64_t, 7> kPowercapUnits = {61035, 15258, 15300, 30517, 122070, 244140, 3814};
constexpr std::uint64_t kPowercapDivisor = 1000;

std::optional<std::uint64_t> find_grid_point(const QuantizationGrid& grid, std::uint64_t value) {
  if (value > kMaxGridPointProduct / grid.divisor) return std::nullopt;
  const std::uint64_t point = (value * grid.divisor + grid.multiplier - 1) / grid.multiplier;  // rounded up
  if (point > kMaxGridPointProduct / grid.multiplier) return std::nullopt;
  if (point * grid.multiplier / grid.divisor != value) return std::nullopt;
  return point;
}

bool are_all_grid_values(const QuantizationGrid& grid, std::span<const std::uint64_t> values) {
  return std::all_of(values.begin(), values.end(),
                     [&](std::uint64_t value) { return find_grid_point(grid, value).has_value(); });
}

std::optional<QuantizationGrid> find_quantization_grid(std::span<const std::uint64_t> values) {
  if (values.size() < kMinValuesForGrid || *std::max_element(values.begin(), values.end()) < kMinLargestValueForGrid) {
    return std::nullopt;
  }
  std::uint64_t all_bits = 0;
  for (const std::uint64_t value : values) all_bits |= value;
  const QuantizationGrid binary{std::uint64_t{1} << std::countr_zero(all_bits), 1};
  if (binary.multiplier >= 16 && are_all_grid_values(binary, values)) return binary;
  for (const std::uint64_t unit : kPowercapUnits) {
    const QuantizationGrid grid{unit, kPowercapDivisor};
    if (are_all_grid_values(grid, values)) return grid;
  }
  return std::nullopt;
}

struct LinearPrediction {
  bool uses_previous_value = false;
  std::uint64_t first_prediction = 0;
  std::uint64_t slope = 0;
};

std::vector<std::uint64_t> compute_prediction_residuals(const LinearPrediction& prediction,
                                                        std::span<const std::uint64_t> values) {
  std::vector<std::uint64_t> codes(values.size());
  std::uint64_t expected = prediction.first_prediction;
  for (std::size_t i = 0; i < values.size(); ++i) {
    codes[i] = zigzag(values[i] - expected);
    expected = (prediction.uses_previous_value ? values[i] : expected) + prediction.slope;
  }
  return codes;
}

// Quickselect: returns the value of this rank. Every round partitions without branches on the values: times are noise,
// and the CPU would mispredict half of the branches.
std::int64_t quickselect(std::vector<std::int64_t> values, std::size_t rank) {
  constexpr std::size_t kMaxNthElementSize = 16;
  constexpr int kMaxRounds = 64;  // then std::nth_element finishes, whatever the input
  std::vector<std::int64_t> smaller_values(values.size());
  for (int round = 0; values.size() > kMaxNthElementSize && round < kMaxRounds; ++round) {
    const std::size_t last_index = values.size() - 1;
    const std::int64_t first_value = values.front(), centre_value = values[last_index / 2],
                       last_value = values[last_index];
    const std::int64_t pivot =
        std::max(std::min(first_value, centre_value), std::min(std::max(first_value, centre_value), last_value));
    std::size_t smaller_count = 0;
    std::size_t larger_count = 0;
    for (const std::int64_t value : values) {
      smaller_values[smaller_count] = value;
      smaller_count += value < pivot ? 1 : 0;
      values[larger_count] = value;
      larger_count += value > pivot ? 1 : 0;
    }
    const std::size_t not_larger_count = values.size() - larger_count;
    if (rank >= smaller_count && rank < not_larger_count) return pivot;
    if (rank < smaller_count) {
      std::swap(values, smaller_values);
      values.resize(smaller_count);
    } else {
      rank -= not_larger_count;
      values.resize(larger_count);
    }
    smaller_values.resize(values.size());
  }
  const auto position = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), position, values.end());
  return *position;
}

std::uint64_t signed_median(std::vector<std::int64_t> values) {
  const std::size_t median_rank = values.size() / 2;
  return static_cast<std::uint64_t>(quickselect(std::move(values), median_rank));
}

// The line of that slope that has as many values above as below.
LinearPrediction fit_median_line(std::uint64_t slope, std::span<const std::uint64_t> values) {
  std::vector<std::int64_t> heights(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) heights[i] = static_cast<std::int64_t>(values[i] - slope * i);
  return {false, signed_median(std::move(heights)), slope};
}

// Total bits of the residuals: close to the size of their Rice codes, and much faster to compute.
std::uint64_t count_residual_bits(const LinearPrediction& prediction, std::span<const std::uint64_t> values) {
  std::uint64_t bits = 0;
  std::uint64_t expected = prediction.first_prediction;
  for (const std::uint64_t value : values) {
    bits += static_cast<std::uint64_t>(std::bit_width(zigzag(value - expected)));
    expected = (prediction.uses_previous_value ? value : expected) + prediction.slope;
  }
  return bits;
}

LinearPrediction find_best_prediction(std::span<const std::uint64_t> values) {
  if (values.size() == 1) return {false, values.front(), 0};
  LinearPrediction best_prediction;
  std::uint64_t fewest_bits = std::numeric_limits<std::uint64_t>::max();
  const auto keep_cheaper_prediction = [&](const LinearPrediction& prediction) {
    const std::uint64_t bits = count_residual_bits(prediction, values);
    if (bits >= fewest_bits) return;
    best_prediction = prediction;
    fewest_bits = bits;
  };
  keep_cheaper_prediction(fit_median_line(0, values));
  if (fewest_bits == 0) return best_prediction;  // cannot be improved; constant columns are common
  std::vector<std::int64_t> steps(values.size() - 1);
  for (std::size_t i = 1; i < values.size(); ++i) {
    steps[i - 1] = static_cast<std::int64_t>(values[i] - values[i - 1]);
  }
  const std::uint64_t median_step = signed_median(std::move(steps));
  const auto total_rise = static_cast<std::int64_t>(values.back() - values.front());
  const auto mean_step = static_cast<std::uint64_t>(total_rise / static_cast<std::int64_t>(values.size() - 1));
  if (median_step != 0) keep_cheaper_prediction(fit_median_line(median_step, values));
  if (mean_step != 0 && mean_step != median_step) keep_cheaper_prediction(fit_median_line(mean_step, values));
  keep_cheaper_prediction({true, values.front(), 0});
  if (median_step != 0) keep_cheaper_prediction({true, values.front(), median_step});
  return best_prediction;
}

void write_grid_points(WireWriter& out, std::span<const std::uint64_t> points,
                       const std::optional<QuantizationGrid>& grid) {
  const LinearPrediction best_prediction = find_best_prediction(points);
  const std::vector<std::uint64_t> best_codes = compute_prediction_residuals(best_prediction, points);
  const unsigned k = choose_rice_k(best_codes);
  out.write_u8(static_cast<std::uint8_t>(k | (best_prediction.uses_previous_value ? kPreviousValueFlag : 0) |
                                         (grid ? kQuantizationGridFlag : 0)));
  if (grid) {
    out.write_varint(grid->multiplier);
    out.write_varint(grid->divisor);
  }
  out.write_varint(zigzag(best_prediction.first_prediction));
  out.write_varint(zigzag(best_prediction.slope));
  out.write_raw(rice_encode(best_codes, k));
}

QuantizationGrid read_quantization_grid(WireReader& reader) {
  const QuantizationGrid grid{reader.read_varint(), reader.read_varint()};
  if (grid.multiplier == 0 || grid.divisor == 0) reader.mark_as_failed();
  return grid;
}

void expand_grid_points(WireReader& reader, const QuantizationGrid& grid, std::vector<std::uint64_t>& values) {
  for (std::uint64_t& value : values) {
    if (value > kMaxGridPointProduct / grid.multiplier) return reader.mark_as_failed();
    value = value * grid.multiplier / grid.divisor;
  }
}

// Writes what write_grid_points() would write for equal values, without its search; columns of zeros are common.
void write_constant_column(WireWriter& out, std::uint64_t value, std::size_t count) {
  out.write_u8(0);
  out.write_varint(zigzag(value));
  out.write_varint(0);
  out.write_raw(std::string((count + 7) / 8, '\0'));
}

}  // namespace

void encode_column(WireWriter& out, std::span<const std::uint64_t> values) {
  if (values.empty()) return;
  const bool are_all_equal =
      std::all_of(values.begin(), values.end(), [&](std::uint64_t value) { return value == values.front(); });
  if (are_all_equal && values.front() < kMinLargestValueForGrid)
    return write_constant_column(out, values.front(), values.size());
  const std::optional<QuantizationGrid> grid = find_quantization_grid(values);
  if (!grid) return write_grid_points(out, values, grid);
  std::vector<std::uint64_t> points;
  points.reserve(values.size());
  for (const std::uint64_t value : values) points.push_back(*find_grid_point(*grid, value));
  write_grid_points(out, points, grid);
}

std::vector<std::uint64_t> decode_column(WireReader& reader, std::size_t count) {
  if (count == 0) return {};
  const std::uint8_t head = reader.read_u8();
  const QuantizationGrid grid =
      (head & kQuantizationGridFlag) != 0 ? read_quantization_grid(reader) : QuantizationGrid{};
  const std::uint64_t base = zigzag_decode(reader.read_varint());
  const std::uint64_t slope = zigzag_decode(reader.read_varint());
  if (!reader.ok()) return {};
  std::optional<RiceDecoded> decoded = rice_decode(reader.unread_bytes(), count, head & kRiceKMask);
  if (!decoded) {
    reader.mark_as_failed();
    return {};
  }
  reader.read_bytes(decoded->consumed_bytes);
  std::uint64_t expected = base;
  for (std::uint64_t& value : decoded->values) {
    value = expected + zigzag_decode(value);
    expected = ((head & kPreviousValueFlag) != 0 ? value : expected) + slope;
  }
  if ((head & kQuantizationGridFlag) != 0) expand_grid_points(reader, grid, decoded->values);
  return std::move(decoded->values);
}

}  // namespace joulemap::recording
