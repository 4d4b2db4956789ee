// SPDX-License-Identifier: Apache-2.0
#include "attribution/cpu/cpu_attribution.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/hash.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

constexpr double kIntervalProbability = 0.9;

// Standard normal draws for a row, seeded by its path: the same in every report of the recording.
std::vector<double> draw_row_normals(const std::vector<std::string>& path) {
  std::uint64_t seed = kFnvOffsetBasis;
  for (const std::string& name : path) seed = fnv1a('\n', fnv1a(name, seed));
  statistics::Random random(seed);
  std::vector<double> normal_draws;
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
    normal_draws.push_back(random.normal());
  return normal_draws;
}

}  // namespace

CpuAttribution::CpuAttribution(const MachineEnergy& energy, const ActivitySums& sums)
    : inputs_(energy.cpu_inputs ? &*energy.cpu_inputs : nullptr), has_idle_time_(energy.has_idle_time) {
  const TimeCurve& captured_s = sums.captured_cpu_s();
  measured_j_per_modelled_j_ = idle_j_per_busy_wall_s_ = idle_j_over_time_ =
      TimeCurve(captured_s.span(), captured_s.size());
  TimeCurve busy_time_s(captured_s.span(), captured_s.size());
  TimeCurve modelled_j(captured_s.span(), captured_s.size());
  if (inputs_ != nullptr) {
    for (const CpuUse::Slice& slice : inputs_->cpu_use.slices) {
      busy_time_s.add(slice.begin_ns, slice.end_ns, slice.busy_wall_s);
      const double other_cpus = inputs_->other_cpu_s.mean_rate(slice.begin_ns, slice.end_ns);
      modelled_j.add(slice.begin_ns, slice.end_ns,
                     modelled_cpu_j(slice.column, slice.cpu_s, slice.mean_busy_cpus() + other_cpus));
    }
  }
  const double uncaptured_s = std::max(energy.command_cpu_s.value_or(0) - captured_s.total(), 0.0);
  const double uncaptured_per_cell_s = uncaptured_s / static_cast<double>(captured_s.size());
  std::vector<TimeCell> cells;
  for (std::size_t cell = 0; cell < captured_s.size(); ++cell) {
    TimeCell cell_values{.joules = energy.cpu_energy_j ? (*energy.cpu_energy_j)[cell] : 0,
                         .length_s = captured_s.cell_s()};
    cell_values.captured_s = captured_s[cell];
    cell_values.busy_wall_s = inputs_ != nullptr ? busy_time_s[cell] : cell_values.captured_s;
    cell_values.modelled_j = inputs_ != nullptr ? modelled_j[cell] : cell_values.captured_s;
    const double machine_cell_cpu_s = energy.machine_cpu_s ? (*energy.machine_cpu_s)[cell] : 0;
    cell_values.other_cpu_s =
        inputs_ != nullptr ? inputs_->other_cpu_s[cell] : std::max(machine_cell_cpu_s - cell_values.captured_s, 0.0);
    cell_values.other_cpu_s = std::max(cell_values.other_cpu_s, uncaptured_per_cell_s);
    cell_values.background_fraction =
        cell_values.other_cpu_s > 0 ? 1 - uncaptured_per_cell_s / cell_values.other_cpu_s : 0;
    background_s_ += cell_values.other_cpu_s * cell_values.background_fraction;
    cells.push_back(cell_values);
  }
  const bool is_fitted = inputs_ != nullptr && inputs_->powers.is_fitted;
  if (is_fitted) redistribute_between_readings(cells);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    is_fitted ? attribute_cell(cell, cells[cell]) : attribute_cell_by_time(cell, cells[cell]);
  }
  measured_j_per_modelled_j_.finish();
  idle_j_per_busy_wall_s_.finish();
  idle_j_over_time_.finish();
}

double CpuAttribution::modelled_cpu_j(std::uint16_t column, double cpu_s, double cpus) const {
  return cpu_s * inputs_->powers.watts[column] *
         cpu_power_factor(std::min(cpus, inputs_->cpu_count), inputs_->powers.busy_cpu_exponent);
}

double CpuAttribution::modelled_other_processes_j(const TimeCell& cell_values) const {
  const CpuPowers& powers = inputs_->powers;
  return powers.watts[powers.other_processes_index()] * cell_values.other_cpu_s *
         other_cpu_power_factor(cell_values.other_cpu_s, cell_values.captured_s, cell_values.length_s,
                                powers.busy_cpu_exponent);
}

double CpuAttribution::modelled_cell_j(const TimeCell& cell_values) const {
  return inputs_->powers.watts[inputs_->powers.idle_index()] * cell_values.length_s + cell_values.modelled_j +
         modelled_other_processes_j(cell_values);
}

// Between two counter readings only the sum of the energy is known: distributes it in proportion to the modelled power.
void CpuAttribution::redistribute_between_readings(std::vector<TimeCell>& cells) const {
  const TimeSpan span = measured_j_per_modelled_j_.span();
  const auto midpoint_ns = [&](std::size_t cell) {
    return span.begin_ns + static_cast<std::int64_t>((static_cast<double>(cell) + 0.5) * cells[cell].length_s *
                                                     static_cast<double>(kNanosecondsPerSecond));
  };
  std::size_t first_cell = 0;
  for (const std::int64_t edge_ns : inputs_->counter_reading_times_ns) {
    std::size_t end_cell = first_cell;
    double joules = 0;
    double modelled_j = 0;
    for (; end_cell < cells.size() && midpoint_ns(end_cell) < edge_ns; ++end_cell) {
      joules += cells[end_cell].joules;
      modelled_j += modelled_cell_j(cells[end_cell]);
    }
    for (; first_cell < end_cell; ++first_cell) {
      if (modelled_j > 0) cells[first_cell].joules = joules * modelled_cell_j(cells[first_cell]) / modelled_j;
    }
  }
}

void CpuAttribution::attribute_cell(std::size_t cell, const TimeCell& cell_values) {
  const CpuPowers& powers = inputs_->powers;
  const double command_busy_fraction = std::min(cell_values.busy_wall_s / cell_values.length_s, 1.0);
  const double other_cpus = cell_values.other_cpu_s / cell_values.length_s;
  const double any_busy_fraction = any_cpu_busy_fraction(command_busy_fraction, other_cpus);
  const double modelled_other_processes_j = this->modelled_other_processes_j(cell_values);
  const double idle_j = powers.watts[powers.idle_index()] * cell_values.length_s;
  const double modelled_total_j = this->modelled_cell_j(cell_values);
  if (modelled_total_j <= 0) return;
  const double measured_to_modelled = cell_values.joules / modelled_total_j;
  if (has_idle_time_) idle_j_over_time_.set(cell, measured_to_modelled * idle_j * (1 - any_busy_fraction));
  // While both the command and other processes have busy CPUs, idle power is split by the number of CPUs of each.
  const double other_busy_fraction = std::min(other_cpus, 1.0);
  double command_idle_fraction = 0;
  if (command_busy_fraction > 0) {
    const double cpus = cell_values.captured_s / cell_values.busy_wall_s;
    const double other_busy_cpus = other_busy_fraction > 0 ? other_cpus / other_busy_fraction : 0;
    const double total_cpus = std::max(std::min(cpus + other_busy_cpus, inputs_->cpu_count), cpus);
    command_idle_fraction = command_busy_fraction * (1 - other_busy_fraction + other_busy_fraction * cpus / total_cpus);
  }
  measured_j_per_modelled_j_.set(cell, measured_to_modelled * cell_values.length_s);
  if (cell_values.busy_wall_s > 0)
    idle_j_per_busy_wall_s_.set(
        cell, measured_to_modelled * idle_j * command_idle_fraction / cell_values.busy_wall_s * cell_values.length_s);
  const auto other_index = static_cast<std::uint16_t>(powers.other_processes_index());
  const auto idle_index = static_cast<std::uint16_t>(powers.idle_index());
  background_energy_.add(other_index,
                         measured_to_modelled * modelled_other_processes_j * cell_values.background_fraction);
  background_energy_.add(idle_index, measured_to_modelled * idle_j * (any_busy_fraction - command_idle_fraction) *
                                         cell_values.background_fraction);
  energy_by_unknown_.add(other_index, measured_to_modelled * modelled_other_processes_j);
  energy_by_unknown_.add(idle_index, measured_to_modelled * idle_j * (any_busy_fraction - command_idle_fraction));
}

void CpuAttribution::attribute_cell_by_time(std::size_t cell, const TimeCell& cell_values) {
  const double total_cpu_s = cell_values.modelled_j + cell_values.other_cpu_s;  // all powers are 1 W
  const double any_busy_fraction = any_cpu_busy_fraction(cell_values.busy_wall_s / cell_values.length_s,
                                                         cell_values.other_cpu_s / cell_values.length_s);
  // A gap in an imported trace does not show whether the machine was idle.
  if (has_idle_time_) idle_j_over_time_.set(cell, cell_values.joules * (1 - any_busy_fraction));
  if (total_cpu_s <= 0) return;
  const double rate = cell_values.joules * any_busy_fraction / total_cpu_s;
  measured_j_per_modelled_j_.set(cell, rate * cell_values.length_s);
  const auto other_index = static_cast<std::uint16_t>(inputs_ != nullptr ? inputs_->powers.other_processes_index() : 1);
  background_energy_.add(other_index, rate * cell_values.other_cpu_s * cell_values.background_fraction);
  energy_by_unknown_.add(other_index, rate * cell_values.other_cpu_s);
}

CpuAttribution::Rates CpuAttribution::mean_rates_between(std::int64_t from_ns, std::int64_t to_ns) const {
  return {measured_j_per_modelled_j_.mean_rate(from_ns, to_ns), idle_j_per_busy_wall_s_.mean_rate(from_ns, to_ns),
          inputs_ != nullptr ? inputs_->other_cpu_s.mean_rate(from_ns, to_ns) : 0};
}

EnergyByColumn CpuAttribution::attribute_tally(std::uint32_t process, const ScopeTally& tally, double busy_time_s,
                                               const Rates& rates) const {
  const double cpu_s = seconds(tally.cpu_ns + tally.helper_threads_cpu_ns);
  EnergyByColumn joules;
  if (inputs_ == nullptr) {
    joules.add(0, cpu_s * rates.measured_j_per_modelled_j);
    return joules;
  }
  const std::uint16_t column = inputs_->cpu_use.column_of_scope(process, tally.scope);
  const double cpus = busy_time_s > 0 ? cpu_s / busy_time_s : 1;
  joules.add(column,
             modelled_cpu_j(column, cpu_s, cpus + rates.uncaptured_busy_cpus) * rates.measured_j_per_modelled_j);
  if (inputs_->powers.is_fitted) {
    joules.add(static_cast<std::uint16_t>(inputs_->powers.idle_index()), busy_time_s * rates.idle_j_per_busy_wall_s);
  }
  return joules;
}

// Energy of a row, in J, under each replicate of the powers. The measured total stays the same, so what one row gains
// the others lose.
std::vector<double> CpuAttribution::energy_replicates(const EnergyByColumn& joules) const {
  const CpuPowers& powers = inputs_->powers;
  const auto power_ratio = [&](std::size_t unknown, std::size_t replicate) {
    return powers.watts[unknown] > 0 ? powers.power_replicates[unknown][replicate] / powers.watts[unknown] : 1;
  };
  std::vector<double> replicates_j(kPowerReplicateCount);
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate) {
    double fitted_total_j = powers.is_fitted ? idle_j() : 0;
    double replicate_total_j = fitted_total_j * power_ratio(powers.idle_index(), replicate);
    for (const auto& [unknown, unknown_total_j] : energy_by_unknown_.joules_by_column()) {
      fitted_total_j += unknown_total_j;
      replicate_total_j += unknown_total_j * power_ratio(unknown, replicate);
    }
    for (const auto& [unknown, row_j] : joules.joules_by_column())
      replicates_j[replicate] += row_j * power_ratio(unknown, replicate);
    if (replicate_total_j > 0) replicates_j[replicate] *= fitted_total_j / replicate_total_j;
    replicates_j[replicate] *= powers.gain_replicates[replicate];
  }
  return replicates_j;
}

void CpuAttribution::fill_in_energy_details(ReportRow& row, const EnergyByColumn& joules,
                                            double additional_relative_sd) const {
  row.basis = kCpuTimeBasis;
  if (inputs_ == nullptr || !row.energy_j) return;
  const CpuPowers& powers = inputs_->powers;
  double regressed_j = 0;
  double unregressed_j = 0;
  for (const auto& [unknown, part_j] : joules.joules_by_column()) {
    if (unknown != powers.idle_index()) (powers.is_regressed[unknown] ? regressed_j : unregressed_j) += part_j;
  }
  if (regressed_j > unregressed_j) row.basis = kRegressedBasis;
  if (inputs_->is_estimated) row.basis = kEstimatedBasis;
  if (powers.is_fitted && powers.is_regressed[powers.idle_index()]) row.dynamic_j = regressed_j + unregressed_j;
  std::vector<double> replicates_j = energy_replicates(joules);
  const std::vector<double> normal_draws = draw_row_normals(row.path);
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
    replicates_j[replicate] *= std::max(1 + additional_relative_sd * normal_draws[replicate], 0.0);
  const auto [low_j, high_j] = central_interval(std::move(replicates_j), kIntervalProbability);
  row.low_j = std::min(low_j, *row.energy_j);
  row.high_j = std::max(high_j, *row.energy_j);
}

}  // namespace joulemap::attribution
