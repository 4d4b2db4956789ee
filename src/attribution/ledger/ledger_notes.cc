// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/ledger_notes.h"

#include <fmt/format.h>

#include "model/background_row.h"

namespace joulemap::attribution {

void add_light_mode_diagnostic(const ActivitySums& sums, Diagnostics& diagnostics) {
  for (const auto& [process, names] : sums.processes()) {
    if (names.step_counts.traced_steps == 0) continue;
    diagnostics.add({"kernels_sampled", 1,
                     fmt::format("kernels were recorded in {} of {} steps; the other steps are extrapolated from them",
                                 names.step_counts.traced_steps, names.step_counts.all_steps),
                     "record --trace full records all steps, at a higher cost"});
  }
}

void add_grouped_kernels_diagnostic(const ActivitySums& sums, RowLevel level, Diagnostics& diagnostics) {
  if (level != RowLevel::kernel && level != RowLevel::stack) return;
  for (const auto& [process, names] : sums.processes()) {
    if (names.grouped_class_count == 0) continue;
    diagnostics.add(
        {"kernels_grouped", names.grouped_class_count,
         fmt::format(
             "of {} different kernels, the {} with the most time have their own rows; all others are in the row '{}'",
             names.kernel_classes.size(), kMaxKernelClassRows, kOtherKernelsName),
         ""});
  }
}

void add_unknown_tensors_diagnostic(const ActivitySums& sums, bool is_imported, Diagnostics& diagnostics) {
  ScopePaths::OperationCounts total_counts;
  for (const auto& [process, names] : sums.processes()) {
    const ScopePaths::OperationCounts process_counts = names.scopes.count_operations();
    total_counts.operation_count += process_counts.operation_count;
    total_counts.tensorless_operation_count += process_counts.tensorless_operation_count;
  }
  if (total_counts.tensorless_operation_count == 0) return;
  diagnostics.add({"shapes_unknown", total_counts.tensorless_operation_count,
                   fmt::format("input shapes are unknown for {} of {} operations: their rows show the name only",
                               total_counts.tensorless_operation_count, total_counts.operation_count),
                   is_imported ? "profile PyTorch with record_shapes=True; of TensorFlow, import a RunMetadata" : ""});
}

// Work that took time ran at least once: if no calls were counted, the count is unknown. Names of XLA's and
// TensorFlow's operations identify the layer, not its calls. The background row keeps its count of 0: other processes
// are no calls.
void clear_unknown_counts(LedgerResult& result) {
  std::uint64_t unknown = 0;
  for (ReportRow& row : result.rows) {
    if (row.count != 0u || row.time_s <= 0 || is_background_row(row)) continue;
    row.count.reset();
    ++unknown;
  }
  if (unknown == 0) return;
  result.diagnostics.add(
      {"counts_unknown", 1,
       fmt::format("{} rows have a time but no call count: only samples or totals of them were recorded", unknown),
       "report --by op counts operations"});
}

}  // namespace joulemap::attribution
