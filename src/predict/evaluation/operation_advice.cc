// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "predict/evaluation/operation_table.h"

namespace joulemap::predict {
namespace {

using OperationRows = std::span<const OperationRow>;

// Energy ratios below this are no reason to change a network; no advice mentions them.
constexpr double kMinRatioToMention = 1.05;

std::string factor_text(double factor) { return fmt::format("{:.{}f} times", factor, factor < 9.95 ? 1 : 0); }

const OperationRow* find_operation_row(OperationRows rows, std::string_view size, Dtype dtype, Pass pass) {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const OperationRow& row) {
    return row.size == size && row.operation.dtype == dtype && row.operation.pass == pass;
  });
  return at == rows.end() ? nullptr : &*at;
}

// Energy of `numerator_row` divided by that of `denominator_row`; empty if one is missing or `denominator_row` has no
// energy.
std::optional<double> energy_ratio(const OperationRow* numerator_row, const OperationRow* denominator_row) {
  if (numerator_row == nullptr || denominator_row == nullptr || denominator_row->energy_j <= 0) return std::nullopt;
  return numerator_row->energy_j / denominator_row->energy_j;
}

const OperationRow* largest_operation_row(OperationRows rows) {
  const OperationRow* found = nullptr;
  for (const OperationRow& row : rows) {
    if (row.is_unaligned || row.operation.pass != rows.front().operation.pass) continue;
    if (found == nullptr || row.bytes > found->bytes) found = &row;
  }
  return found;
}

std::optional<std::string> precision_advice(OperationRows rows, const OperationRow& large) {
  const Pass pass = rows.front().operation.pass;
  const OperationRow* fp32 = find_operation_row(rows, large.size, Dtype::fp32, pass);
  const std::optional<double> half = energy_ratio(fp32, find_operation_row(rows, large.size, Dtype::bf16, pass));
  if (!half) return std::nullopt;
  if (*half < kMinRatioToMention)
    return fmt::format("At {} bf16 saves almost no energy compared with fp32.", large.size);
  const std::optional<double> tf32 = energy_ratio(fp32, find_operation_row(rows, large.size, Dtype::tf32, pass));
  const std::string tf32_text =
      tf32 && *tf32 >= kMinRatioToMention ? fmt::format(", tf32 {} less", factor_text(*tf32)) : "";
  return fmt::format("At {} bf16 takes {} less energy than fp32{}.", large.size, factor_text(*half), tf32_text);
}

std::optional<std::string> unaligned_size_advice(OperationRows rows) {
  const OperationRow* odd = nullptr;
  const OperationRow* even = nullptr;
  for (const OperationRow& row : rows) {
    if (row.operation.dtype != Dtype::bf16 || row.operation.pass != Pass::forward) continue;
    if (row.is_unaligned) {
      odd = &row;
      break;
    }
    even = &row;
  }
  const std::optional<double> more = odd == nullptr ? std::nullopt : energy_ratio(odd, even);
  if (!more) return std::nullopt;
  if (*more < kMinRatioToMention)
    return fmt::format("Sizes that are not a multiple of 8 cost hardly more in bf16 ({}).", odd->size);
  return fmt::format("Sizes that are not a multiple of 8 cost {} as much in bf16: {} compared with {}.",
                     factor_text(*more), odd->size, even->size);
}

// Compares a small call with the largest one, by energy per FLOP for matrix products and per byte for other kinds.
std::optional<std::string> small_call_advice(OperationRows rows, const OperationRow& large) {
  const Operation& large_operation = large.operation;
  const OperationRow* small = nullptr;
  const OperationRow* last_launch_bound_row = nullptr;
  for (const OperationRow& row : rows) {
    if (row.is_unaligned || row.operation.dtype != large_operation.dtype ||
        row.operation.pass != large_operation.pass || row.bytes <= 0)
      continue;
    if (small == nullptr) small = &row;
    if (row.bound == LimitingResource::launch) last_launch_bound_row = &row;
  }
  if (small == nullptr || small == &large || small->energy_j <= 0 || large.energy_j <= 0) return std::nullopt;
  const bool is_per_flop = is_matrix_product(large_operation.kind) && small->flops > 0 && large.flops > 0;
  const double small_unit_energy = small->energy_j / (is_per_flop ? small->flops : small->bytes);
  const double large_unit_energy = large.energy_j / (is_per_flop ? large.flops : large.bytes);
  if (small_unit_energy < kMinRatioToMention * large_unit_energy) return std::nullopt;
  const std::string_view what = is_per_flop ? "FLOP" : "byte";
  std::string out = fmt::format("A {} at {} takes {} the energy of one at {}: larger batches save energy.", what,
                                small->size, factor_text(small_unit_energy / large_unit_energy), large.size);
  if (last_launch_bound_row != nullptr && !is_per_flop) {
    out += fmt::format(" Up to {} launch overhead dominates: fuse it with its neighbours (torch.compile).",
                       last_launch_bound_row->size);
  }
  return out;
}

std::optional<std::string> backward_cost_advice(OperationRows rows, const OperationRow& large) {
  const Dtype dtype = large.operation.dtype;
  const std::optional<double> more = energy_ratio(find_operation_row(rows, large.size, dtype, Pass::backward),
                                                  find_operation_row(rows, large.size, dtype, Pass::forward));
  if (!more) return std::nullopt;
  return fmt::format("The backward pass takes {} the energy of the forward pass ({}, {}).", factor_text(*more),
                     large.size, name_of(dtype));
}

}  // namespace

std::vector<std::string> operation_advice(std::span<const OperationRow> rows) {
  std::vector<std::string> advice;
  const OperationRow* large = largest_operation_row(rows);
  if (large == nullptr) return advice;
  const auto add = [&advice](std::optional<std::string> sentence) {
    if (sentence) advice.push_back(std::move(*sentence));
  };
  add(precision_advice(rows, *large));
  add(unaligned_size_advice(rows));
  add(small_call_advice(rows, *large));
  add(backward_cost_advice(rows, *large));
  return advice;
}

}  // namespace joulemap::predict
