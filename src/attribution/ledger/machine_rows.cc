// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/machine_rows.h"

#include <iterator>

namespace joulemap::attribution {

void prefix_device_names(std::vector<ReportRow>& rows, const std::string& prefix) {
  for (ReportRow& row : rows) {
    if (row.device.empty() || row.device.starts_with(prefix)) continue;
    row.device = prefix + row.device;
    if (row.path.empty()) row.name = row.display_name = row.device;  // a branch that covers a whole device
  }
}

void merge_ledger_totals(LedgerResult& merged_ledger, LedgerResult machine_ledger) {
  const auto add = [](std::optional<double>& sum, const std::optional<double>& part) {
    if (part) sum = sum.value_or(0) + *part;
  };
  add(merged_ledger.attributed_j, machine_ledger.attributed_j);
  add(merged_ledger.idle_j, machine_ledger.idle_j);
  add(merged_ledger.unattributed_j, machine_ledger.unattributed_j);
  merged_ledger.diagnostics.add_all(machine_ledger.diagnostics);
  if (machine_ledger.serving && merged_ledger.serving) {
    merged_ledger.diagnostics.add(
        {"serving_on_several_machines", 1,
         "several machines ran serving engines: rows cover all of them, details only the one with the "
         "most steps",
         "report the recording of each machine on its own"});
  }
  if (machine_ledger.serving &&
      (!merged_ledger.serving || machine_ledger.serving->steps > merged_ledger.serving->steps))
    merged_ledger.serving = std::move(machine_ledger.serving);
  merged_ledger.idle.insert(merged_ledger.idle.end(), std::make_move_iterator(machine_ledger.idle.begin()),
                            std::make_move_iterator(machine_ledger.idle.end()));
  merged_ledger.groups.insert(merged_ledger.groups.end(), std::make_move_iterator(machine_ledger.groups.begin()),
                              std::make_move_iterator(machine_ledger.groups.end()));
}

}  // namespace joulemap::attribution
