// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/host_view.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>

#include "attribution/cpu/cpu_use.h"
#include "attribution/ledger/wait_cause.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::size_t kPhaseCurveCells = 4096;
// A cell that is busy for a smaller fraction of its time belongs to no phase.
constexpr double kMinPhaseBusyFraction = 0.02;
// More phases than any program has; further ones are not shown over time.
constexpr std::size_t kMaxPhaseCurves = 64;
// Fewer samples show no distribution.
constexpr std::size_t kMinDistributionSamples = 5;

std::string phase_name(const ResolvedScope& resolved_scope) {
  if (resolved_scope.is_probe()) return std::string(kProbeModeScopeName);
  std::string name;
  for (const std::string& part : resolved_scope.phase_path()) name += (name.empty() ? "" : " ") + part;
  return name;
}

// Serial number of the step of each kernel, counted from `first_step_index`; 0: none. Kernels are stored step by step,
// so the kernel counts of steps assign them; if counts do not match, because some kernels belong to no step, their
// times do.
std::vector<std::uint64_t> find_step_of_each_kernel(const Activity& activity, std::uint64_t first_step_index) {
  std::vector<std::uint64_t> steps;
  steps.reserve(activity.kernels.size());
  for (std::size_t i = 0; i < activity.steps.size(); ++i) {
    const StepRecord& step = activity.steps[i];
    const std::size_t unassigned_kernel_count = activity.kernels.size() - steps.size();
    if (step.has_kernel_records)
      steps.insert(steps.end(), std::min<std::uint64_t>(step.kernels, unassigned_kernel_count + 1),
                   first_step_index + i);
    if (steps.size() > activity.kernels.size()) break;
  }
  if (steps.size() == activity.kernels.size()) return steps;
  steps.assign(activity.kernels.size(), 0);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const std::int64_t start_ns = activity.kernels[k].start_ns;
    const auto following_step = std::ranges::upper_bound(activity.steps, start_ns, {}, &StepRecord::begin_ns);
    if (following_step == activity.steps.begin()) continue;
    const auto step = std::prev(following_step);
    if (step->has_kernel_records && start_ns < step->end_ns)
      steps[k] = first_step_index + static_cast<std::size_t>(step - activity.steps.begin());
  }
  return steps;
}

}  // namespace

LayerDistribution MachineViewBuilder::make_layer_distribution(const LayerKey& layer, std::string_view sample_unit,
                                                              const EnergySamples& samples, std::size_t max_points) {
  std::vector<float> joules;
  for (const EnergySample& sample : samples.finished_samples) joules.push_back(sample.energy_j);
  LayerDistribution distribution{layer.first, layer.second, std::string(sample_unit), joules.size(), 0, {}, {}};
  distribution.mean_j = std::accumulate(joules.begin(), joules.end(), 0.0) / static_cast<double>(joules.size());
  std::ranges::sort(joules);
  for (std::size_t i = 0; i < kDistributionQuantileCount; ++i) {
    const double quantile_position =
        static_cast<double>(i * (joules.size() - 1)) / static_cast<double>(kDistributionQuantileCount - 1);
    const auto lower_index = static_cast<std::size_t>(quantile_position);
    const std::size_t upper_index = std::min(lower_index + 1, joules.size() - 1);
    const double part = quantile_position - static_cast<double>(lower_index);
    distribution.quantiles_j.push_back((1 - part) * joules[lower_index] + part * joules[upper_index]);
  }
  if (max_points == 0) return distribution;
  const std::size_t stride = (joules.size() + max_points - 1) / max_points;
  for (std::size_t i = 0; i < joules.size(); i += stride) {
    const EnergySample& sample = samples.finished_samples[i];
    distribution.points.push_back({sample.begin_ms * 1e-3, sample.energy_j, {}});
    if (sample.step >= 0) distribution.points.back().step = sample.step;
  }
  return distribution;
}

std::uint32_t MachineViewBuilder::ms_since_begin(std::int64_t time_ns) const {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(time_ns - span_.begin_ns, 0) / kNanosecondsPerMillisecond);
}

MachineViewBuilder::MachineViewBuilder(TimeSpan span, const MachineEnergy& energy, ActivitySums& sums,
                                       DistributionLevel level, std::vector<std::int64_t> steps_ns)
    : span_(span),
      machine_energy_(energy),
      activity_sums_(sums),
      gpu_attribution_(energy, sums),
      cpu_attribution_(energy, sums),
      distribution_level_(level),
      step_begins_ns_(std::move(steps_ns)) {}

std::vector<std::string> MachineViewBuilder::distribution_row_path(const ResolvedScope& resolved_scope) const {
  return distribution_level_ == DistributionLevel::phase ? resolved_scope.phase_path() : resolved_scope.layer_path();
}

std::uint64_t MachineViewBuilder::count_steps_between(std::int64_t begin_ns, std::int64_t end_ns) const {
  const auto first_step_begin = std::ranges::lower_bound(step_begins_ns_, begin_ns);
  return static_cast<std::uint64_t>(std::ranges::lower_bound(first_step_begin, step_begins_ns_.end(), end_ns) -
                                    first_step_begin);
}

TimeCurve* MachineViewBuilder::find_phase_curve(PhaseCurves& curves, const ResolvedScope& resolved_scope) const {
  std::string name = phase_name(resolved_scope);
  if (name.empty() || (curves.size() >= kMaxPhaseCurves && !curves.contains(name))) return nullptr;
  return &curves.try_emplace(std::move(name), span_, kPhaseCurveCells).first->second;
}

MachineViewBuilder::KernelAccumulators& MachineViewBuilder::find_or_add_kernel_accumulators(std::uint32_t process,
                                                                                            const Kernel& kernel) {
  const auto [slot, is_new] = kernel_accumulators_.try_emplace({process, kernel.class_id, kernel.queue, kernel.scope});
  KernelAccumulators& accumulators = slot->second;
  if (!is_new) return accumulators;
  ProcessActivity& names = activity_sums_.process_activity(process);
  const ResolvedScope& resolved_scope = names.scopes.resolved_scope(kernel.scope);
  accumulators.device = names.device_of_queue(kernel.queue);
  accumulators.weight = gpu_attribution_.kernel_weight_by_duration(accumulators.device, process, kernel.class_id);
  accumulators.phase = find_phase_curve(gpu_phases_, resolved_scope);
  const auto gpu = machine_energy_.gpus.find(accumulators.device);
  std::vector<std::string> path = distribution_row_path(resolved_scope);
  if (gpu == machine_energy_.gpus.end() || path.empty() || resolved_scope.is_probe()) return accumulators;
  const auto layer = gpu_layers_.try_emplace({std::move(path), gpu->second.domain_name}).first;
  accumulators.layer = &layer->second;
  accumulators.layer_key = &layer->first;
  return accumulators;
}

void MachineViewBuilder::add_kernels(std::uint32_t process, const Activity& activity) {
  const std::uint64_t first_step_index = step_count_ + 1;
  const std::vector<std::uint64_t> steps = find_step_of_each_kernel(activity, first_step_index);
  step_count_ += activity.steps.size();
  for (std::size_t i = 0; i < activity.kernels.size(); ++i) {
    const Kernel& kernel = activity.kernels[i];
    const KernelAccumulators& accumulators = find_or_add_kernel_accumulators(process, kernel);
    const double time_s = seconds(kernel.end_ns - kernel.start_ns);
    if (accumulators.phase != nullptr) accumulators.phase->add(kernel.start_ns, kernel.end_ns, time_s);
    if (accumulators.layer == nullptr || steps[i] == 0) continue;
    EnergySamples& layer = *accumulators.layer;
    if (layer.step != steps[i] && layer.step != 0) layer.finish_sample(layer.current_sample_j);
    if (layer.step != steps[i]) {
      layer.current_sample_j = 0;
      layer.current_sample = {0, ms_since_begin(kernel.start_ns), activity.steps[steps[i] - first_step_index].number};
    }
    layer.step = steps[i];
    layer.current_sample_j += kernel_energy_j(accumulators, kernel);
  }
  add_step_details(process, activity, steps, first_step_index);
}

double MachineViewBuilder::kernel_energy_j(const KernelAccumulators& accumulators, const Kernel& kernel) const {
  const std::int64_t length_ns = kernel.end_ns - kernel.start_ns;
  return seconds(length_ns) * accumulators.weight.weight_for_duration(static_cast<double>(length_ns)) *
         gpu_attribution_.kernel_power_per_weight(accumulators.device, kernel);
}

// `steps`: serial number of the step of each kernel, counted from `first_step_index`.
void MachineViewBuilder::add_step_details(std::uint32_t process, const Activity& activity,
                                          std::span<const std::uint64_t> steps, std::uint64_t first_step_index) {
  struct KernelRange {
    std::int64_t first_start_ns = INT64_MAX;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::vector<KernelRange> ranges(activity.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 0) continue;
    KernelRange& range = ranges[steps[i] - first_step_index];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
    range.first_start_ns = std::min(range.first_start_ns, activity.kernels[i].start_ns);
  }
  for (std::size_t step = 0; step < ranges.size(); ++step) {
    if (ranges[step].end == 0) continue;
    StepDetails& details = step_details_[process];
    if (!details.add_step(activity.steps[step], ranges[step].first_start_ns)) continue;
    std::vector<StepKernel> kernels;
    for (std::size_t i = ranges[step].begin; i < ranges[step].end; ++i) {
      if (steps[i] != first_step_index + step) continue;
      const Kernel& kernel = activity.kernels[i];
      const KernelAccumulators& accumulators = find_or_add_kernel_accumulators(process, kernel);
      kernels.push_back({{kernel.start_ns, kernel.end_ns},
                         &accumulators.device,
                         accumulators.layer_key,
                         kernel_energy_j(accumulators, kernel)});
    }
    details.add_kernels(kernels);
  }
}

void MachineViewBuilder::add_waits(std::uint32_t process, const Activity& activity) {
  ProcessActivity& names = activity_sums_.process_activity(process);
  const TimeSpan span{activity.begin_ns, activity.end_ns};
  for (const WaitTally& wait : activity.waits) {
    const std::pair key{names.device_of_queue(wait.queue), idle_cause_of_wait(names, wait, span)};
    TimeCurve& curve = waits_by_cause_.try_emplace(key, span_, cell_count_for_span(span_)).first->second;
    curve.add(span.begin_ns, span.end_ns, seconds(wait.time_ns));
  }
}

MachineViewBuilder::ScopeAccumulators& MachineViewBuilder::find_or_add_scope_accumulators(std::uint32_t process,
                                                                                          std::uint32_t scope) {
  const auto [slot, is_new] = scope_accumulators_.try_emplace({process, scope});
  if (!is_new) return slot->second;
  const ResolvedScope& resolved_scope = activity_sums_.process_activity(process).scopes.resolved_scope(scope);
  slot->second.phase = find_phase_curve(cpu_phases_, resolved_scope);
  slot->second.is_layer_scope = resolved_scope.op.empty() && resolved_scope.function.empty();
  std::vector<std::string> path = distribution_row_path(resolved_scope);
  if (!path.empty() && !resolved_scope.is_probe())
    slot->second.layer = &cpu_layers_[{std::move(path), std::string(kCpuDevice)}];
  return slot->second;
}

// Calls are counted in the interval in which they begin: energy of an interval without a call is added to the next
// interval that has one.
void MachineViewBuilder::add_scope_energies(std::uint32_t process, const Activity& activity) {
  if (activity.scope_tallies.empty()) return;
  const CpuAttribution::Rates rates = cpu_attribution_.mean_rates_between(activity.begin_ns, activity.end_ns);
  const std::vector<double> busy_time_s = busy_wall_s(activity);
  const std::uint64_t steps = count_steps_between(activity.begin_ns, activity.end_ns);
  std::map<EnergySamples*, std::uint64_t> calls;  // or steps, at level phase
  for (std::size_t i = 0; i < activity.scope_tallies.size(); ++i) {
    const ScopeTally& tally = activity.scope_tallies[i];
    const ScopeAccumulators& scope_values = find_or_add_scope_accumulators(process, tally.scope);
    const double cpu_s = seconds(tally.cpu_ns + tally.helper_threads_cpu_ns);
    if (scope_values.phase != nullptr) scope_values.phase->add(activity.begin_ns, activity.end_ns, cpu_s);
    if (scope_values.layer == nullptr || !machine_energy_.cpu_energy_j) continue;
    scope_values.layer->current_sample_j +=
        cpu_attribution_.attribute_tally(process, tally, busy_time_s[i], rates).total_j();
    if (distribution_level_ == DistributionLevel::phase) {
      calls[scope_values.layer] = steps;
    } else if (scope_values.is_layer_scope) {
      calls[scope_values.layer] += tally.count;
    }
  }
  for (const auto& [layer, count] : calls) {
    if (count == 0) continue;
    layer->current_sample.begin_ms = ms_since_begin(activity.begin_ns);
    layer->finish_sample(layer->current_sample_j / static_cast<double>(count));
    layer->sum_j += layer->current_sample_j;
    layer->current_sample_j = 0;
  }
}

void MachineViewBuilder::add(std::uint32_t process, const Activity& activity) {
  add_kernels(process, activity);
  add_scope_energies(process, activity);
  add_waits(process, activity);
}

std::vector<NamedPhaseSpan> MachineViewBuilder::phases() const {
  const PhaseCurves& curves = gpu_phases_.empty() ? cpu_phases_ : gpu_phases_;
  std::vector<NamedPhaseSpan> spans;
  const double length_ns = static_cast<double>(span_.end_ns - span_.begin_ns);
  const auto edge_ns = [&](std::size_t cell) {
    return span_.begin_ns + static_cast<std::int64_t>(length_ns * static_cast<double>(cell) / kPhaseCurveCells);
  };
  for (std::size_t cell = 0; cell < kPhaseCurveCells && !curves.empty(); ++cell) {
    const auto busiest_phase =
        std::ranges::max_element(curves, {}, [&](const auto& curve) { return curve.second[cell]; });
    if (busiest_phase->second[cell] < kMinPhaseBusyFraction * busiest_phase->second.cell_s()) continue;
    const bool is_same_phase =
        !spans.empty() && spans.back().name == busiest_phase->first && spans.back().span.end_ns == edge_ns(cell);
    if (is_same_phase) spans.back().span.end_ns = edge_ns(cell + 1);
    if (!is_same_phase) spans.push_back({busiest_phase->first, {edge_ns(cell), edge_ns(cell + 1)}});
  }
  return spans;
}

std::vector<LayerDistribution> MachineViewBuilder::layer_distributions(const ViewLimits& limits) const {
  struct RankedDistribution {
    double sum_j;
    LayerDistribution distribution;
  };
  std::vector<RankedDistribution> ranked_distributions;
  for (const auto& [layer, samples] : gpu_layers_) {
    EnergySamples complete_samples = samples;
    if (samples.step != 0) complete_samples.finish_sample(samples.current_sample_j);
    if (complete_samples.finished_samples.size() < kMinDistributionSamples) continue;
    LayerDistribution distribution = make_layer_distribution(layer, "step", complete_samples, limits.layer_points);
    ranked_distributions.push_back(
        {distribution.mean_j * static_cast<double>(distribution.samples), std::move(distribution)});
  }
  for (const auto& [layer, samples] : cpu_layers_) {
    if (samples.finished_samples.size() < kMinDistributionSamples) continue;
    const std::string_view sample_unit = distribution_level_ == DistributionLevel::phase ? "step" : "call";
    ranked_distributions.push_back(
        {samples.sum_j, make_layer_distribution(layer, sample_unit, samples, limits.layer_points)});
  }
  std::ranges::stable_sort(ranked_distributions, std::greater<>(), &RankedDistribution::sum_j);
  std::vector<LayerDistribution> distributions;
  for (std::size_t i = 0; i < ranked_distributions.size() && i < limits.distributions; ++i)
    distributions.push_back(std::move(ranked_distributions[i].distribution));
  return distributions;
}

const StepDetails* MachineViewBuilder::find_details_with_most_steps() const {
  const auto details_with_most_steps = std::ranges::max_element(
      step_details_, {}, [](const auto& process_details) { return process_details.second.step_count(); });
  return details_with_most_steps == step_details_.end() ? nullptr : &details_with_most_steps->second;
}

std::uint64_t MachineViewBuilder::count_steps_with_kernels() const {
  const StepDetails* const details = find_details_with_most_steps();
  return details == nullptr ? 0 : details->step_count();
}

std::vector<StepDetail> MachineViewBuilder::step_details() {
  for (auto& [key, curve] : waits_by_cause_) curve.finish();
  std::vector<StepDetail> detailed_steps;
  const StepDetails* const details = find_details_with_most_steps();
  if (details == nullptr) return detailed_steps;
  for (const CollectedStep* step : details->steps()) detailed_steps.push_back(make_step_detail(*step));
  return detailed_steps;
}

StepDetail MachineViewBuilder::make_step_detail(const CollectedStep& step) {
  StepDetail detail;
  detail.number = static_cast<std::uint64_t>(step.number);
  detail.begin_s = seconds(step.begin_ns - span_.begin_ns);
  detail.gpu_begin_s = seconds(step.gpu_span.begin_ns - span_.begin_ns);
  detail.gpu_end_s = seconds(step.gpu_span.end_ns - span_.begin_ns);
  detail.kernels = step.kernels;
  for (const LayerInStep& layer : step.layers) {
    if (layer.layer != nullptr && detail.layers.size() < kMaxStepLayers) {
      detail.layers.push_back({layer.layer->first, layer.layer->second, layer.time_s, layer.energy_j});
      continue;
    }
    detail.other_layers += layer.layer != nullptr ? 1 : 0;
    detail.other_s += layer.time_s;
    detail.other_layers_j += layer.energy_j;
  }
  const double length_s = seconds(step.gpu_span.end_ns - step.gpu_span.begin_ns);
  for (const auto& [device, busy_s] : step.busy_s) {
    const std::vector<StepWait> waits = estimate_step_gpu_waits(device, length_s - busy_s, step.gpu_span);
    detail.waits.insert(detail.waits.end(), waits.begin(), waits.end());
  }
  std::ranges::stable_sort(detail.waits, std::greater<>(), &StepWait::time_s);
  return detail;
}

// Splits the idle time of a step among causes in proportion to the waits recorded for its time. These are sums over
// about a second, so they also contain neighbouring steps.
std::vector<StepWait> MachineViewBuilder::estimate_step_gpu_waits(const std::string& device, double idle_s,
                                                                  TimeSpan span) {
  const auto gpu = machine_energy_.gpus.find(device);
  if (gpu == machine_energy_.gpus.end() || idle_s <= 0) return {};
  std::map<IdleCause, double> recorded_s;
  double total_wait_s = 0;
  for (const auto& [key, curve] : waits_by_cause_) {
    const double time_s = key.first == device ? curve.amount_between(span.begin_ns, span.end_ns) : 0;
    if (time_s <= 0) continue;
    recorded_s[key.second] = time_s;
    total_wait_s += time_s;
  }
  if (recorded_s.empty()) total_wait_s = recorded_s[IdleCause::unknown] = idle_s;
  const std::optional<double> idle_w = gpu_attribution_.idle_power_w(device, span.begin_ns, span.end_ns);
  std::vector<StepWait> waits;
  for (const auto& [cause, time_by_cause_s] : recorded_s) {
    const double time_s = idle_s * time_by_cause_s / total_wait_s;
    waits.push_back({cause, gpu->second.domain_name, time_s, idle_w ? std::optional(*idle_w * time_s) : std::nullopt});
  }
  return waits;
}

}  // namespace joulemap::attribution
