// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/operator_work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "attribution/ledger/ledger.h"

namespace joulemap::attribution {
namespace {

using scopes::OperationKind;

enum WorkPathIndex : std::size_t {
  mode_path_index,
  phase_path_index,
  module_path_index,
  kernel_path_index,
  operation_path_index
};
static_assert(operation_path_index == kWorkPathLength);

using DeviceAndWorkPath = std::pair<std::string, std::vector<std::string>>;  // device, path without the operation

// Energy by operation; "" is work of no operation.
using OperationEnergies = std::map<std::string, double>;

struct OperationEnergyTable {
  std::map<DeviceAndWorkPath, OperationEnergies> energies;

  const OperationEnergies* find_energies(const DeviceAndWorkPath& device_and_path) const {
    const auto matching_energies = energies.find(device_and_path);
    return matching_energies == energies.end() ? nullptr : &matching_energies->second;
  }
};

bool has_full_work_path(const ReportRow& row) { return row.path.size() >= kWorkPathLength; }

DeviceAndWorkPath device_and_work_path(const ReportRow& row) {
  return {row.device, {row.path.begin(), row.path.begin() + kWorkPathLength}};
}

std::string operation_name_of_row(const ReportRow& row) {
  return row.path.size() > operation_path_index ? row.path[operation_path_index] : std::string();
}

OperationEnergyTable collect_operation_energies(const ReportResult& whole_run_report) {
  OperationEnergyTable shares;
  for (const ReportRow& row : whole_run_report.rows) {
    if (has_full_work_path(row) && row.energy_j.value_or(0) > 0)
      shares.energies[device_and_work_path(row)][operation_name_of_row(row)] += *row.energy_j;
  }
  std::erase_if(shares.energies,
                [](const auto& entry) { return entry.second.size() == 1 && entry.second.contains(""); });
  return shares;
}

// The phases of training and inference, with those that mean the same in another framework.
std::string phase_name(const std::string& phase) {
  if (phase == "gradients") return "backward";
  if (phase == "zero_grad") return "optimizer";
  return phase;
}

bool is_matrix_product(OperationKind kind) {
  return kind == OperationKind::matmul || kind == OperationKind::convolution || kind == OperationKind::attention;
}

// With automatic mixed precision, tensors of an operation are cast within it: only kernels show the precision.
std::string precision_of_work(const OperatorWork& work) {
  if (work.kernel.empty()) return work.shape.type;
  return is_matrix_product(work.kind) ? std::string(scopes::precision_of_kernel(work.kernel)) : work.shape.type;
}

OperatorWork make_operator_work(const ReportRow& row, const std::string& operation_and_tensors, double share) {
  OperatorWork work{.device = row.device, .energy_j = share * row.energy_j.value_or(0), .time_s = share * row.time_s};
  if (row.low_j && row.high_j) work.half_width_j = share * 0.5 * (*row.high_j - *row.low_j);
  if (row.count) work.count = share * static_cast<double>(*row.count);
  if (!has_full_work_path(row)) {  // other processes
    work.operation = row.name;
    return work;
  }
  work.phase = phase_name(row.path[phase_path_index]);
  work.kernel = row.path[kernel_path_index];
  const std::size_t blank_position = operation_and_tensors.find(' ');
  work.operation = operation_and_tensors.substr(0, blank_position);
  const std::string tensors =
      blank_position == std::string::npos ? std::string() : operation_and_tensors.substr(blank_position + 1);
  work.kind = scopes::kind_of_work(work.operation, work.kernel);
  const bool is_optimizer_update = work.phase == "optimizer" && work.kind != OperationKind::host_copy &&
                                   work.kind != OperationKind::communication && work.kind != OperationKind::layout;
  if (is_optimizer_update) work.kind = OperationKind::optimizer;
  work.shape = scopes::shape_of_operation(work.kind, work.operation, tensors);
  work.precision = precision_of_work(work);
  return work;
}

}  // namespace

std::vector<OperatorWork> collect_operator_work(const ReportResult& rows, const ReportResult& whole_run_report) {
  const OperationEnergyTable shares = collect_operation_energies(whole_run_report);
  std::vector<OperatorWork> operator_work;
  for (const ReportRow& row : rows.rows) {
    if (row.energy_j.value_or(0) <= 0 || row.path == std::vector<std::string>{std::string(kProbeModeScopeName)})
      continue;
    const OperationEnergies* operations = nullptr;
    if (has_full_work_path(row) && row.path.size() == kWorkPathLength) {
      DeviceAndWorkPath device_and_path = device_and_work_path(row);
      operations = shares.find_energies(device_and_path);
      if (operations == nullptr && device_and_path.second[phase_path_index] == "recompute") {
        device_and_path.second[phase_path_index] = "forward";
        operations = shares.find_energies(device_and_path);
      }
    }
    if (operations == nullptr) {
      operator_work.push_back(make_operator_work(row, operation_name_of_row(row), 1));
      continue;
    }
    double sum_j = 0;
    for (const auto& [operation, energy_j] : *operations) sum_j += energy_j;
    for (const auto& [operation, energy_j] : *operations)
      operator_work.push_back(make_operator_work(row, operation, energy_j / sum_j));
  }
  return operator_work;
}

}  // namespace joulemap::attribution
