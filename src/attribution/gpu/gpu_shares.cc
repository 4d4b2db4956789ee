// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/gpu_shares.h"

#include <fmt/format.h>

#include <algorithm>

namespace joulemap::attribution {
namespace {

constexpr double kInterval = 0.9;
constexpr double kWorthTelling = 0.1;

double power_ratio(const PowerFit& fit, std::size_t column, std::size_t replicate) {
  return fit.replicates[column][replicate] / fit.classes[column].watts;
}

// False: nothing is known except that powers differ.
bool tells_idle_apart(const PowerFit& fit) {
  return std::ranges::any_of(fit.classes, [&](const ClassPower& power) { return power.watts != fit.idle().watts; });
}

}  // namespace

// For each cell: joules per second of a kernel of weight 1. Concurrent kernels, including those of co-tenants, share
// the time.
GpuShares::Device GpuShares::shared_out(const MachineEnergy::Gpu& gpu, const TimeCurve* busy_s) {
  const TimeCurve& like = busy_s != nullptr ? *busy_s : *gpu.others_s;
  Device device{&gpu, TimeCurve(like.span(), like.size()), 0, 0, busy_s != nullptr};
  const std::optional<GpuPowers>& powers = gpu.powers;
  const double idle_weight = powers ? powers->fit.idle().watts : 1;
  const double others_weight = powers && powers->others ? powers->fit.classes[*powers->others].watts : 1;
  const double cell_s = like.cell_s();
  for (std::size_t cell = 0; cell < like.size(); ++cell) {
    const double others_s = gpu.others_s ? (*gpu.others_s)[cell] : 0;
    const double all_s = (busy_s != nullptr ? (*busy_s)[cell] : 0) + others_s;
    const double together = std::max(all_s / cell_s, 1.0);
    const double busy_weight = (powers ? powers->modelled_j[cell] : all_s) / together;
    const double idle = idle_weight * std::max(cell_s - all_s, 0.0);
    const double joules = gpu.energy_j[cell];
    const double all = busy_weight + idle;
    if (all <= 0) continue;
    device.rate.set(cell, joules / together / all * cell_s);
    device.idle_j += joules * idle / all;
    device.others_j += joules / together / all * others_weight * others_s;
  }
  device.rate.finish();
  return device;
}

GpuShares::GpuShares(const MachineEnergy& energy, const ActivitySums& sums) {
  for (const auto& [name, gpu] : energy.gpus) {
    const auto busy_s = sums.gpu_busy_s().find(name);
    const bool is_used = busy_s != sums.gpu_busy_s().end();
    if (!is_used && !gpu.others_s) continue;
    Device& device = devices_.emplace(name, shared_out(gpu, is_used ? &busy_s->second : nullptr)).first->second;
    if (is_used) device.stretches = sums.gpu_stretches().at(name);
    device.knows_idle_w = gpu.powers && tells_idle_apart(gpu.powers->fit);
  }
}

double GpuShares::rate(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const {
  const auto known = devices_.find(device);
  return known == devices_.end() ? 0 : known->second.rate.mean_rate(from_ns, to_ns);
}

double GpuShares::rate_of_kernel(const std::string& device, const Kernel& kernel) const {
  const auto known = devices_.find(device);
  if (known == devices_.end()) return 0;
  const Device& its = known->second;
  if (its.knows_idle_w) {
    const auto after = std::ranges::upper_bound(its.stretches, kernel.start_ns, {}, &TimeSpan::begin_ns);
    if (after != its.stretches.begin() && std::prev(after)->end_ns > kernel.start_ns)
      return its.rate.mean_rate(std::prev(after)->begin_ns, std::prev(after)->end_ns);
  }
  return its.rate.mean_rate(kernel.start_ns, kernel.end_ns);
}

GpuShares::Weight GpuShares::weight(const std::string& device, std::uint32_t process, std::uint32_t class_id,
                                    double length_ns) const {
  const auto known = devices_.find(device);
  if (known == devices_.end() || !known->second.gpu->powers) return {};
  const GpuPowers& powers = *known->second.gpu->powers;
  const auto column = powers.column_of.find({process, class_id});
  if (column == powers.column_of.end()) return {};
  const auto usual = powers.usual_ns.find({process, class_id});
  const double slowdown = usual == powers.usual_ns.end() ? 1 : slowdown_of(length_ns, usual->second);
  return {powers.fit.watts_at(column->second, slowdown), column->second, true};
}

double GpuShares::idle_j() const {
  double sum_j = 0;
  for (const auto& [name, device] : devices_) {
    if (device.has_idle_time) sum_j += device.idle_j;
  }
  return sum_j;
}

std::vector<GpuShares::Background> GpuShares::backgrounds() const {
  std::vector<Background> all;
  for (const auto& [name, device] : devices_) {
    if (!device.gpu->others_s) continue;
    Background& one =
        all.emplace_back(Background{device.gpu->domain, device.gpu->others_s->total(), device.others_j, ClassJoules()});
    const std::optional<GpuPowers>& powers = device.gpu->powers;
    if (powers && powers->others) one.by_class.add(*powers->others, one.energy_j);
  }
  return all;
}

const GpuShares::Device* GpuShares::of_domain(const std::string& domain) const {
  for (const auto& [name, device] : devices_) {
    if (device.gpu->domain == domain && device.gpu->powers) return &device;
  }
  return nullptr;
}

// Energy of a row under replicate powers. The GPU's total stays the same, so what one row gains the others lose.
std::vector<double> GpuShares::replicates_of(const Device& device, const ClassJoules& joules,
                                             const ClassJoules& all) const {
  const PowerFit& fit = device.gpu->powers->fit;
  const std::size_t idle = fit.classes.size() - 1;
  std::vector<double> drawn(kReplicates);
  for (std::size_t r = 0; r < kReplicates; ++r) {
    double before_j = device.idle_j;
    double after_j = device.idle_j * power_ratio(fit, idle, r);
    for (const auto& [column, all_j] : all.by_column()) {
      before_j += all_j;
      after_j += all_j * power_ratio(fit, column, r);
    }
    for (const auto& [column, row_j] : joules.by_column()) drawn[r] += row_j * power_ratio(fit, column, r);
    if (after_j > 0) drawn[r] *= before_j / after_j * fit.gains[r];
  }
  return drawn;
}

void GpuShares::diagnose(Diagnostics& diagnostics) const {
  for (const auto& [domain, joules] : noted_) {
    const Device* const device = of_domain(domain);
    if (device == nullptr) continue;
    const PowerFit& fit = device->gpu->powers->fit;
    double by_time_j = 0;
    double by_library_j = 0;
    double all_j = 0;
    for (const auto& [column, column_j] : joules.by_column()) {
      if (column == device->gpu->powers->others) continue;
      all_j += column_j;
      const ClassPower& power = fit.classes[column];
      if (power.by_library) by_library_j += column_j;
      if (!power.regressed && !power.by_library) by_time_j += column_j;
    }
    if (fit.pace > 0) {
      diagnostics.add({"slowed_kernels", 1,
                       fmt::format("{}: its clocks were held back at times; kernels that took longer then were given "
                                   "less power above idling, by the power of {:.1f} of how much longer",
                                   domain, fit.pace),
                       ""});
    }
    if (by_library_j > kWorthTelling * all_j) {
      diagnostics.add({"kernels_by_library", 1,
                       fmt::format("{}: {:.0f} % of the kernels' energy is shared out by what the kernel library knew "
                                   "of them, or of others of their kind, from earlier recordings",
                                   domain, 100 * by_library_j / all_j),
                       "report --library none tells what this recording says by itself"});
    }
    if (by_time_j <= kWorthTelling * all_j) continue;
    const bool by_gauge = fit.memory_ns > 0;
    const std::string_view kind = by_gauge ? "values of its power" : "intervals of its counter";
    const std::string seen = fit.rows > 0 ? fmt::format("{} {}", fit.rows, kind) : fmt::format("too few {}", kind);
    diagnostics.add({"kernels_by_time", 1,
                     fmt::format("{}: {} do not tell what each kind of kernel draws; {:.0f} % of the kernels' energy "
                                 "is shared out by time",
                                 domain, seen, 100 * by_time_j / all_j),
                     by_gauge ? "record --probe replays modules to find out; or record for longer"
                              : "record --probe replays modules to find out; or record for longer, or with --period "
                                "100"});
  }
}

void GpuShares::describe(ReportRow& row, const ClassJoules& joules) const {
  row.basis = kByTimeShare;
  const Device* const device = of_domain(row.device);
  const auto all = noted_.find(row.device);
  if (device == nullptr || all == noted_.end() || !row.energy_j) return;
  const PowerFit& fit = device->gpu->powers->fit;
  double regressed_j = 0;
  double probed_j = 0;
  double by_library_j = 0;
  double dynamic_j = 0;
  double sum_j = 0;
  for (const auto& [column, column_j] : joules.by_column()) {
    sum_j += column_j;
    if (fit.classes[column].regressed) regressed_j += column_j;
    if (fit.classes[column].probed) probed_j += column_j;
    if (fit.classes[column].by_library) by_library_j += column_j;
    dynamic_j += column_j * std::max(1 - fit.idle().watts / fit.classes[column].watts, 0.0);
  }
  if (by_library_j > sum_j / 2) row.basis = kByLibrary;
  if (regressed_j > sum_j / 2) row.basis = probed_j > regressed_j / 2 ? kProbed : kRegressed;
  if (fit.idle().regressed) row.dynamic_j = dynamic_j;
  const auto [low_j, high_j] = central_interval(replicates_of(*device, joules, all->second), kInterval);
  row.low_j = std::min(low_j, *row.energy_j);
  row.high_j = std::max(high_j, *row.energy_j);
}

}  // namespace joulemap::attribution
