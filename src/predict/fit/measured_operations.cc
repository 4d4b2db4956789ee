// SPDX-License-Identifier: Apache-2.0
#include "predict/fit/measured_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "predict/fit/table.h"

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, 7> kOperationColumns = {"kind", "parameters", "dtype",   "pass",
                                                               "cold", "time_s",     "energy_j"};
constexpr std::array<std::string_view, 6> kLayerColumns = {"kind", "parameters", "dtype", "pass", "source", "time_s"};

std::string operation_key(const CsvColumns& columns, const formats::CsvRecord& record) {
  return fmt::format("{}|{}|{}|{}|{}", columns.text(record, "kind"), columns.text(record, "parameters"),
                     columns.text(record, "dtype"), columns.text(record, "pass"), columns.text(record, "cold"));
}

}  // namespace

Result<std::vector<MeasuredOperation>> read_operations_table(std::string_view csv) {
  const Result<CsvTable> table = read_table(csv, kOperationColumns);
  if (!table) return table.error();
  const CsvColumns& columns = table->columns;
  std::map<std::string, std::size_t> row_index_by_key;
  std::vector<MeasuredOperation> rows;
  std::map<std::size_t, int> idle_counts;  // by row: number of summed idle_w values
  for (const formats::CsvRecord& record : table->records) {
    const double time_s = columns.number(record, "time_s");
    const double energy_j = columns.number(record, "energy_j");
    if (!(time_s > 0) || !(energy_j > 0)) continue;  // views launch no kernel and have neither time nor energy
    const std::string key = operation_key(columns, record);
    const auto [index_entry, is_new] = row_index_by_key.try_emplace(key, rows.size());
    if (is_new) {
      Result<Operation> operation = parse_operation(columns, record);
      if (!operation) return std::move(operation).error();
      rows.push_back({.operation = std::move(*operation),
                      .key = key,
                      .family = columns.text(record, "source"),
                      .is_cache_cold = columns.text(record, "cold") == "1",
                      .energy_j = 0.0,
                      .repeats = 0});
    }
    MeasuredOperation& row = rows[index_entry->second];
    row.time_s += time_s;
    row.eager_s += columns.number(record, "eager_s");
    row.energy_j = *row.energy_j + energy_j;
    if (const double idle_w = columns.number(record, "idle_w"); idle_w > 0) {
      row.idle_w += idle_w;
      ++idle_counts[index_entry->second];
    }
    row.is_throttled = row.is_throttled || columns.text(record, "limited") == "1";
    ++row.repeats;
  }
  for (std::size_t index = 0; index < rows.size(); ++index) {
    MeasuredOperation& row = rows[index];
    row.time_s /= row.repeats;
    row.eager_s /= row.repeats;
    row.energy_j = *row.energy_j / row.repeats;
    row.idle_w /= std::max(1, idle_counts[index]);
  }
  return rows;
}

Result<std::vector<MeasuredOperation>> read_layers_table(std::string_view csv) {
  const Result<CsvTable> table = read_table(csv, kLayerColumns);
  if (!table) return table.error();
  std::vector<MeasuredOperation> rows;
  for (const formats::CsvRecord& record : table->records) {
    const double time_s = table->columns.number(record, "time_s");
    if (!(time_s > 0)) continue;
    Result<Operation> operation = parse_operation(table->columns, record);
    if (!operation) return std::move(operation).error();
    MeasuredOperation row;
    row.operation = std::move(*operation);
    row.key = operation_key(table->columns, record);
    row.family = table->columns.text(record, "source");
    row.in_network = true;
    row.time_s = time_s;
    row.launches = table->columns.number(record, "launches");
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<NoiseFloor> compute_noise_floor(std::string_view csv) {
  const Result<CsvTable> table = read_table(csv, kOperationColumns);
  if (!table) return table.error();
  RepeatedMeasurements repeats;
  for (const formats::CsvRecord& record : table->records) {
    repeats[operation_key(table->columns, record)].emplace_back(table->columns.number(record, "time_s"),
                                                                table->columns.number(record, "energy_j"));
  }
  return compute_noise_floor(repeats);
}

NoiseFloor compute_noise_floor(const RepeatedMeasurements& repeats) {
  NoiseFloor floor;
  for (const auto& [key, measured] : repeats) {
    if (measured.size() < 2) continue;
    const auto [first_time_s, first_energy_j] = measured[0];
    const auto [second_time_s, second_energy_j] = measured[1];
    if (!(first_energy_j > 0) || !(second_energy_j > 0)) continue;
    // The standard deviation of two measurements is their difference divided by sqrt(2); here relative to their mean.
    const double energy = (first_energy_j - second_energy_j) / (first_energy_j + second_energy_j) * std::sqrt(2.0);
    const double time = (first_time_s - second_time_s) / (first_time_s + second_time_s) * std::sqrt(2.0);
    floor.energy += energy * energy;
    floor.time += time * time;
    ++floor.operations;
  }
  if (floor.operations > 0) {
    floor.energy = std::sqrt(floor.energy / static_cast<double>(floor.operations));
    floor.time = std::sqrt(floor.time / static_cast<double>(floor.operations));
  }
  return floor;
}

}  // namespace joulemap::predict
