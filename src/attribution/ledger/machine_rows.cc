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

void merge_ledger_totals(LedgerResult& all, LedgerResult added) {
  const auto add = [](std::optional<double>& sum, const std::optional<double>& part) {
    if (part) sum = sum.value_or(0) + *part;
  };
  add(all.attributed_j, added.attributed_j);
  add(all.idle_j, added.idle_j);
  add(all.unattributed_j, added.unattributed_j);
  all.diagnostics.add_all(added.diagnostics);
  if (added.serving && all.serving) {
    all.diagnostics.add({"serving_on_several_machines", 1,
                         "several machines ran serving engines: rows cover all of them, details only the one with the "
                         "most steps",
                         "report the recording of each machine on its own"});
  }
  if (added.serving && (!all.serving || added.serving->steps > all.serving->steps))
    all.serving = std::move(added.serving);
  all.idle.insert(all.idle.end(), std::make_move_iterator(added.idle.begin()),
                  std::make_move_iterator(added.idle.end()));
  all.groups.insert(all.groups.end(), std::make_move_iterator(added.groups.begin()),
                    std::make_move_iterator(added.groups.end()));
}

}  // namespace joulemap::attribution
