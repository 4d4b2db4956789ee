// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/gpu_attribution.h"

#include <fmt/format.h>

#include <algorithm>

namespace joulemap::attribution {
namespace {

constexpr double kIntervalProbability = 0.9;
constexpr double kMinReportedIdleFraction = 0.1;
constexpr double kMinExplainedIdleFraction = 0.5;

double replicate_power_ratio(const PowerFit& fit, std::size_t column, std::size_t replicate) {
  return fit.power_replicates[column][replicate] / fit.classes[column].watts;
}

// False if all classes have idle's power: then nothing is known about powers.
bool has_distinct_idle_power(const PowerFit& fit) {
  return std::ranges::any_of(fit.classes,
                             [&](const KernelClassPower& power) { return power.watts != fit.idle_power().watts; });
}

// From the first kernel of the run to the last one, clamped to `span`. Without any kernel: empty, at the end.
TimeSpan find_device_kernel_span(const ActivitySums& sums, const std::string& device, TimeSpan span) {
  const auto kernel_span = sums.gpu_work_spans().find(device);
  if (kernel_span == sums.gpu_work_spans().end() || kernel_span->second.end_ns < kernel_span->second.begin_ns)
    return {span.end_ns, span.end_ns};
  return {std::clamp(kernel_span->second.begin_ns, span.begin_ns, span.end_ns),
          std::clamp(kernel_span->second.end_ns, span.begin_ns, span.end_ns)};
}

}  // namespace

// Splits the energy of each cell among kernels, co-tenants and idle, by weight. Concurrent kernels, including those of
// co-tenants, share the time.
GpuAttribution::DeviceEnergySplit GpuAttribution::split_gpu_energy(const MachineEnergy::Gpu& gpu,
                                                                   const TimeCurve* busy_s) {
  const TimeCurve& grid = busy_s != nullptr ? *busy_s : *gpu.co_tenant_s;
  DeviceEnergySplit device{&gpu, TimeCurve(grid.span(), grid.size()), 0, 0, busy_s != nullptr};
  const std::optional<GpuPowers>& powers = gpu.powers;
  const double idle_weight = powers ? powers->power_fit.idle_power().watts : 1;
  const double co_tenant_weight =
      powers && powers->co_tenant_column ? powers->power_fit.classes[*powers->co_tenant_column].watts : 1;
  device.idle_j_over_time = device.idle_s_over_time = TimeCurve(grid.span(), grid.size());
  const double cell_s = grid.cell_s();
  for (std::size_t cell = 0; cell < grid.size(); ++cell) {
    const double co_tenant_s = gpu.co_tenant_s ? (*gpu.co_tenant_s)[cell] : 0;
    const double total_busy_s = (busy_s != nullptr ? (*busy_s)[cell] : 0) + co_tenant_s;
    const double concurrency = std::max(total_busy_s / cell_s, 1.0);
    const double busy_weight = (powers ? powers->modelled_j[cell] : total_busy_s) / concurrency;
    const double idle = idle_weight * std::max(cell_s - total_busy_s, 0.0);
    const double joules = gpu.energy_j[cell];
    const double total_weight = busy_weight + idle;
    if (total_weight <= 0) continue;
    device.power_per_weight.set(cell, joules / concurrency / total_weight * cell_s);
    device.idle_j += joules * idle / total_weight;
    device.idle_j_over_time.set(cell, joules * idle / total_weight);
    device.idle_s_over_time.set(cell, std::max(cell_s - total_busy_s, 0.0));
    device.co_tenant_j += joules / concurrency / total_weight * co_tenant_weight * co_tenant_s;
  }
  device.power_per_weight.finish();
  return device;
}

// Idle energy of a cell belongs to the scopes that the device waited for in it. Waiting times are sums over intervals
// of about a second, so they do not match cells exactly: where they cover at least half of a cell's idle time, they get
// all of its idle energy.
void GpuAttribution::split_idle_energy_among_waits(DeviceEnergySplit& device, const TimeCurve* wait_s) {
  const TimeCurve& idle_j = device.idle_j_over_time;
  device.idle_j_per_waiting_s = device.idle_s_per_waiting_s = TimeCurve(idle_j.span(), idle_j.size());
  device.unexplained_j = device.unexplained_s = device.idle_j_per_waiting_s;
  for (std::size_t cell = 0; cell < idle_j.size(); ++cell) {
    const double idle_s = device.idle_s_over_time[cell];
    const double waiting_s = wait_s != nullptr ? (*wait_s)[cell] : 0;
    const bool is_explained = waiting_s >= kMinExplainedIdleFraction * idle_s;
    const double explained_s = is_explained ? idle_s : waiting_s;
    if (waiting_s > 0 && idle_s > 0) {
      device.idle_j_per_waiting_s.set(cell, idle_j[cell] * explained_s / idle_s / waiting_s * idle_j.cell_s());
      device.idle_s_per_waiting_s.set(cell, explained_s / waiting_s * idle_j.cell_s());
    }
    if (is_explained && waiting_s > 0) continue;
    device.unexplained_s.set(cell, idle_s - explained_s);
    if (idle_s > 0) device.unexplained_j.set(cell, idle_j[cell] * (1 - explained_s / idle_s));
  }
  for (TimeCurve* curve : {&device.idle_j_per_waiting_s, &device.idle_s_per_waiting_s, &device.unexplained_j,
                           &device.unexplained_s, &device.idle_j_over_time, &device.idle_s_over_time})
    curve->finish();
}

GpuAttribution::GpuAttribution(const MachineEnergy& energy, const ActivitySums& sums) : machine_energy_(energy) {
  for (const auto& [name, gpu] : energy.gpus) {
    const auto busy_s = sums.gpu_busy_s().find(name);
    const bool has_kernels = busy_s != sums.gpu_busy_s().end();
    if (!has_kernels && !gpu.co_tenant_s) continue;
    DeviceEnergySplit& device =
        devices_.emplace(name, split_gpu_energy(gpu, has_kernels ? &busy_s->second : nullptr)).first->second;
    if (has_kernels) device.slices = sums.gpu_kernel_intervals().at(name);
    device.work = find_device_kernel_span(sums, name, device.power_per_weight.span());
    device.has_idle_power = gpu.powers && has_distinct_idle_power(gpu.powers->power_fit);
    const auto wait_s = sums.gpu_wait_s().find(name);
    split_idle_energy_among_waits(device, wait_s == sums.gpu_wait_s().end() ? nullptr : &wait_s->second);
  }
}

double GpuAttribution::power_per_weight(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const {
  const auto device_entry = devices_.find(device);
  return device_entry == devices_.end() ? 0 : device_entry->second.power_per_weight.mean_rate(from_ns, to_ns);
}

double GpuAttribution::kernel_power_per_weight(const std::string& device, const Kernel& kernel) const {
  const auto device_entry = devices_.find(device);
  if (device_entry == devices_.end()) return 0;
  const DeviceEnergySplit& device_split = device_entry->second;
  if (device_split.has_idle_power) {
    const auto following_slice =
        std::ranges::upper_bound(device_split.slices, kernel.start_ns, {}, &TimeSpan::begin_ns);
    if (following_slice != device_split.slices.begin() && std::prev(following_slice)->end_ns > kernel.start_ns)
      return device_split.power_per_weight.mean_rate(std::prev(following_slice)->begin_ns,
                                                     std::prev(following_slice)->end_ns);
  }
  return device_split.power_per_weight.mean_rate(kernel.start_ns, kernel.end_ns);
}

GpuAttribution::KernelWeight GpuAttribution::kernel_weight(const std::string& device, std::uint32_t process,
                                                           std::uint32_t class_id, double length_ns) const {
  const KernelWeightByDuration weight_by_duration = kernel_weight_by_duration(device, process, class_id);
  return {weight_by_duration.weight_for_duration(length_ns), weight_by_duration.column(),
          weight_by_duration.is_power_known()};
}

double GpuAttribution::KernelWeightByDuration::weight_for_duration(double length_ns) const {
  return fit_ == nullptr ? 1 : fit_->class_power_w(column_, slowdown_factor(length_ns, full_speed_ns_));
}

GpuAttribution::KernelWeightByDuration GpuAttribution::kernel_weight_by_duration(const std::string& device,
                                                                                 std::uint32_t process,
                                                                                 std::uint32_t class_id) const {
  const auto device_entry = devices_.find(device);
  if (device_entry == devices_.end() || !device_entry->second.gpu->powers) return {};
  const GpuPowers& powers = *device_entry->second.gpu->powers;
  const auto column = powers.class_columns.find({process, class_id});
  if (column == powers.class_columns.end()) return {};
  const auto full_speed_duration = powers.full_speed_ns.find({process, class_id});
  return {powers.power_fit, column->second,
          full_speed_duration == powers.full_speed_ns.end() ? 0 : full_speed_duration->second};
}

double GpuAttribution::idle_j() const {
  double sum_j = 0;
  for (const auto& [name, device] : devices_) {
    if (device.has_idle_time) sum_j += device.idle_j;
  }
  return sum_j;
}

GpuAttribution::IdlePerWaitingSecond GpuAttribution::idle_per_waiting_second(const std::string& device,
                                                                             std::int64_t from_ns,
                                                                             std::int64_t to_ns) const {
  const auto device_entry = devices_.find(device);
  if (device_entry == devices_.end()) return {};
  return {device_entry->second.idle_j_per_waiting_s.mean_rate(from_ns, to_ns),
          device_entry->second.idle_s_per_waiting_s.mean_rate(from_ns, to_ns)};
}

std::optional<double> GpuAttribution::idle_power_w(const std::string& device, std::int64_t from_ns,
                                                   std::int64_t to_ns) const {
  const auto device_entry = devices_.find(device);
  if (device_entry == devices_.end() || !device_entry->second.has_idle_time) return std::nullopt;
  const TimeCurve& joules = device_entry->second.idle_j_over_time;
  const TimeCurve& time_s = device_entry->second.idle_s_over_time;
  const double idle_s = time_s.amount_between(from_ns, to_ns);
  if (idle_s > 0) return joules.amount_between(from_ns, to_ns) / idle_s;
  return time_s.total() > 0 ? std::optional(joules.total() / time_s.total()) : std::nullopt;
}

std::vector<GpuAttribution::UnexplainedIdle> GpuAttribution::unexplained_idle() const {
  std::vector<UnexplainedIdle> idle_of_devices;
  for (const auto& [name, device] : devices_) {
    if (!device.has_idle_time) continue;
    const TimeSpan span = device.unexplained_j.span();
    const auto [first_ns, last_ns] = device.work;
    idle_of_devices.push_back({.device = device.gpu->domain_name,
                               .before_first_kernel = unexplained_amount_between(device, span.begin_ns, first_ns),
                               .between_kernels = unexplained_amount_between(device, first_ns, last_ns),
                               .after_last_kernel = unexplained_amount_between(device, last_ns, span.end_ns)});
  }
  return idle_of_devices;
}

IdleAmount GpuAttribution::unexplained_amount_between(const DeviceEnergySplit& device, std::int64_t from_ns,
                                                      std::int64_t to_ns) const {
  return {.time_s = device.unexplained_s.amount_between(from_ns, to_ns),
          .energy_j = device.unexplained_j.amount_between(from_ns, to_ns),
          .program_time_s = machine_energy_.program_amount_between(device.unexplained_s, from_ns, to_ns),
          .program_energy_j = machine_energy_.program_amount_between(device.unexplained_j, from_ns, to_ns)};
}

IdleAmount GpuAttribution::unexplained_idle_between(const std::string& device, std::int64_t from_ns,
                                                    std::int64_t to_ns) const {
  const auto device_entry = devices_.find(device);
  if (device_entry == devices_.end() || !device_entry->second.has_idle_time) return {};
  const TimeSpan kernels = device_entry->second.work;
  return unexplained_amount_between(device_entry->second, std::max(from_ns, kernels.begin_ns),
                                    std::min(to_ns, kernels.end_ns));
}

std::optional<std::pair<double, double>> GpuAttribution::idle_energy_interval(const std::string& domain,
                                                                              double joules) const {
  const DeviceEnergySplit* const device = find_device(domain);
  const auto domain_energy = class_joules_by_domain_.find(domain);
  if (device == nullptr) return std::nullopt;
  EnergyByColumn idle;
  idle.add(static_cast<std::uint16_t>(device->gpu->powers->power_fit.classes.size() - 1), joules);
  const auto [low_j, high_j] = central_interval(
      energy_replicates(*device, idle,
                        domain_energy == class_joules_by_domain_.end() ? EnergyByColumn() : domain_energy->second),
      kIntervalProbability);
  return std::pair(std::min(low_j, joules), std::max(high_j, joules));
}

std::vector<GpuAttribution::CoTenantEnergy> GpuAttribution::co_tenant_energies() const {
  std::vector<CoTenantEnergy> device_energies;
  for (const auto& [name, device] : devices_) {
    if (!device.gpu->co_tenant_s) continue;
    CoTenantEnergy& co_tenant_energy = device_energies.emplace_back(CoTenantEnergy{
        device.gpu->domain_name, device.gpu->co_tenant_s->total(), device.co_tenant_j, EnergyByColumn()});
    const std::optional<GpuPowers>& powers = device.gpu->powers;
    if (powers && powers->co_tenant_column)
      co_tenant_energy.energy_by_column.add(*powers->co_tenant_column, co_tenant_energy.energy_j);
  }
  return device_energies;
}

const GpuAttribution::DeviceEnergySplit* GpuAttribution::find_device(const std::string& domain) const {
  for (const auto& [name, device] : devices_) {
    if (device.gpu->domain_name == domain && device.gpu->powers) return &device;
  }
  return nullptr;
}

// Energy of a row, in J, under each replicate of the powers. The GPU's total stays the same, so what one row gains the
// others lose.
std::vector<double> GpuAttribution::energy_replicates(const DeviceEnergySplit& device, const EnergyByColumn& joules,
                                                      const EnergyByColumn& domain_energy) const {
  const PowerFit& fit = device.gpu->powers->power_fit;
  const std::size_t idle = fit.classes.size() - 1;
  std::vector<double> replicates_j(kPowerReplicateCount);
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate) {
    double fitted_total_j = device.idle_j;
    double replicate_total_j = device.idle_j * replicate_power_ratio(fit, idle, replicate);
    for (const auto& [column, column_total_j] : domain_energy.joules_by_column()) {
      fitted_total_j += column_total_j;
      replicate_total_j += column_total_j * replicate_power_ratio(fit, column, replicate);
    }
    for (const auto& [column, row_j] : joules.joules_by_column())
      replicates_j[replicate] += row_j * replicate_power_ratio(fit, column, replicate);
    if (replicate_total_j > 0)
      replicates_j[replicate] *= fitted_total_j / replicate_total_j * fit.gain_replicates[replicate];
  }
  return replicates_j;
}

void GpuAttribution::add_attribution_basis_diagnostics(Diagnostics& diagnostics) const {
  for (const auto& [domain, joules] : class_joules_by_domain_) {
    const DeviceEnergySplit* const device = find_device(domain);
    if (device == nullptr) continue;
    const PowerFit& fit = device->gpu->powers->power_fit;
    double time_split_j = 0;
    double library_power_j = 0;
    double kernel_energy_j = 0;
    for (const auto& [column, column_j] : joules.joules_by_column()) {
      if (column == device->gpu->powers->co_tenant_column) continue;
      kernel_energy_j += column_j;
      const KernelClassPower& power = fit.classes[column];
      if (power.is_from_library) library_power_j += column_j;
      if (!power.is_regressed && !power.is_from_library) time_split_j += column_j;
    }
    if (fit.slowdown_exponent > 0) {
      diagnostics.add({"slowed_kernels", 1,
                       fmt::format("{}: its clocks were throttled at times; the power above idle of slowed kernels is "
                                   "divided by slowdown^{:.1f}",
                                   domain, fit.slowdown_exponent),
                       ""});
    }
    if (library_power_j > kMinReportedIdleFraction * kernel_energy_j) {
      diagnostics.add({"kernels_by_library", 1,
                       fmt::format("{}: {:.0f} % of kernel energy is attributed with powers from the kernel library, "
                                   "learned from earlier recordings",
                                   domain, 100 * library_power_j / kernel_energy_j),
                       "report --library none uses this recording only"});
    }
    if (time_split_j <= kMinReportedIdleFraction * kernel_energy_j) continue;
    const bool is_gauge_fit = fit.time_constant_ns > 0;
    const bool is_probed = std::ranges::any_of(fit.classes, &KernelClassPower::is_probed);
    const std::string_view kind = is_gauge_fit ? "power samples" : "counter intervals";
    const std::string evidence_text = fit.observation_count > 0
                                          ? fmt::format("{} {} cannot", fit.observation_count, kind)
                                          : fmt::format("too few {} to", kind);
    diagnostics.add(
        {"kernels_by_time", 1,
         fmt::format("{}: {} separate all kernel classes; {:.0f} % of kernel energy is split by time{}", domain,
                     evidence_text, 100 * time_split_j / kernel_energy_j,
                     fit.uses_default_powers ? " and the usual power of such kernels" : ""),
         is_probed ? "record for longer"
         : is_gauge_fit
             ? "record with --probe for measurements of each module, or record for longer"
             : "record with --probe for measurements of each module, record for longer, or use --period 100"});
  }
}

void GpuAttribution::fill_in_energy_details(ReportRow& row, const EnergyByColumn& joules) const {
  row.basis = kTimeShareBasis;
  const DeviceEnergySplit* const device = find_device(row.device);
  const auto domain_energy = class_joules_by_domain_.find(row.device);
  if (device == nullptr || domain_energy == class_joules_by_domain_.end() || !row.energy_j) return;
  const PowerFit& fit = device->gpu->powers->power_fit;
  double regressed_j = 0;
  double probed_j = 0;
  double library_power_j = 0;
  double dynamic_j = 0;
  double sum_j = 0;
  for (const auto& [column, column_j] : joules.joules_by_column()) {
    sum_j += column_j;
    if (fit.classes[column].is_regressed) regressed_j += column_j;
    if (fit.classes[column].is_probed) probed_j += column_j;
    if (fit.classes[column].is_from_library) library_power_j += column_j;
    dynamic_j += column_j * std::max(1 - fit.idle_power().watts / fit.classes[column].watts, 0.0);
  }
  if (library_power_j > sum_j / 2) row.basis = kLibraryBasis;
  if (regressed_j > sum_j / 2) row.basis = probed_j > regressed_j / 2 ? kProbedBasis : kRegressedBasis;
  if (fit.idle_power().is_regressed) row.dynamic_j = dynamic_j;
  const auto [low_j, high_j] =
      central_interval(energy_replicates(*device, joules, domain_energy->second), kIntervalProbability);
  row.low_j = std::min(low_j, *row.energy_j);
  row.high_j = std::max(high_j, *row.energy_j);
}

}  // namespace joulemap::attribution
