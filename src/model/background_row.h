// SPDX-License-Identifier: Apache-2.0
//
// The report rows that do not belong to the command: other processes and the rest of the machine, and the modules that
// --probe replayed. Pure; joules.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/report_result.h"

namespace joulemap {

inline constexpr std::string_view kBackgroundRowName = "background";

bool is_background_row(const ReportRow& row);
// The row of the modules that --probe replayed.
bool is_probe_row(const ReportRow& row);

double background_energy_j(std::span<const ReportRow> rows);
double probe_rows_energy_j(std::span<const ReportRow> rows);
// Share of probing in the time of the run, and with it in the energy of other processes, whose power over time is not
// known in a report.
double probing_time_fraction(const ReportResult& result);
double background_while_probing_j(const ReportResult& result);
// Energy that no row contains. Unknown where the report does not contain it.
struct EnergyOutsideRows {
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
};
// What remains of it without probing: the time of probing also contains idle and unattributed energy.
EnergyOutsideRows energy_outside_rows_without_probing(const ReportResult& result);
// The rows and groups without probing, and without the energy of other processes meanwhile. Sums of devices lose their
// interval, which included probing.
ReportResult exclude_probing(ReportResult result);

}  // namespace joulemap
