// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <span>

#include "attribution/gpu/kernel_learning.h"
#include "attribution/gpu/lost_kernels.h"
#include "attribution/ledger/clipped_activity.h"
#include "attribution/ledger/ledger_notes.h"
#include "attribution/ledger/machine_rows.h"
#include "attribution/requests/serving_rows.h"
#include "base/clock.h"
#include "base/quadrature.h"

namespace joulemap::attribution {
namespace {

// Half width of a 95 % interval in standard deviations; uncertainties of domains are such half widths.
constexpr double kNormalHalfWidth95 = 1.96;
// A value of the power history covers about 20 ms, and its time is known to a few ms.
constexpr std::int64_t kMinHistoryInterval_ns = 50 * kNanosecondsPerMillisecond;
// Gain error of RAPL without calibration, half width at 95 %: server CPUs since Haswell are within 4 % of wall meters.
constexpr double kRaplGainHalfWidth95 = 0.04;
constexpr double kRaplGainRelativeSd = kRaplGainHalfWidth95 / kNormalHalfWidth95;

void add_to_curve_sum(std::optional<TimeCurve>& sum, const TimeCurve& curve) {
  if (!sum) sum.emplace(curve.span(), curve.size());
  for (std::size_t cell = 0; cell < curve.size(); ++cell) sum->set(cell, (*sum)[cell] + curve[cell]);
  sum->finish();
}

std::vector<std::int64_t> reading_times_ns(const std::vector<EnergyPoint>& energy_readings) {
  std::vector<std::int64_t> times_ns;
  times_ns.reserve(energy_readings.size());
  for (const EnergyPoint& energy_reading : energy_readings) times_ns.push_back(energy_reading.time_ns);
  return times_ns;
}

bool is_serving_row_level(RowLevel level) { return level == RowLevel::request || level == RowLevel::token; }

// Rows of domains, steps and epochs need no attribution; those of requests have their own (serving_ledger.h).
bool is_attributed_level(RowLevel level) {
  return level != RowLevel::domain && level != RowLevel::step && level != RowLevel::epoch &&
         level != RowLevel::request && level != RowLevel::token;
}

}  // namespace

Machines::Machines(const std::vector<SurveyedSource>& sources, RequestedResults requested, AttributionMode mode,
                   const KernelPriors& priors)
    : requested_results_(std::move(requested)), attribution_mode_(mode), priors_(priors) {
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    boot_ids_.push_back(sources[i].source.boot_id);
    start_times_ns_.push_back(sources[i].source.started_ns);
    const std::optional<TimeSpan> span = sources[i].command_span();
    if (sources[i].source.role != "recorder" || !span || sources[i].is_duplicate) continue;
    Host& host = hosts_.try_emplace(i, sources[i].source.boot_id, *span).first->second;
    host.channels = sources[i].channels;
    host.calibration = sources[i].calibration;
    host.energy.has_sampled_operations = !is_imported(sources[i].source);
    host.cpu_count = count_listed_cpus(sources[i].cpus_online).value_or(host.cpu_count);
  }
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].rank.empty()) ranks_.insert(i);
    Host* const host = sources[i].rank.empty() ? nullptr : find_or_add_host(i);
    if (host != nullptr) host->activity_sums.process_activity(i).rank = sources[i].rank;
  }
  const bool is_clipped = std::ranges::any_of(sources, &SurveyedSource::is_clipped);
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    Host* const host = sources[i].surveyed_steps.is_light_mode() ? find_or_add_host(i) : nullptr;
    if (host == nullptr) continue;
    host->activity_sums.process_activity(i).step_counts = {sources[i].surveyed_steps.traced_count(),
                                                           sources[i].surveyed_steps.step_count()};
    if (is_clipped) light_mode_steps_.emplace(i, sources[i].surveyed_steps);
  }
}

Machines::Host* Machines::find_or_add_host(std::uint32_t source) {
  Host* matching_host = nullptr;
  for (auto& [recorder, host] : hosts_) {
    if (host.boot_id != boot_ids_[source]) continue;
    // A machine may be recorded several times in sequence: a process belongs to the last recording that began before
    // the process did.
    const bool is_later_recorder = matching_host != nullptr && host.span.begin_ns > matching_host->span.begin_ns;
    if (matching_host == nullptr || (is_later_recorder && host.span.begin_ns <= start_times_ns_[source]))
      matching_host = &host;
  }
  return matching_host;
}

void Machines::add_to_activity_sums(std::uint32_t source, const Activity& activity) {
  Host* const host = find_or_add_host(source);
  if (host == nullptr) return;
  if (!is_within_span(activity, host->span)) host->activity_sums.add_activity_outside_span(source, activity);
  for_each_clipped_activity(*host, source, activity,
                            [&](const Activity& part) { add_clipped_activity_sums(*host, source, part); });
}

// Calls `activity_callback` with the parts of the activity that lie in the span of the host.
void Machines::for_each_clipped_activity(Host& host, std::uint32_t source, const Activity& activity,
                                         const std::function<void(const Activity&)>& activity_callback) {
  const auto light_steps = light_mode_steps_.find(source);
  if (light_steps == light_mode_steps_.end())
    return is_within_span(activity, host.span) ? activity_callback(activity)
                                               : activity_callback(clip_activity(activity, host.span));
  const ScopePaths& scopes = host.activity_sums.process_activity(source).scopes;
  for (const Activity& part : clip_activity(activity, host.span, light_steps->second, scopes)) activity_callback(part);
}

void Machines::add_clipped_activity_sums(Host& host, std::uint32_t source, const Activity& activity) const {
  host.activity_sums.add(source, activity);
  if (needs_kernel_powers()) host.gpu_work.add(source, activity, host.activity_sums.process_activity(source).scopes);
  if (has_attributed_level()) host.cpu_work.add(source, activity);
}

void Machines::add_mark(std::uint32_t source, const Mark& mark) {
  Host* const host = find_or_add_host(source);
  if (host == nullptr) return;
  if (mark.kind == MarkKind::kernels_lost) host->lost_kernel_marks.emplace_back(source, mark);
  host->probing_spans.add(source, mark);
  host->dithering_spans.add(source, mark);
  if (mark.kind == MarkKind::step) host->step_marks[source].push_back({mark.time_ns, mark.id});
  if (mark.kind == MarkKind::evaluation) host->evaluation_marks[source].push_back({mark.time_ns, mark.id});
  if (mark.kind == MarkKind::epoch) host->epoch_marks[source].push_back({mark.time_ns, mark.id});
  if (mark.kind == MarkKind::step_retraction) retract_marks(host->step_marks[source], mark.id);
  if (mark.kind == MarkKind::epoch_retraction) retract_marks(host->epoch_marks[source], mark.id);
}

void Machines::observe_engine_steps(std::uint32_t source, const EngineSteps& steps) {
  if (std::ranges::none_of(requested_results_.levels, is_serving_row_level)) return;
  if (Host* const host = find_or_add_host(source)) host->serving.observe_steps(source, steps);
}

void Machines::add(std::uint32_t source, const EngineSteps& steps) {
  if (std::ranges::none_of(requested_results_.levels, is_serving_row_level)) return;
  if (Host* const host = find_or_add_host(source)) host->serving.add(source, steps);
}

namespace {

// Times at which the energy of a domain is known best: updates of its counter and, where they are far apart because the
// counter is expensive to read, values of the power history between them. Sorted.
std::vector<std::int64_t> list_known_energy_times_ns(const RecordedEnergy::Result::DomainCurve& curve,
                                                     std::int64_t lag_ns) {
  const bool is_slow_counter = curve.domain_class == DomainClass::gpu && !curve.counter_updates.empty();
  std::vector<std::int64_t> times_ns;
  for (const EnergyPoint& point : is_slow_counter ? curve.counter_updates : curve.readings)
    times_ns.push_back(point.time_ns - lag_ns);
  const std::size_t updates = times_ns.size();
  for (const PowerPoint& point : curve.power_history) {
    const std::int64_t time_ns = point.time_ns - lag_ns;
    const auto update_times_ns = std::span(times_ns).first(updates);
    const auto following_update = std::ranges::lower_bound(update_times_ns, time_ns);
    const bool is_far_from_updates =
        (following_update == update_times_ns.end() || *following_update - time_ns >= kMinHistoryInterval_ns) &&
        (following_update == update_times_ns.begin() || time_ns - *(following_update - 1) >= kMinHistoryInterval_ns);
    const bool is_close_to_previous = times_ns.size() > updates && time_ns - times_ns.back() < kMinHistoryInterval_ns;
    if (is_far_from_updates && !is_close_to_previous) times_ns.push_back(time_ns);
  }
  std::ranges::sort(times_ns);
  return times_ns;
}

}  // namespace

// The model of steps is fitted to the energy of the GPU, or of the CPU if there is no GPU.
void Machines::fit_serving_model(Host& host, const RecordedEnergy::Result& energy) {
  if (!host.serving.has_steps()) return;
  std::vector<std::int64_t> edges_ns;
  double joules = 0;
  double uncertainty_j = 0;
  std::vector<std::int64_t> lags_ns;
  bool has_gpu_edges = false;
  for (const RecordedEnergy::Result::DomainCurve& curve : energy.domain_curves) {
    const bool is_gpu = curve.domain_class == DomainClass::gpu;
    const auto gpu = host.energy.gpus.find(curve.device);
    const bool is_fitted = is_gpu && gpu != host.energy.gpus.end() && gpu->second.powers;
    const bool is_slow_counter = is_gpu && !curve.counter_updates.empty();
    const std::int64_t expected_lag_ns = is_slow_counter ? kUsualCounterLag_ns : 0;
    lags_ns.push_back(is_fitted ? gpu->second.powers->power_fit.counter_lag_ns : expected_lag_ns);
    if (is_gpu == has_gpu_edges ? edges_ns.empty() : is_gpu) {
      edges_ns = list_known_energy_times_ns(curve, lags_ns.back());
      has_gpu_edges = is_gpu;
    }
    for (const DomainEnergy& row : energy.domain_table.rows) {
      if (row.name != curve.domain || !row.joules) continue;
      joules += *row.joules;
      uncertainty_j += row.uncertainty_j.value_or(0) / kNormalHalfWidth95;
    }
  }
  EnergyFunction energy_j;
  if (!host.gpu_energy_curves.empty()) {
    energy_j = [&host, lags_ns](std::int64_t from_ns, std::int64_t to_ns) {
      double sum_j = 0;
      for (std::size_t i = 0; i < host.gpu_energy_curves.size(); ++i)
        sum_j += host.gpu_energy_curves[i].joules_at(to_ns, lags_ns[i]) -
                 host.gpu_energy_curves[i].joules_at(from_ns, lags_ns[i]);
      return sum_j;
    };
  }
  host.serving.fit(edges_ns, energy_j, joules > 0 ? uncertainty_j / joules : 0);
}

void Machines::add_lost_kernels(Host& host) {
  for (const auto& [process, mark] : host.lost_kernel_marks) {
    const Activity lost_activity = lost_kernel_activity(mark, host.activity_sums.process_activity(process));
    if (lost_activity.empty()) continue;
    host.activity_sums.add(process, lost_activity);
    if (needs_kernel_powers())
      host.gpu_work.add(process, lost_activity, host.activity_sums.process_activity(process).scopes);
  }
}

bool Machines::has_attributed_level() const {
  return std::ranges::any_of(requested_results_.levels, is_attributed_level);
}

// Called after the sums are finished.
CpuAttributionInputs Machines::cpu_attribution_inputs(Host& host, RecordedEnergy::Result& energy) const {
  CpuAttributionInputs cpu_inputs{.cpu_use = host.cpu_work.finish(host.activity_sums)};
  const MachineCpuTime machine{std::move(energy.cpu_time_readings[std::string(kMachineCpuTimeChannel)]),
                               host.cpu_count};
  cpu_inputs.other_cpu_s = other_cpu_curve(machine.readings, host.activity_sums.captured_cpu_s(), machine.cpu_count);
  cpu_inputs.cpu_count = machine.cpu_count;
  std::vector<std::vector<EnergyPoint>> domains;
  double joules = 0;
  double uncertainty_j = 0;  // a sum, because the errors of estimates are correlated
  for (RecordedEnergy::Result::DomainCurve& curve : energy.domain_curves) {
    if (curve.domain_class == DomainClass::gpu) continue;
    if (curve.readings.size() > cpu_inputs.counter_reading_times_ns.size())
      cpu_inputs.counter_reading_times_ns = reading_times_ns(curve.readings);
    domains.push_back(std::move(curve.readings));
    for (const DomainEnergy& row : energy.domain_table.rows) {
      if (row.name != curve.domain || !row.joules) continue;
      joules += *row.joules;
      uncertainty_j += row.uncertainty_j.value_or(0) / kNormalHalfWidth95;
      cpu_inputs.is_estimated = cpu_inputs.is_estimated || row.provenance == Provenance::estimated;
    }
  }
  std::optional<CpuPowers> fitted_powers;
  // An estimate is proportional to CPU time and contains no information on powers.
  if (needs_kernel_powers() && !cpu_inputs.is_estimated)
    fitted_powers = fit_cpu_powers(cpu_inputs.cpu_use, machine, domains);
  cpu_inputs.powers =
      fitted_powers ? std::move(*fitted_powers) : make_equal_cpu_powers(cpu_inputs.cpu_use.column_count);
  const double energy_relative_error = joules > 0 ? uncertainty_j / joules : 0;
  draw_gain_replicates(cpu_inputs.powers, cpu_inputs.is_estimated
                                              ? energy_relative_error
                                              : add_in_quadrature(energy_relative_error, kRaplGainRelativeSd));
  return cpu_inputs;
}

// Where the command's processes did not record the UUID of a GPU, its work is listed under "ordinal N".
void Machines::add_co_tenants(Host& host, const RecordedEnergy::Result& energy) const {
  std::uint32_t ordinal = 0;
  for (const RecordedEnergy::Result::DomainCurve& curve : energy.domain_curves) {
    if (curve.domain_class != DomainClass::gpu) continue;
    const std::string ordinal_name = fmt::format("ordinal {}", ordinal++);
    if (curve.co_tenant_slices.empty()) continue;
    const auto& busy_by_device = host.activity_sums.gpu_busy_s();
    const bool has_ordinal_name = !busy_by_device.contains(curve.device) && busy_by_device.contains(ordinal_name);
    const std::string& device = has_ordinal_name ? ordinal_name : curve.device;
    host.co_tenant_s.insert_or_assign(device, make_busy_curve(curve.co_tenant_slices, host.span));
    if (needs_kernel_powers()) host.gpu_work.add_co_tenants(device, curve.co_tenant_slices);
  }
}

MachineEnergy::Gpu Machines::make_gpu_energy(const Host& host, const RecordedEnergy::Result::DomainCurve& curve,
                                             DeviceWork* work, const PrefixedDevice& name) const {
  MachineEnergy::Gpu gpu{
      name.prefix + curve.domain, curve.energy_j, {}, curve.device_model, curve.power_limited_fraction};
  if (const auto co_tenant_curve = host.co_tenant_s.find(name.device); co_tenant_curve != host.co_tenant_s.end())
    gpu.co_tenant_s = co_tenant_curve->second;
  if (attribution_mode_ == AttributionMode::sample_and_hold)
    gpu.energy_j = sample_and_hold_curve(curve.counter_updates, curve.energy_j);
  if (work != nullptr) {
    std::vector<KernelClassPrior> priors = priors_.find_column_priors(curve.device_model, work->kernels_by_column);
    SensorModel calibrated_model = find_calibrated_sensor_model(host.calibration, host.channels, curve.device);
    if (!calibrated_model.active_idle_power)
      calibrated_model.active_idle_power = default_idle_power(curve.device_model);
    if (calibrated_model.active_idle_power && !priors.empty() && !priors.back().is_known)
      priors.back() = {calibrated_model.active_idle_power->watts,
                       calibrated_model.active_idle_power->sd_w / calibrated_model.active_idle_power->watts, true};
    gpu.powers = find_kernel_powers(
        std::move(*work),
        {curve.counter_updates, curve.power_history, host.probing_spans.spans(), calibrated_model, curve.is_throttled},
        host.span, priors);
  }
  if (!gpu.powers) return gpu;
  const std::int64_t lag_ns = gpu.powers->power_fit.counter_lag_ns;
  const auto busy_s = host.activity_sums.gpu_busy_s().find(name.device);
  const bool has_shape = !curve.power_history.empty() || busy_s == host.activity_sums.gpu_busy_s().end();
  gpu.energy_j =
      has_shape ? lag_corrected_curve(curve.curve, lag_ns, curve.energy_j)
                : modelled_energy_curve(curve.counter_updates, lag_ns, *gpu.powers, busy_s->second, curve.energy_j);
  // The energy itself is uncertain: at the edges of a short run, or of a part of one.
  if (curve.relative_uncertainty > 0)
    gpu.powers->power_fit.widen_gain_uncertainty(curve.relative_uncertainty / kNormalHalfWidth95);
  return gpu;
}

// Finds the recorded GPUs without a counted energy. One is excluded if none of its channels may be counted.
void Machines::find_uncounted_gpus(Host& host) {
  MachineEnergy& energy = host.energy;
  std::vector<std::string> devices;  // in NVML's order
  for (const Channel& channel : host.channels) {
    if (channel.domain_class != DomainClass::gpu || !measures_energy_or_power(channel)) continue;
    if (energy.gpus.contains(channel.device)) continue;
    const auto [gpu, is_new] = energy.uncounted_gpus.try_emplace(
        channel.device, MachineEnergy::UncountedGpu{host.prefix + channel.domain, true});
    if (is_new) devices.push_back(channel.device);
    gpu->second.is_excluded = gpu->second.is_excluded && !channel.is_countable;
  }
  if (!energy.gpus.empty()) return;  // ordinals count the other GPUs
  for (std::size_t ordinal = 0; ordinal < devices.size(); ++ordinal)
    energy.uncounted_gpus.emplace(fmt::format("ordinal {}", ordinal), energy.uncounted_gpus.at(devices[ordinal]));
}

void Machines::set_recorded_energy(std::uint32_t source, RecordedEnergy::Result& energy, const std::string& prefix) {
  const auto host_entry = hosts_.find(source);
  if (host_entry == hosts_.end()) return;
  Host& host = host_entry->second;
  host.prefix = prefix;
  add_lost_kernels(host);
  host.activity_sums.finish();
  host.probing_spans.finish();
  host.dithering_spans.finish();
  add_co_tenants(host, energy);
  std::map<std::string, DeviceWork> work_by_device = host.gpu_work.finish(host.activity_sums.processes());
  const auto find_device_work = [&](const std::string& device) {
    const auto device_work = work_by_device.find(device);
    return device_work == work_by_device.end() ? nullptr : &device_work->second;
  };
  std::uint32_t ordinal = 0;
  for (const RecordedEnergy::Result::DomainCurve& curve : energy.domain_curves) {
    host.gpu_energy_curves.push_back(curve.curve);
    if (curve.domain_class != DomainClass::gpu) {
      add_to_curve_sum(host.energy.cpu_energy_j, curve.energy_j);
      continue;
    }
    host.energy.gpus.insert_or_assign(
        curve.device, make_gpu_energy(host, curve, find_device_work(curve.device), {prefix, curve.device}));
    // Where a process could not identify the GPU of an ordinal, NVML's order applies.
    const std::string ordinal_name = fmt::format("ordinal {}", ordinal++);
    if (host.activity_sums.gpu_busy_s().contains(ordinal_name)) {
      host.energy.gpus.insert_or_assign(
          ordinal_name, make_gpu_energy(host, curve, find_device_work(ordinal_name), {prefix, ordinal_name}));
    }
  }
  find_uncounted_gpus(host);
  fit_serving_model(host, energy);
  const auto cpu_time = [&](std::string_view name) -> std::optional<TimeCurve> {
    const auto curve = energy.cpu_times_s.find(std::string(name));
    return curve == energy.cpu_times_s.end() ? std::nullopt : std::optional(std::move(curve->second));
  };
  host.energy.machine_cpu_s = cpu_time(kMachineCpuTimeChannel);
  if (const std::optional<TimeCurve> command_s = cpu_time(kCommandCpuTimeChannel))
    host.energy.command_cpu_s = command_s->total();
  host.energy.has_idle_time = host.energy.machine_cpu_s || host.energy.command_cpu_s;
  host.energy.spans_outside_program = find_spans_outside_program(host);
  if (has_attributed_level() && host.energy.cpu_energy_j) host.energy.cpu_inputs = cpu_attribution_inputs(host, energy);
  for (const RowLevel level : requested_results_.levels) {
    if (is_attributed_level(level)) host.ledgers.try_emplace(level, level, host.energy, host.activity_sums);
  }
  if (!requested_results_.views) return;
  host.view.emplace(host.span, host.energy, host.activity_sums, *requested_results_.views,
                    training_mark_times_ns(find_step_or_epoch_marks(host, RowLevel::step).marks));
}

void Machines::add(std::uint32_t source, const Activity& activity) {
  Host* const host = find_or_add_host(source);
  if (host == nullptr) return;
  for_each_clipped_activity(*host, source, activity, [&](const Activity& part) {
    for (auto& [level, ledger] : host->ledgers) ledger.add(source, part);
    if (host->view) host->view->add(source, part);
  });
}

LedgerResult Machines::make_serving_rows(Host& host, RowLevel level) {
  if (!host.serving.has_steps()) return {};
  if (!host.serving_result) host.serving_result = host.serving.finish();
  LedgerResult result =
      level == RowLevel::request ? make_request_rows(*host.serving_result) : make_token_rows(*host.serving_result);
  result.serving = host.serving_result;
  if (level != RowLevel::request) result.serving->listed_requests.clear();
  result.diagnostics.add_all(host.serving.diagnostics());
  return result;
}

LedgerResult Machines::make_host_result(Host& host, RowLevel level, const BranchSumOptions& grouping) const {
  if (is_serving_row_level(level)) {
    LedgerResult result = make_serving_rows(host, level);
    // The serving ledger has no sums over a part of the rows.
    if (!grouping.is_enabled || !grouping.path_filter.empty()) result.groups.clear();
    return result;
  }
  if (!is_attributed_level(level)) {
    LedgerResult steps = make_step_rows(row_level_name(level), find_step_or_epoch_marks(host, level),
                                        make_host_energy_function(host), host.span, host.probing_spans);
    add_omitted_steps_diagnostic(host, level, steps.diagnostics);
    return steps;
  }
  const auto ledger = host.ledgers.find(level);
  LedgerResult result = ledger == host.ledgers.end() ? LedgerResult() : ledger->second.finish(grouping);
  clear_unknown_counts(result);
  add_light_mode_diagnostic(host.activity_sums, result.diagnostics);
  add_grouped_kernels_diagnostic(host.activity_sums, level, result.diagnostics);
  if (level == RowLevel::tensor)
    add_unknown_tensors_diagnostic(host.activity_sums, !host.energy.has_sampled_operations, result.diagnostics);
  return result;
}

LedgerResult Machines::finish(RowLevel level, const BranchSumOptions& grouping) {
  LedgerResult merged_ledger;
  if (hosts_.size() == 1) return make_host_result(hosts_.begin()->second, level, grouping);
  std::vector<std::vector<ReportRow>> rows_by_host;
  for (auto& [recorder, host] : hosts_) {
    LedgerResult machine_ledger = make_host_result(host, level, grouping);
    prefix_device_names(machine_ledger.rows, host.prefix);
    prefix_device_names(machine_ledger.groups, host.prefix);
    rows_by_host.push_back(std::exchange(machine_ledger.rows, {}));
    merge_ledger_totals(merged_ledger, std::move(machine_ledger));
  }
  merged_ledger.rows = is_attributed_level(level) || is_serving_row_level(level)
                           ? merge_machine_rows(std::move(rows_by_host))
                           : merge_step_rows(rows_by_host);
  for (ReportRow& row : merged_ledger.rows) {
    if (row.energy_j && merged_ledger.attributed_j.value_or(0) > 0)
      row.share = *row.energy_j / *merged_ledger.attributed_j;
  }
  return merged_ledger;
}

std::vector<TimeSpan> Machines::find_spans_outside_program(const Host& host) const {
  const std::span<const TimeSpan> probing_spans = host.probing_spans.spans();
  std::vector<TimeSpan> spans(probing_spans.begin(), probing_spans.end());
  if (!requested_results_.program_end_s) return spans;
  const std::int64_t program_end_ns =
      host.span.begin_ns +
      static_cast<std::int64_t>(*requested_results_.program_end_s * static_cast<double>(kNanosecondsPerSecond));
  for (TimeSpan& span : spans) span.end_ns = std::min(span.end_ns, program_end_ns);
  std::erase_if(spans, [](const TimeSpan& span) { return span.end_ns <= span.begin_ns; });
  if (program_end_ns < host.span.end_ns) spans.push_back({program_end_ns, host.span.end_ns});
  return spans;
}

// Energy of all counted domains between two times; an empty function if none is known.
EnergyFunction Machines::make_host_energy_function(const Host& host) {
  if (host.gpu_energy_curves.empty()) return {};
  return [&host](std::int64_t from_ns, std::int64_t to_ns) {
    const std::int64_t begin_ns = std::clamp(from_ns, host.span.begin_ns, host.span.end_ns);
    const std::int64_t end_ns = std::clamp(to_ns, host.span.begin_ns, host.span.end_ns);
    double joules = 0;
    for (const EnergyCurve& curve : host.gpu_energy_curves)
      joules += curve.joules_at(end_ns) - curve.joules_at(begin_ns);
    return joules;
  };
}

// With evaluation steps marked; empty if the process has none.
std::vector<StepOrEpochMark> Machines::sorted_step_marks(const Host& host, std::uint32_t process) {
  const auto process_marks = host.step_marks.find(process);
  if (process_marks == host.step_marks.end()) return {};
  std::vector<StepOrEpochMark> marks = process_marks->second;
  const auto evaluations = host.evaluation_marks.find(process);
  mark_evaluation_steps(marks, evaluations == host.evaluation_marks.end() ? std::span<const EvaluationMark>()
                                                                          : std::span(evaluations->second));
  return marks;
}

// Of the process that reported most: ranks of one run report the same steps. The last epoch ends with the last step of its
// process: what follows, such as the exit of the interpreter, belongs to no epoch. Without a step, it ends with the command.
StepOrEpochMarks Machines::find_step_or_epoch_marks(const Host& host, RowLevel level) {
  const auto& marks_by_process = level == RowLevel::epoch ? host.epoch_marks : host.step_marks;
  const auto process_with_most_marks =
      std::ranges::max_element(marks_by_process, {}, [](const auto& marks) { return marks.second.size(); });
  if (process_with_most_marks == marks_by_process.end()) return {{}, host.span.end_ns};
  std::vector<StepOrEpochMark> steps = sorted_step_marks(host, process_with_most_marks->first);
  const std::int64_t steps_end_ns =
      steps.empty() ? host.span.end_ns : estimate_last_step_end_ns(steps, host.span.end_ns);
  if (level == RowLevel::step) return {std::move(steps), steps_end_ns};
  const std::vector<StepOrEpochMark>& epochs = process_with_most_marks->second;
  if (epochs.empty()) return {{}, host.span.end_ns};  // all were retracted
  const std::int64_t last_epoch_ns = std::ranges::max_element(epochs, {}, &StepOrEpochMark::time_ns)->time_ns;
  return {epochs, steps_end_ns > last_epoch_ns ? steps_end_ns : host.span.end_ns};
}

// Ranks share their steps. Those of other processes overlap in time, so that rows of all would count energy repeatedly.
void Machines::add_omitted_steps_diagnostic(const Host& host, RowLevel level, Diagnostics& diagnostics) const {
  const auto& marks_by_process = level == RowLevel::epoch ? host.epoch_marks : host.step_marks;
  std::uint64_t of_ranks = 0;
  std::uint64_t of_others = 0;
  std::uint64_t most = 0;
  for (const auto& [process, marks] : marks_by_process) {
    most = std::max<std::uint64_t>(most, marks.size());
    if (ranks_.contains(process))
      of_ranks = std::max<std::uint64_t>(of_ranks, marks.size());
    else
      of_others += marks.size();
  }
  const std::uint64_t all = of_ranks + of_others;
  if (all <= most) return;
  diagnostics.add({"steps_of_one_process", all - most,
                   fmt::format("several processes report {}s: the rows are those of the process with the most",
                               row_level_name(level)),
                   "use --by rank or --by layer, which contain all processes"});
}

std::vector<StepOrEpochEnergy> Machines::compute_step_or_epoch_energies(const Host& host, RowLevel level) {
  return compute_energies_between_marks(find_step_or_epoch_marks(host, level), make_host_energy_function(host),
                                        host.span, host.probing_spans);
}

std::vector<MachineView> Machines::views(const ViewLimits& limits) {
  std::vector<MachineView> machine_views;
  for (auto& [recorder, host] : hosts_) {
    MachineView machine_view{.span = host.span,
                             .steps = compute_step_or_epoch_energies(host, RowLevel::step),
                             .epochs = compute_step_or_epoch_energies(host, RowLevel::epoch)};
    machine_view.probing.assign(host.probing_spans.spans().begin(), host.probing_spans.spans().end());
    machine_view.dithering.assign(host.dithering_spans.spans().begin(), host.dithering_spans.spans().end());
    if (host.view) machine_view.phases = host.view->phases();
    if (host.view) machine_view.layer_distributions = host.view->layer_distributions(limits);
    if (host.view) machine_view.step_details = host.view->step_details();
    if (host.view) machine_view.steps_with_kernel_records = host.view->count_steps_with_kernels();
    machine_views.push_back(std::move(machine_view));
  }
  return machine_views;
}

std::optional<double> Machines::dither_s() const {
  std::optional<double> longest_s;
  for (const auto& [source, host] : hosts_) {
    if (!host.dithering_spans.empty()) longest_s = std::max(longest_s.value_or(0), host.dithering_spans.total_s());
  }
  return longest_s;
}

std::vector<KernelPower> Machines::learned_kernel_powers(const std::string& default_gpu_model) const {
  std::vector<KernelPower> learned_powers;
  for (const auto& [recorder, host] : hosts_) {
    std::vector<KernelPower> host_powers = learn_kernel_powers_from_fit(host.energy, default_gpu_model);
    learned_powers.insert(learned_powers.end(), std::make_move_iterator(host_powers.begin()),
                          std::make_move_iterator(host_powers.end()));
  }
  return learned_powers;
}

std::optional<ProbeCost> Machines::probe_cost() const {
  std::optional<ProbeCost> cost;
  for (const auto& [recorder, host] : hosts_) {
    if (host.probing_spans.empty()) continue;
    if (!cost) cost.emplace();
    if (const double time_s = host.probing_spans.total_s(); time_s > cost->time_s) {
      cost->time_s = time_s;
      cost->spans.clear();
      for (const TimeSpan& span : host.probing_spans.spans())
        cost->spans.push_back({seconds(span.begin_ns - host.span.begin_ns), seconds(span.end_ns - host.span.begin_ns)});
    }
    if (const EnergyFunction energy_j = make_host_energy_function(host))
      cost->energy_j = cost->energy_j.value_or(0) + host.probing_spans.energy_in_spans(energy_j);
  }
  return cost;
}

bool Machines::has_activity() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host.second.activity_sums.has_activity(); });
}

}  // namespace joulemap::attribution
