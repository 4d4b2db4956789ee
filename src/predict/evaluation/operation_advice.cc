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
  const auto matching_row = std::find_if(rows.begin(), rows.end(), [&](const OperationRow& row) {
    return row.size == size && row.operation.dtype == dtype && row.operation.pass == pass;
  });
  return matching_row == rows.end() ? nullptr : &*matching_row;
}

// Energy of `numerator_row` divided by that of `denominator_row`; empty if one is missing or `denominator_row` has no
// energy.
std::optional<double> energy_ratio(const OperationRow* numerator_row, const OperationRow* denominator_row) {
  if (numerator_row == nullptr || denominator_row == nullptr || denominator_row->energy_j <= 0) return std::nullopt;
  return numerator_row->energy_j / denominator_row->energy_j;
}

const OperationRow* largest_operation_row(OperationRows rows) {
  const OperationRow* largest_row = nullptr;
  for (const OperationRow& row : rows) {
    if (row.is_unaligned || row.operation.pass != rows.front().operation.pass) continue;
    if (largest_row == nullptr || row.bytes > largest_row->bytes) largest_row = &row;
  }
  return largest_row;
}

std::optional<std::string> precision_advice(OperationRows rows, const OperationRow& largest_row) {
  const Pass pass = rows.front().operation.pass;
  const OperationRow* fp32 = find_operation_row(rows, largest_row.size, Dtype::fp32, pass);
  const std::optional<double> fp32_to_bf16_energy_ratio =
      energy_ratio(fp32, find_operation_row(rows, largest_row.size, Dtype::bf16, pass));
  if (!fp32_to_bf16_energy_ratio) return std::nullopt;
  if (*fp32_to_bf16_energy_ratio < kMinRatioToMention)
    return fmt::format("At {} bf16 saves almost no energy compared with fp32.", largest_row.size);
  const std::optional<double> tf32 = energy_ratio(fp32, find_operation_row(rows, largest_row.size, Dtype::tf32, pass));
  const std::string tf32_text =
      tf32 && *tf32 >= kMinRatioToMention ? fmt::format(", tf32 {} less", factor_text(*tf32)) : "";
  return fmt::format("At {} bf16 takes {} less energy than fp32{}.", largest_row.size,
                     factor_text(*fp32_to_bf16_energy_ratio), tf32_text);
}

std::optional<std::string> unaligned_size_advice(OperationRows rows) {
  const OperationRow* unaligned_row = nullptr;
  const OperationRow* aligned_row = nullptr;
  for (const OperationRow& row : rows) {
    if (row.operation.dtype != Dtype::bf16 || row.operation.pass != Pass::forward) continue;
    if (row.is_unaligned) {
      unaligned_row = &row;
      break;
    }
    aligned_row = &row;
  }
  const std::optional<double> unaligned_energy_ratio =
      unaligned_row == nullptr ? std::nullopt : energy_ratio(unaligned_row, aligned_row);
  if (!unaligned_energy_ratio) return std::nullopt;
  if (*unaligned_energy_ratio < kMinRatioToMention)
    return fmt::format("Sizes that are not a multiple of 8 cost hardly more in bf16 ({}).", unaligned_row->size);
  return fmt::format("Sizes that are not a multiple of 8 cost {} as much in bf16: {} compared with {}.",
                     factor_text(*unaligned_energy_ratio), unaligned_row->size, aligned_row->size);
}

// Compares a small call with the largest one, by energy per FLOP for matrix products and per byte for other kinds.
std::optional<std::string> small_call_advice(OperationRows rows, const OperationRow& largest_row) {
  const Operation& large_operation = largest_row.operation;
  const OperationRow* small_call_row = nullptr;
  const OperationRow* last_launch_bound_row = nullptr;
  for (const OperationRow& row : rows) {
    if (row.is_unaligned || row.operation.dtype != large_operation.dtype ||
        row.operation.pass != large_operation.pass || row.bytes <= 0)
      continue;
    if (small_call_row == nullptr) small_call_row = &row;
    if (row.bound == LimitingResource::launch) last_launch_bound_row = &row;
  }
  if (small_call_row == nullptr || small_call_row == &largest_row || small_call_row->energy_j <= 0 ||
      largest_row.energy_j <= 0)
    return std::nullopt;
  const bool is_per_flop =
      is_matrix_product(large_operation.kind) && small_call_row->flops > 0 && largest_row.flops > 0;
  const double small_unit_energy =
      small_call_row->energy_j / (is_per_flop ? small_call_row->flops : small_call_row->bytes);
  const double large_unit_energy = largest_row.energy_j / (is_per_flop ? largest_row.flops : largest_row.bytes);
  if (small_unit_energy < kMinRatioToMention * large_unit_energy) return std::nullopt;
  const std::string_view work_unit = is_per_flop ? "FLOP" : "byte";
  std::string out =
      fmt::format("A {} at {} takes {} the energy of one at {}: larger batches save energy.", work_unit,
                  small_call_row->size, factor_text(small_unit_energy / large_unit_energy), largest_row.size);
  if (last_launch_bound_row != nullptr && !is_per_flop) {
    out += fmt::format(" Up to {} launch overhead dominates: fuse it with its neighbours (torch.compile).",
                       last_launch_bound_row->size);
  }
  return out;
}

std::optional<std::string> backward_cost_advice(OperationRows rows, const OperationRow& largest_row) {
  const Dtype dtype = largest_row.operation.dtype;
  const std::optional<double> backward_energy_ratio =
      energy_ratio(find_operation_row(rows, largest_row.size, dtype, Pass::backward),
                   find_operation_row(rows, largest_row.size, dtype, Pass::forward));
  if (!backward_energy_ratio) return std::nullopt;
  return fmt::format("The backward pass takes {} the energy of the forward pass ({}, {}).",
                     factor_text(*backward_energy_ratio), largest_row.size, name_of(dtype));
}

}  // namespace

std::vector<std::string> operation_advice(std::span<const OperationRow> rows) {
  std::vector<std::string> advice;
  const OperationRow* largest_row = largest_operation_row(rows);
  if (largest_row == nullptr) return advice;
  const auto add = [&advice](std::optional<std::string> sentence) {
    if (sentence) advice.push_back(std::move(*sentence));
  };
  add(precision_advice(rows, *largest_row));
  add(unaligned_size_advice(rows));
  add(small_call_advice(rows, *largest_row));
  add(backward_cost_advice(rows, *largest_row));
  return advice;
}

}  // namespace joulemap::predict
