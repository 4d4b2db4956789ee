// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/host_ledgers.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "attribution/gpu/kernel_learning.h"
#include "attribution/gpu/lost_kernels.h"
#include "attribution/ledger/clipped_activity.h"
#include "attribution/ledger/ledger_notes.h"
#include "attribution/ledger/machine_rows.h"
#include "base/quadrature.h"

namespace joulemap::attribution {
namespace {

// Standard deviations in the half width of a 95 % interval; uncertainties of domains are half widths.
constexpr double kHalfWidth95 = 1.96;
// Gain error of RAPL without calibration, half width at 95 %: server CPUs since Haswell are within 4 % of wall meters.
constexpr double kGainWithin95 = 0.04;
constexpr double kGainSpread = kGainWithin95 / kHalfWidth95;

void add_curve(std::optional<TimeCurve>& sum, const TimeCurve& curve) {
  if (!sum) sum.emplace(curve.span(), curve.size());
  for (std::size_t cell = 0; cell < curve.size(); ++cell) sum->set(cell, (*sum)[cell] + curve[cell]);
  sum->finish();
}

std::vector<std::int64_t> times_of(const std::vector<EnergyPoint>& readings) {
  std::vector<std::int64_t> times_ns;
  times_ns.reserve(readings.size());
  for (const EnergyPoint& reading : readings) times_ns.push_back(reading.time_ns);
  return times_ns;
}

// Rows of domains, steps and epochs need no attribution.
bool needs_attribution(Level level) { return level != Level::domain && level != Level::step && level != Level::epoch; }

const std::vector<NumberedMoment>* longest(const std::map<std::uint32_t, std::vector<NumberedMoment>>& moments) {
  const auto most = std::ranges::max_element(moments, {}, [](const auto& told) { return told.second.size(); });
  return most == moments.end() ? nullptr : &most->second;
}

}  // namespace

HostLedgers::HostLedgers(const std::vector<SurveyedSource>& sources, Wanted wanted, Mode mode,
                         const KernelPriors& priors)
    : wanted_(std::move(wanted)), mode_(mode), priors_(priors) {
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    boot_of_.push_back(sources[i].source.boot_id);
    started_ns_.push_back(sources[i].source.started_ns);
    const std::optional<TimeSpan> span = sources[i].span();
    if (sources[i].source.role != "recorder" || !span || sources[i].is_repeated) continue;
    Host& host = hosts_.try_emplace(i, sources[i].source.boot_id, *span).first->second;
    host.channels = sources[i].channels;
    host.calibration = sources[i].calibration;
    host.energy.samples_calls = !is_imported(sources[i].source);
    host.cpus = count_cpus(sources[i].cpus_online).value_or(host.cpus);
  }
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    Host* const host = sources[i].rank.empty() ? nullptr : host_of(i);
    if (host != nullptr) host->sums.names(i).rank = sources[i].rank;
  }
  const bool is_clipped = std::ranges::any_of(sources, &SurveyedSource::is_clipped);
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    Host* const host = sources[i].traced_steps.is_light() ? host_of(i) : nullptr;
    if (host == nullptr) continue;
    host->sums.names(i).traced = {sources[i].traced_steps.followed(), sources[i].traced_steps.all()};
    if (is_clipped) light_.emplace(i, sources[i].traced_steps);
  }
}

HostLedgers::Host* HostLedgers::host_of(std::uint32_t source) {
  Host* found = nullptr;
  for (auto& [recorder, host] : hosts_) {
    if (host.boot_id != boot_of_[source]) continue;
    // A machine may be recorded several times in sequence: a process belongs to the last recording that began before
    // it.
    const bool is_later = found != nullptr && host.span.begin_ns > found->span.begin_ns;
    if (found == nullptr || (is_later && host.span.begin_ns <= started_ns_[source])) found = &host;
  }
  return found;
}

void HostLedgers::add_sums(std::uint32_t source, const Activity& activity) {
  Host* const host = host_of(source);
  if (host == nullptr) return;
  if (!is_inside(activity, host->span)) host->sums.add_used_queues(source, activity);
  for_each_part(*host, source, activity, [&](const Activity& part) { add_sums_inside(*host, source, part); });
}

// Calls `use` with the parts of the activity that lie in the span of the host.
void HostLedgers::for_each_part(Host& host, std::uint32_t source, const Activity& activity,
                                const std::function<void(const Activity&)>& use) {
  const auto light = light_.find(source);
  if (light == light_.end()) return is_inside(activity, host.span) ? use(activity) : use(clipped(activity, host.span));
  const ScopePaths& scopes = host.sums.names(source).scopes;
  for (const Activity& part : clipped(activity, host.span, light->second, scopes)) use(part);
}

void HostLedgers::add_sums_inside(Host& host, std::uint32_t source, const Activity& activity) const {
  host.sums.add(source, activity);
  if (finds_powers()) host.work.add(source, activity, host.sums.names(source).scopes);
  if (attributes_energy()) host.cpu_work.add(source, activity);
}

void HostLedgers::add_moment(std::uint32_t source, const Mark& mark) {
  Host* const host = host_of(source);
  if (host == nullptr) return;
  if (mark.kind == MarkKind::kernels_lost) host->losses.emplace_back(source, mark);
  host->probing.add(source, mark);
  host->dithering.add(source, mark);
  if (mark.kind == MarkKind::step) host->steps[source].push_back({mark.time_ns, mark.id});
  if (mark.kind == MarkKind::epoch) host->epochs[source].push_back({mark.time_ns, mark.id});
}

void HostLedgers::add_losses(Host& host) {
  for (const auto& [process, mark] : host.losses) {
    const Activity lost = lost_kernels(mark, host.sums.names(process));
    if (lost.empty()) continue;
    host.sums.add(process, lost);
    if (finds_powers()) host.work.add(process, lost, host.sums.names(process).scopes);
  }
}

bool HostLedgers::attributes_energy() const { return std::ranges::any_of(wanted_.levels, needs_attribution); }

// Called after the sums are finished.
CpuKnowledge HostLedgers::cpu_knowledge(Host& host, RecordedEnergy::Result& energy) const {
  CpuKnowledge known{.use = host.cpu_work.finish(host.sums)};
  const MachineTime machine{std::move(energy.cpu_time_readings[std::string(kMachineCpuTime)]), host.cpus};
  known.other_s = other_cpu_time(machine.readings, host.sums.captured_cpu_s(), machine.cpus);
  known.cpus = machine.cpus;
  std::vector<std::vector<EnergyPoint>> domains;
  double joules = 0;
  double uncertainty_j = 0;  // of estimates, whose errors are correlated: a sum
  for (RecordedEnergy::Result::DomainCurve& curve : energy.curves) {
    if (curve.domain_class == DomainClass::gpu) continue;
    if (curve.readings.size() > known.readings_ns.size()) known.readings_ns = times_of(curve.readings);
    domains.push_back(std::move(curve.readings));
    for (const DomainEnergy& row : energy.table.rows) {
      if (row.name != curve.domain || !row.joules) continue;
      joules += *row.joules;
      uncertainty_j += row.uncertainty_j.value_or(0) / kHalfWidth95;
      known.estimated = known.estimated || row.provenance == Provenance::estimated;
    }
  }
  std::optional<CpuPowers> fitted;
  // An estimate is proportional to CPU time and contains no information on powers.
  if (finds_powers() && !known.estimated) fitted = fit_cpu_powers(known.use, machine, domains);
  known.powers = fitted ? std::move(*fitted) : equal_cpu_powers(known.use.columns);
  const double own = joules > 0 ? uncertainty_j / joules : 0;
  draw_gains(known.powers, known.estimated ? own : in_quadrature(own, kGainSpread));
  return known;
}

// A GPU whose processes could not identify it is named by its ordinal.
void HostLedgers::add_others(Host& host, const RecordedEnergy::Result& energy) const {
  std::uint32_t ordinal = 0;
  for (const RecordedEnergy::Result::DomainCurve& curve : energy.curves) {
    if (curve.domain_class != DomainClass::gpu) continue;
    const std::string by_number = fmt::format("ordinal {}", ordinal++);
    if (curve.others.empty()) continue;
    const auto& used = host.sums.gpu_busy_s();
    const bool is_numbered = !used.contains(curve.device) && used.contains(by_number);
    const std::string& device = is_numbered ? by_number : curve.device;
    host.others_s.insert_or_assign(device, curve_of(curve.others, host.span));
    if (finds_powers()) host.work.add_others(device, curve.others);
  }
}

MachineEnergy::Gpu HostLedgers::gpu_of(const Host& host, const RecordedEnergy::Result::DomainCurve& curve,
                                       DeviceWork* work, const GpuName& name) const {
  MachineEnergy::Gpu gpu{name.prefix + curve.domain, curve.energy_j, {}, curve.device_model, curve.power_limited};
  if (const auto others = host.others_s.find(name.device); others != host.others_s.end()) gpu.others_s = others->second;
  if (mode_ == Mode::hold) gpu.energy_j = held_curve(curve.steps, curve.energy_j);
  if (work != nullptr) {
    const std::vector<ClassPrior> priors = priors_.of_columns(curve.device_model, work->kernels);
    const SensorModel known = sensor_model(host.calibration, host.channels, curve.device);
    gpu.powers =
        find_powers(std::move(*work), {curve.steps, curve.history, host.probing.spans(), known, curve.held_back},
                    host.span, priors);
  }
  if (!gpu.powers) return gpu;
  gpu.energy_j = curve_between(curve.curve, gpu.powers->fit.counter_lag_ns, curve.energy_j);
  // The energy itself is uncertain: at the edges of a short run, or of a part of one.
  if (curve.uncertainty > 0) gpu.powers->fit.widen_gains(curve.uncertainty / kHalfWidth95);
  return gpu;
}

void HostLedgers::set_energy(std::uint32_t source, RecordedEnergy::Result& energy, const std::string& prefix) {
  const auto found = hosts_.find(source);
  if (found == hosts_.end()) return;
  Host& host = found->second;
  host.prefix = prefix;
  add_losses(host);
  host.sums.finish();
  host.probing.finish();
  host.dithering.finish();
  add_others(host, energy);
  std::map<std::string, DeviceWork> works = host.work.finish(host.sums.processes());
  const auto work_of = [&](const std::string& device) {
    const auto work = works.find(device);
    return work == works.end() ? nullptr : &work->second;
  };
  std::uint32_t ordinal = 0;
  for (const RecordedEnergy::Result::DomainCurve& curve : energy.curves) {
    host.curves.push_back(curve.curve);
    if (curve.domain_class != DomainClass::gpu) {
      add_curve(host.energy.cpu_j, curve.energy_j);
      continue;
    }
    host.energy.gpus.insert_or_assign(curve.device, gpu_of(host, curve, work_of(curve.device), {prefix, curve.device}));
    // Where a process could not identify the GPU of an ordinal, NVML's order applies.
    const std::string by_number = fmt::format("ordinal {}", ordinal++);
    if (host.sums.gpu_busy_s().contains(by_number)) {
      host.energy.gpus.insert_or_assign(by_number, gpu_of(host, curve, work_of(by_number), {prefix, by_number}));
    }
  }
  const auto cpu_time = [&](std::string_view name) -> std::optional<TimeCurve> {
    const auto curve = energy.cpu_times_s.find(std::string(name));
    return curve == energy.cpu_times_s.end() ? std::nullopt : std::optional(std::move(curve->second));
  };
  host.energy.machine_cpu_s = cpu_time(kMachineCpuTime);
  if (const std::optional<TimeCurve> command_s = cpu_time(kCommandCpuTime))
    host.energy.command_cpu_s = command_s->total();
  host.energy.has_idle_time = host.energy.machine_cpu_s || host.energy.command_cpu_s;
  if (attributes_energy() && host.energy.cpu_j) host.energy.cpu = cpu_knowledge(host, energy);
  for (const Level level : wanted_.levels) {
    if (needs_attribution(level)) host.ledgers.try_emplace(level, level, host.energy, host.sums);
  }
  if (!wanted_.views) return;
  host.view.emplace(host.span, host.energy, host.sums, *wanted_.views, begins_of(longest(host.steps)));
}

void HostLedgers::add(std::uint32_t source, const Activity& activity) {
  Host* const host = host_of(source);
  if (host == nullptr) return;
  for_each_part(*host, source, activity, [&](const Activity& part) {
    for (auto& [level, ledger] : host->ledgers) ledger.add(source, part);
    if (host->view) host->view->add(source, part);
  });
}

LedgerResult HostLedgers::result_of(Host& host, Level level, const Grouping& grouping) const {
  if (!needs_attribution(level)) {
    const std::vector<NumberedMoment>* const moments = longest(level == Level::epoch ? host.epochs : host.steps);
    return rows_of(name_of(level), moments == nullptr ? std::vector<NumberedMoment>() : *moments, energy_of(host),
                   host.span, host.probing);
  }
  const auto ledger = host.ledgers.find(level);
  LedgerResult result = ledger == host.ledgers.end() ? LedgerResult() : ledger->second.finish(grouping);
  mark_unknown_counts(result);
  note_light_mode(host.sums, result.diagnostics);
  note_grouped_kernels(host.sums, level, result.diagnostics);
  if (level == Level::tensor) note_unknown_tensors(host.sums, !host.energy.samples_calls, result.diagnostics);
  return result;
}

LedgerResult HostLedgers::finish(Level level, const Grouping& grouping) {
  LedgerResult all;
  if (hosts_.size() == 1) return result_of(hosts_.begin()->second, level, grouping);
  std::vector<std::vector<ReportRow>> of_hosts;
  for (auto& [recorder, host] : hosts_) {
    LedgerResult one = result_of(host, level, grouping);
    name_machine(one.rows, host.prefix);
    name_machine(one.groups, host.prefix);
    of_hosts.push_back(std::exchange(one.rows, {}));
    append(all, std::move(one));
  }
  all.rows = needs_attribution(level) ? rows_of_all(std::move(of_hosts)) : same_moments_of(of_hosts);
  for (ReportRow& row : all.rows) {
    if (row.energy_j && all.attributed_j.value_or(0) > 0) row.share = *row.energy_j / *all.attributed_j;
  }
  return all;
}

// Energy of all counted domains, from the curves themselves; empty if none is known.
EnergyBetween HostLedgers::energy_of(const Host& host) {
  if (host.curves.empty()) return {};
  return [&host](std::int64_t from_ns, std::int64_t to_ns) {
    const std::int64_t begin_ns = std::clamp(from_ns, host.span.begin_ns, host.span.end_ns);
    const std::int64_t end_ns = std::clamp(to_ns, host.span.begin_ns, host.span.end_ns);
    double joules = 0;
    for (const EnergyCurve& curve : host.curves) joules += curve.joules_at(end_ns) - curve.joules_at(begin_ns);
    return joules;
  };
}

std::vector<NumberedEnergy> HostLedgers::energies(const Host& host, Level level) {
  const std::vector<NumberedMoment>* const moments = longest(level == Level::epoch ? host.epochs : host.steps);
  if (moments == nullptr) return {};
  const LastEnds last = level == Level::step ? LastEnds::after_the_median : LastEnds::with_the_command;
  return energies_of(*moments, energy_of(host), host.span, host.probing, last);
}

std::vector<MachineView> HostLedgers::views(const ViewLimits& limits) const {
  std::vector<MachineView> all;
  for (const auto& [recorder, host] : hosts_) {
    MachineView one{.span = host.span, .steps = energies(host, Level::step), .epochs = energies(host, Level::epoch)};
    one.probing.assign(host.probing.spans().begin(), host.probing.spans().end());
    one.dithering.assign(host.dithering.spans().begin(), host.dithering.spans().end());
    if (host.view) one.phases = host.view->phases();
    if (host.view) one.spreads = host.view->spreads(limits);
    all.push_back(std::move(one));
  }
  return all;
}

std::optional<double> HostLedgers::dither_s() const {
  std::optional<double> longest_s;
  for (const auto& [source, host] : hosts_) {
    if (!host.dithering.empty()) longest_s = std::max(longest_s.value_or(0), host.dithering.time_s());
  }
  return longest_s;
}

std::vector<KernelPower> HostLedgers::findings(const std::string& unnamed_gpu) const {
  std::vector<KernelPower> all;
  for (const auto& [recorder, host] : hosts_) {
    std::vector<KernelPower> some = findings_of(host.energy, unnamed_gpu);
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return all;
}

std::optional<ProbeCost> HostLedgers::probe_cost() const {
  std::optional<ProbeCost> cost;
  for (const auto& [recorder, host] : hosts_) {
    if (host.probing.empty()) continue;
    if (!cost) cost.emplace();
    cost->time_s = std::max(cost->time_s, host.probing.time_s());
    if (const EnergyBetween energy_j = energy_of(host))
      cost->energy_j = cost->energy_j.value_or(0) + host.probing.sum_of(energy_j);
  }
  return cost;
}

bool HostLedgers::has_activity() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host.second.sums.has_activity(); });
}

}  // namespace joulemap::attribution
