// SPDX-License-Identifier: Apache-2.0
#include "support/ledger_example.h"

#include <utility>

#include "energy/make_domain_table.h"

namespace joulemap {
namespace {

ReportRow make_row(std::vector<std::string> path, double energy_j, double half_width_j, double time_s,
                   std::string basis) {
  ReportRow out;
  out.path = std::move(path);
  out.name = out.display_name = out.path.empty() ? "gpu0" : out.path.back();
  out.device = "gpu0";
  out.count = 400;
  out.time_s = time_s;
  out.energy_j = energy_j;
  out.low_j = energy_j - half_width_j;
  out.high_j = energy_j + half_width_j;
  out.power_w = energy_j / time_s;
  out.share = energy_j / 4000;
  out.basis = std::move(basis);
  return out;
}

DomainEnergy domain(std::string name, double joules, double half_width_j, std::string sensor, Provenance provenance) {
  DomainEnergy out;
  out.name = std::move(name);
  out.joules = joules;
  out.uncertainty_j = half_width_j;
  out.mean_w = joules / 10;
  out.provenance = provenance;
  out.is_counted = true;
  out.sensor = std::move(sensor);
  return out;
}

void scale_energies(ReportRow& row, double factor) {
  for (std::optional<double>* value : {&row.energy_j, &row.low_j, &row.high_j, &row.power_w}) {
    if (*value) **value *= factor;
  }
}

}  // namespace

ReportResult make_training_report() {
  ReportResult result;
  result.inputs = {"run.joule"};
  result.command = {"python", "train.py"};
  result.hosts = {"node1"};
  result.exit_code = 0;
  result.complete = true;
  result.by = "layer";
  result.elapsed_s = 10;
  result.domains = {domain("gpu0", 4500, 9, "nvml", Provenance::measured),
                    domain("package-0", 300, 120, "estimate", Provenance::estimated)};
  result.domains[1].model = "30 W, +-12 W";
  result.totals = total_energy(result.domains);
  result.attributed_j = 4000;
  result.idle_j = 450;
  result.unattributed_j = 50;
  result.rows = {make_row({"train", "backward", "layer1.0.conv1"}, 1400, 140, 2.5, "regressed"),
                 make_row({"train", "forward", "layer1.0.conv1"}, 1000, 100, 2, "regressed"),
                 make_row({"train", "backward", "head"}, 900, 60, 1.6, "probed"),
                 make_row({"train", "forward", "head"}, 590, 40, 1, "time-share"),
                 make_row({"train", "backward", "layer1.0"}, 100, 20, 0.3, "time-share"),
                 make_row({"setup"}, 10, 5, 0.1, "time-share")};
  ReportRow host = make_row({"train", "forward", "head"}, 0, 0, 4, "cpu-time");
  host.device = "cpu";
  host.energy_j = host.low_j = host.high_j = host.power_w = host.share = std::nullopt;
  result.rows.push_back(host);
  result.groups = {make_row({}, 4000, 20, 7.5, "regressed"),
                   make_row({"train"}, 3990, 21, 7.4, "regressed"),
                   make_row({"train", "backward"}, 2400, 50, 4.4, "regressed"),
                   make_row({"train", "forward"}, 1590, 45, 3, "regressed"),
                   make_row({"train", "backward", "layer1"}, 1500, 135, 2.8, "regressed"),
                   make_row({"train", "backward", "layer1", ".0"}, 1500, 135, 2.8, "regressed")};
  result.slice_s = 1;
  result.power = {{"gpu0", {90, 480, 520, 515, 530, 522, 518, 525, std::nullopt, 100}},
                  {"package-0", {28, 31, 30, 30, 30, 30, 31, 30, 30, 29}}};
  result.tracks = {{"gpu0-temperature", Quantity::temperature, {40, 45, 50, 55, 57, 58, 58, 59, 59, 50}}};
  result.steps = 400;
  result.epochs = 4;
  result.metrics = {{"loss", 400, 2.3, 0.4, 300}, {"samples", 400, 32, 32, 12'800}};
  result.environment = {{"cpu", "Example CPU"}, {"torch", "2.13.0"}};
  result.overhead_cpu_s = 0.05;
  result.diagnostics.add({"kernels_by_time", 1, "gpu0: 17 % of kernel energy is split by time", "record --probe"});
  return result;
}

ReportResult make_scaled_training_report(double factor) {
  ReportResult result = make_training_report();
  for (ReportRow& report_row : result.rows) scale_energies(report_row, factor);
  for (ReportRow& report_row : result.groups) scale_energies(report_row, factor);
  const double additional_energy_j = 4000 * (factor - 1);
  *result.attributed_j += additional_energy_j;
  *result.domains[0].joules += additional_energy_j;
  result.totals = total_energy(result.domains);
  return result;
}

}  // namespace joulemap
