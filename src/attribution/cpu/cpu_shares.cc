// SPDX-License-Identifier: Apache-2.0
#include "attribution/cpu/cpu_shares.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr double kInterval = 0.9;

// Random draws of a row, seeded by its path: the same in every report of the recording.
std::vector<double> row_normal_draws(const std::vector<std::string>& path) {
  std::uint64_t seed = 0xCBF29CE484222325;
  for (const std::string& name : path) {
    for (const char letter : name + "\n") seed = (seed ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  std::mt19937_64 engine(seed);
  const auto uniform = [&] { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; };
  std::vector<double> luck;
  for (std::size_t r = 0; r < kReplicates; ++r) {
    const double size = std::sqrt(-2 * std::log(uniform()));
    luck.push_back(size * std::cos(2 * M_PI * uniform()));
  }
  return luck;
}

}  // namespace

CpuShares::CpuShares(const MachineEnergy& energy, const ActivitySums& sums)
    : known_(energy.cpu ? &*energy.cpu : nullptr), has_idle_time_(energy.has_idle_time) {
  const TimeCurve& captured_s = sums.captured_cpu_s();
  per_modelled_j_ = per_present_s_ = TimeCurve(captured_s.span(), captured_s.size());
  TimeCurve present_s(captured_s.span(), captured_s.size());
  TimeCurve modelled_j(captured_s.span(), captured_s.size());
  if (known_ != nullptr) {
    for (const CpuUse::Piece& piece : known_->use.pieces) {
      present_s.add(piece.begin_ns, piece.end_ns, piece.presence_s);
      const double other_cpus = known_->other_s.mean_rate(piece.begin_ns, piece.end_ns);
      modelled_j.add(piece.begin_ns, piece.end_ns, modelled(piece.column, piece.cpu_s, piece.cpus() + other_cpus));
    }
  }
  const double uncaptured_s = std::max(energy.command_cpu_s.value_or(0) - captured_s.total(), 0.0);
  const double own_s = uncaptured_s / static_cast<double>(captured_s.size());
  std::vector<Cell> cells;
  for (std::size_t cell = 0; cell < captured_s.size(); ++cell) {
    Cell now{.joules = energy.cpu_j ? (*energy.cpu_j)[cell] : 0, .length_s = captured_s.cell_s()};
    now.captured_s = captured_s[cell];
    now.present_s = known_ != nullptr ? present_s[cell] : now.captured_s;
    now.modelled_j = known_ != nullptr ? modelled_j[cell] : now.captured_s;
    const double machine_s = energy.machine_cpu_s ? (*energy.machine_cpu_s)[cell] : 0;
    now.other_s = known_ != nullptr ? known_->other_s[cell] : std::max(machine_s - now.captured_s, 0.0);
    now.other_s = std::max(now.other_s, own_s);
    now.background = now.other_s > 0 ? 1 - own_s / now.other_s : 0;
    background_s_ += now.other_s * now.background;
    cells.push_back(now);
  }
  const bool fitted = known_ != nullptr && known_->powers.fitted;
  if (fitted) draw_within_readings(cells);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    fitted ? share_out(cell, cells[cell]) : share_out_by_time(cell, cells[cell]);
  }
  per_modelled_j_.finish();
  per_present_s_.finish();
}

double CpuShares::modelled(std::uint16_t column, double cpu_s, double cpus) const {
  return cpu_s * known_->powers.watts[column] * crowding(std::min(cpus, known_->cpus), known_->powers.growth);
}

double CpuShares::others_j(const Cell& now) const {
  const CpuPowers& powers = known_->powers;
  return powers.watts[powers.other()] * now.other_s *
         others_crowding(now.other_s, now.captured_s, now.length_s, powers.growth);
}

double CpuShares::all_j(const Cell& now) const {
  return known_->powers.watts[known_->powers.idle()] * now.length_s + now.modelled_j + others_j(now);
}

// Between two readings only the sum is known: distributes it in proportion to the modelled power.
void CpuShares::draw_within_readings(std::vector<Cell>& cells) const {
  const TimeSpan span = per_modelled_j_.span();
  const auto middle_ns = [&](std::size_t cell) {
    return span.begin_ns + static_cast<std::int64_t>((static_cast<double>(cell) + 0.5) * cells[cell].length_s *
                                                     static_cast<double>(kNanosecondsPerSecond));
  };
  std::size_t first = 0;
  for (const std::int64_t edge_ns : known_->readings_ns) {
    std::size_t last = first;
    double joules = 0;
    double modelled_j = 0;
    for (; last < cells.size() && middle_ns(last) < edge_ns; ++last) {
      joules += cells[last].joules;
      modelled_j += all_j(cells[last]);
    }
    for (; first < last; ++first) {
      if (modelled_j > 0) cells[first].joules = joules * all_j(cells[first]) / modelled_j;
    }
  }
}

void CpuShares::share_out(std::size_t cell, const Cell& now) {
  const CpuPowers& powers = known_->powers;
  const double present = std::min(now.present_s / now.length_s, 1.0);
  const double other_cpus = now.other_s / now.length_s;
  const double active = any_cpu_busy_fraction(present, other_cpus);
  const double others_j = this->others_j(now);
  const double idle_j = powers.watts[powers.idle()] * now.length_s;
  const double all_j = this->all_j(now);
  if (all_j <= 0) return;
  const double scale = now.joules / all_j;
  if (has_idle_time_) idle_j_ += scale * idle_j * (1 - active);
  // While both have busy CPUs, idle power is split by the number of CPUs of each.
  const double other_present = std::min(other_cpus, 1.0);
  double command = 0;
  if (present > 0) {
    const double cpus = now.captured_s / now.present_s;
    const double others = other_present > 0 ? other_cpus / other_present : 0;
    const double together = std::max(std::min(cpus + others, known_->cpus), cpus);
    command = present * (1 - other_present + other_present * cpus / together);
  }
  per_modelled_j_.set(cell, scale * now.length_s);
  if (now.present_s > 0) per_present_s_.set(cell, scale * idle_j * command / now.present_s * now.length_s);
  const auto other = static_cast<std::uint16_t>(powers.other());
  const auto idle = static_cast<std::uint16_t>(powers.idle());
  background_.add(other, scale * others_j * now.background);
  background_.add(idle, scale * idle_j * (active - command) * now.background);
  noted_.add(other, scale * others_j);
  noted_.add(idle, scale * idle_j * (active - command));
}

void CpuShares::share_out_by_time(std::size_t cell, const Cell& now) {
  const double all_s = now.modelled_j + now.other_s;  // all powers are 1
  const double active = any_cpu_busy_fraction(now.present_s / now.length_s, now.other_s / now.length_s);
  // A gap in a trace of another tool does not show whether the machine was idle.
  if (has_idle_time_) idle_j_ += now.joules * (1 - active);
  if (all_s <= 0) return;
  const double rate = now.joules * active / all_s;
  per_modelled_j_.set(cell, rate * now.length_s);
  const auto other = static_cast<std::uint16_t>(known_ != nullptr ? known_->powers.other() : 1);
  background_.add(other, rate * now.other_s * now.background);
  noted_.add(other, rate * now.other_s);
}

CpuShares::Rates CpuShares::rates(std::int64_t from_ns, std::int64_t to_ns) const {
  return {per_modelled_j_.mean_rate(from_ns, to_ns), per_present_s_.mean_rate(from_ns, to_ns),
          known_ != nullptr ? known_->other_s.mean_rate(from_ns, to_ns) : 0};
}

ClassJoules CpuShares::part(std::uint32_t process, const ScopeTally& tally, double present_s,
                            const Rates& rates) const {
  const double cpu_s = seconds(tally.cpu_ns + tally.helpers_ns);
  ClassJoules joules;
  if (known_ == nullptr) {
    joules.add(0, cpu_s * rates.per_modelled_j);
    return joules;
  }
  const std::uint16_t column = known_->use.column(process, tally.scope);
  const double cpus = present_s > 0 ? cpu_s / present_s : 1;
  joules.add(column, modelled(column, cpu_s, cpus + rates.other_cpus) * rates.per_modelled_j);
  if (known_->powers.fitted) {
    joules.add(static_cast<std::uint16_t>(known_->powers.idle()), present_s * rates.per_present_s);
  }
  return joules;
}

// Energy of a row under replicate powers. The measured total stays the same, so what one row gains the others lose.
std::vector<double> CpuShares::replicates_of(const ClassJoules& joules) const {
  const CpuPowers& powers = known_->powers;
  const auto ratio = [&](std::size_t unknown, std::size_t r) {
    return powers.watts[unknown] > 0 ? powers.replicates[unknown][r] / powers.watts[unknown] : 1;
  };
  std::vector<double> drawn(kReplicates);
  for (std::size_t r = 0; r < kReplicates; ++r) {
    double before_j = powers.fitted ? idle_j_ : 0;
    double after_j = before_j * ratio(powers.idle(), r);
    for (const auto& [unknown, all_j] : noted_.by_column()) {
      before_j += all_j;
      after_j += all_j * ratio(unknown, r);
    }
    for (const auto& [unknown, row_j] : joules.by_column()) drawn[r] += row_j * ratio(unknown, r);
    if (after_j > 0) drawn[r] *= before_j / after_j;
    drawn[r] *= powers.gains[r];
  }
  return drawn;
}

void CpuShares::describe(ReportRow& row, const ClassJoules& joules, double spread) const {
  row.basis = kByCpuTime;
  if (known_ == nullptr || !row.energy_j) return;
  const CpuPowers& powers = known_->powers;
  double known_j = 0;
  double unknown_j = 0;
  for (const auto& [unknown, part_j] : joules.by_column()) {
    if (unknown != powers.idle()) (powers.regressed[unknown] ? known_j : unknown_j) += part_j;
  }
  if (known_j > unknown_j) row.basis = kRegressed;
  if (known_->estimated) row.basis = kEstimated;
  if (powers.fitted && powers.regressed[powers.idle()]) row.dynamic_j = known_j + unknown_j;
  std::vector<double> drawn = replicates_of(joules);
  const std::vector<double> luck = row_normal_draws(row.path);
  for (std::size_t r = 0; r < kReplicates; ++r) drawn[r] *= std::max(1 + spread * luck[r], 0.0);
  const auto [low_j, high_j] = central_interval(std::move(drawn), kInterval);
  row.low_j = std::min(low_j, *row.energy_j);
  row.high_j = std::max(high_j, *row.energy_j);
}

}  // namespace joulemap::attribution
