// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/run_view_builder.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <ranges>
#include <set>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

// Limit of region names shown over time: a program that numbers its regions may have any number of names.
constexpr std::size_t kMaxRegionNames = 40;

constexpr std::array<std::pair<DomainClass, std::string_view>, 5> kComponentNames = {
    {{DomainClass::gpu, "GPU"},
     {DomainClass::cpu, "CPU"},
     {DomainClass::memory, "memory"},
     {DomainClass::platform, "platform"},
     {DomainClass::other, "other"}}};

double seconds_since_begin(const TimeSpan& span, std::int64_t time_ns) { return seconds(time_ns - span.begin_ns); }

std::vector<StepOrEpochView> group_steps_or_epochs(const std::vector<StepOrEpochEnergy>& energies,
                                                   const TimeSpan& command, const ViewLimits& limits) {
  std::vector<StepOrEpochView> steps_or_epochs;
  const std::size_t group_size = (energies.size() + limits.max_steps_or_epochs - 1) / limits.max_steps_or_epochs;
  for (std::size_t i = 0; i < energies.size(); ++i) {
    const StepOrEpochEnergy& step_or_epoch_energy = energies[i];
    if (i % group_size == 0) {
      steps_or_epochs.push_back({.number = step_or_epoch_energy.number,
                                 .count = 0,
                                 .begin_s = seconds_since_begin(command, step_or_epoch_energy.span.begin_ns)});
      if (step_or_epoch_energy.energy_j) steps_or_epochs.back().energy_j = 0;
    }
    StepOrEpochView& step_or_epoch = steps_or_epochs.back();
    ++step_or_epoch.count;
    step_or_epoch.end_s = seconds_since_begin(command, step_or_epoch_energy.span.end_ns);
    step_or_epoch.time_s += step_or_epoch_energy.time_s;
    step_or_epoch.energy_j = step_or_epoch_energy.energy_j && step_or_epoch.energy_j
                                 ? std::optional(*step_or_epoch.energy_j + *step_or_epoch_energy.energy_j)
                                 : std::nullopt;
  }
  return steps_or_epochs;
}

std::vector<NamedTimeSpan> make_named_spans(const std::vector<TimeSpan>& spans, const TimeSpan& command,
                                            std::string_view name) {
  std::vector<NamedTimeSpan> named_spans;
  for (const TimeSpan& span : spans) {
    named_spans.push_back(
        {std::string(name), seconds_since_begin(command, span.begin_ns), seconds_since_begin(command, span.end_ns)});
  }
  return named_spans;
}

// Merges neighbouring bands of one name whose gap is too small to see.
std::vector<NamedTimeSpan> merge_close_spans(std::vector<NamedTimeSpan> named_spans, double min_gap_s) {
  std::ranges::sort(named_spans, {},
                    [](const NamedTimeSpan& named_span) { return std::tie(named_span.name, named_span.begin_s); });
  std::vector<NamedTimeSpan> merged_spans;
  for (NamedTimeSpan& named_span : named_spans) {
    if (!merged_spans.empty() && merged_spans.back().name == named_span.name &&
        named_span.begin_s - merged_spans.back().end_s < min_gap_s) {
      merged_spans.back().end_s = std::max(merged_spans.back().end_s, named_span.end_s);
      merged_spans.back().count += named_span.count;
    } else {
      merged_spans.push_back(std::move(named_span));
    }
  }
  return merged_spans;
}

// The regions whose names took the most time, merged if there are too many to show.
std::vector<NamedTimeSpan> make_region_spans(const std::vector<NamedSpan>& regions, const TimeSpan& command,
                                             const ViewLimits& limits) {
  std::map<std::string, double> time_s;
  for (const NamedSpan& region : regions) time_s[region.name] += seconds(region.span.end_ns - region.span.begin_ns);
  std::vector<std::pair<double, std::string>> names;
  for (const auto& [name, sum_s] : time_s) names.emplace_back(sum_s, name);
  std::ranges::sort(names, std::greater<>());
  std::vector<NamedTimeSpan> named_spans;
  if (names.size() > kMaxRegionNames) names.resize(kMaxRegionNames);
  for (const auto& [sum_s, name] : names) {
    for (const NamedSpan& region : regions) {
      if (region.name != name || region.span.end_ns < command.begin_ns || region.span.begin_ns > command.end_ns)
        continue;
      named_spans.push_back({name, std::max(seconds_since_begin(command, region.span.begin_ns), 0.0),
                             seconds_since_begin(command, std::min(region.span.end_ns, command.end_ns))});
    }
  }
  const double length_s = seconds(command.end_ns - command.begin_ns);
  if (named_spans.size() > limits.max_steps_or_epochs)
    named_spans = merge_close_spans(std::move(named_spans), length_s / static_cast<double>(limits.max_steps_or_epochs));
  std::ranges::stable_sort(named_spans, {}, &NamedTimeSpan::begin_s);
  return named_spans;
}

// Sets the mean loss of each stage (an epoch, a step or a group of steps) from the losses reported during it. Both are
// sorted by time.
void add_metric_losses(std::vector<StepOrEpochView>& steps_or_epochs, const MetricValues& losses,
                       const TimeSpan& command) {
  std::size_t loss_index = 0;
  std::optional<double> previous_loss;
  for (StepOrEpochView& step_or_epoch : steps_or_epochs) {
    double sum = 0;
    std::size_t count = 0;
    for (; loss_index < losses.values.size() &&
           seconds_since_begin(command, losses.values[loss_index].time_ns) < step_or_epoch.end_s;
         ++loss_index) {
      if (seconds_since_begin(command, losses.values[loss_index].time_ns) < step_or_epoch.begin_s) continue;
      sum += losses.values[loss_index].value;
      ++count;
    }
    if (count == 0) continue;
    step_or_epoch.loss = sum / static_cast<double>(count);
    if (previous_loss && *previous_loss > *step_or_epoch.loss && step_or_epoch.energy_j)
      step_or_epoch.joules_per_loss = *step_or_epoch.energy_j / (*previous_loss - *step_or_epoch.loss);
    previous_loss = step_or_epoch.loss;
  }
}

MetricSeries make_metric_series(const std::string& name, const MetricValues& values, const TimeSpan& command,
                                std::size_t max_points) {
  MetricSeries series{name, values.count, {}};
  const std::size_t stride = (values.values.size() + max_points - 1) / max_points;
  for (std::size_t i = 0; i < values.values.size(); i += stride) {
    const MetricValue& value = values.values[i];
    if (value.time_ns < command.begin_ns || value.time_ns > command.end_ns) continue;
    series.points.push_back({seconds_since_begin(command, value.time_ns), value.step, value.value});
  }
  return series;
}

// The command's span on the machine of a source, by boot id; null if no recorder ran on that machine.
// `spans_by_boot_id`: cache, filled by the first call.
const TimeSpan* find_command_span(const std::vector<SurveyedSource>& sources, std::uint32_t source,
                                  std::map<std::string, TimeSpan>& spans_by_boot_id) {
  if (spans_by_boot_id.empty()) {
    for (const SurveyedSource& surveyed_source : sources) {
      const std::optional<TimeSpan> span = surveyed_source.command_span();
      if (surveyed_source.source.role == "recorder" && span)
        spans_by_boot_id.try_emplace(surveyed_source.source.boot_id, *span);
    }
  }
  const auto matching_span = spans_by_boot_id.find(source < sources.size() ? sources[source].source.boot_id : "");
  return matching_span == spans_by_boot_id.end() ? nullptr : &matching_span->second;
}

void add_run_events(RunView& view, const RecordingAnalysis& analysis, const ViewLimits& limits) {
  std::map<std::string, TimeSpan> spans_by_boot_id;
  std::map<std::string, std::uint32_t>
      source_by_metric;  // of several processes with the same metric, the one with the most values
  for (const auto& [key, values] : analysis.events.metrics()) {
    const auto [metric_source, is_new] = source_by_metric.try_emplace(key.second, key.first);
    if (!is_new && values.count > analysis.events.metrics().at({metric_source->second, key.second}).count)
      metric_source->second = key.first;
    // Sums contain the whole run.
    if (key.second == "samples" && !view.run.is_clipped)
      view.rates.samples = view.rates.samples.value_or(0) + values.sum;
  }
  bool has_loss_metric = false;
  for (const auto& [name, source] : source_by_metric) {
    const TimeSpan* const command = find_command_span(analysis.sources, source, spans_by_boot_id);
    if (command == nullptr) continue;
    const MetricValues& values = analysis.events.metrics().at({source, name});
    view.metrics.push_back(make_metric_series(name, values, *command, limits.metric_points));
    if (has_loss_metric || name.find("loss") == std::string::npos) continue;
    if (source_by_metric.contains("loss") && name != "loss") continue;
    has_loss_metric = true;
    add_metric_losses(view.steps, values, *command);
    add_metric_losses(view.epochs, values, *command);
  }
  for (const auto& [source, regions] : analysis.events.regions()) {
    const TimeSpan* const command = find_command_span(analysis.sources, source, spans_by_boot_id);
    if (command != nullptr && view.regions.empty()) view.regions = make_region_spans(regions, *command, limits);
  }
}

double sum_of_covered_fractions(const std::vector<StepOrEpochEnergy>& steps_or_epochs) {
  return std::accumulate(steps_or_epochs.begin(), steps_or_epochs.end(), 0.0,
                         [](double sum, const StepOrEpochEnergy& step) { return sum + step.covered_fraction; });
}

// Adds times from the machine with the most steps only: the ranks of a run do the same at the same time. Returns its
// numbers of steps and epochs in the analysed time, with fractions of those at its edges.
CoveredStepCounts add_step_and_epoch_times(RunView& view, const std::vector<MachineView>& machines,
                                           const ViewLimits& limits) {
  if (machines.empty()) return {};
  const auto machine_with_most_steps = std::ranges::max_element(machines, {}, [](const MachineView& machine_view) {
    return std::tuple(machine_view.steps.size(), machine_view.phases.size());
  });
  std::vector<StepOrEpochEnergy> steps = machine_with_most_steps->steps;
  std::erase_if(steps, [](const StepOrEpochEnergy& step) { return step.is_evaluation; });
  view.steps = group_steps_or_epochs(steps, machine_with_most_steps->span, limits);
  view.epochs = group_steps_or_epochs(machine_with_most_steps->epochs, machine_with_most_steps->span, limits);
  view.step_details = machine_with_most_steps->step_details;
  view.detailed_steps = machine_with_most_steps->steps_with_kernel_records;
  view.probing = make_named_spans(machine_with_most_steps->probing, machine_with_most_steps->span, "probe");
  view.dithering = make_named_spans(machine_with_most_steps->dithering, machine_with_most_steps->span, "dither");
  for (const NamedPhaseSpan& phase : machine_with_most_steps->phases) {
    view.phases.push_back({phase.name, seconds_since_begin(machine_with_most_steps->span, phase.span.begin_ns),
                           seconds_since_begin(machine_with_most_steps->span, phase.span.end_ns)});
  }
  for (const MachineView& machine : machines) {
    view.layer_distributions.insert(view.layer_distributions.end(), machine.layer_distributions.begin(),
                                    machine.layer_distributions.end());
  }
  const auto sum_j = [](const LayerDistribution& distribution) {
    return distribution.mean_j * static_cast<double>(distribution.samples);
  };
  std::ranges::stable_sort(view.layer_distributions, std::greater<>(), sum_j);
  if (view.layer_distributions.size() > limits.distributions) view.layer_distributions.resize(limits.distributions);
  return {sum_of_covered_fractions(steps), 0, sum_of_covered_fractions(machine_with_most_steps->epochs)};
}

// `counts`: steps and epochs in the analysed time. Unlike in a report, they are also known for a part of a run.
void set_run_rates(RunView& view, const CoveredStepCounts& counts) {
  const std::optional<double> samples = view.rates.samples;
  view.rates = compute_run_rates(view.run);
  const auto positive_count = [&](double count) {
    return count > 0 && !view.run.lacks_steps ? std::optional(count) : std::nullopt;
  };
  view.rates.steps = positive_count(counts.steps);
  view.rates.epochs = positive_count(counts.epochs);
  view.rates.samples = samples;
}

void add_component_energies(RunView& view, const std::map<std::string, DomainClass>& domain_class_of) {
  for (const auto& [domain_class, name] : kComponentNames) {
    std::set<std::string> names;
    for (const auto& [domain, class_of_domain] : domain_class_of) {
      if (class_of_domain == domain_class) names.insert(domain);
    }
    ComponentEnergy component{std::string(name), total_energy(view.run.domains, names)};
    if (preferred_energy(component.totals)) view.components.push_back(std::move(component));
  }
}

void add_level_views(RunView& view, RecordingAnalysis& analysis, const std::vector<RowLevel>& levels) {
  for (const RowLevel level : levels) {
    const auto ledger = analysis.ledgers.find(level);
    if (ledger == analysis.ledgers.end() || ledger->second.rows.empty()) continue;
    LedgerResult& result = ledger->second;
    // Without kernels, a stack contains no more than the layers.
    const bool has_kernels =
        std::ranges::any_of(result.rows, [](const ReportRow& row) { return row.device != kCpuDevice; });
    if (level == RowLevel::stack && !has_kernels) continue;
    if (result.serving) view.run.serving = std::move(result.serving);
    view.levels.push_back({std::string(row_level_name(level)), std::move(result.rows), std::move(result.groups),
                           result.attributed_j, result.idle_j, result.unattributed_j, std::move(result.idle),
                           std::move(result.diagnostics)});
  }
}

}  // namespace

Result<RunView> build_run_view(std::span<const std::string> paths, const ViewQuery& query) {
  Result<RecordingAnalysis> analysis = analyse_recording(paths, {query.levels,
                                                                 query.mode,
                                                                 query.time_range,
                                                                 query.library,
                                                                 query.limits.slices,
                                                                 query.limits,
                                                                 {query.includes_branch_sums},
                                                                 query.excluded_domains,
                                                                 query.on_progress});
  if (!analysis) return std::move(analysis).error();
  RunView view;
  view.run = std::move(analysis->summary);
  add_domain_rows(view.run);
  add_missing_data_diagnostics(view.run, analysis->sources);
  const CoveredStepCounts counts = add_step_and_epoch_times(view, analysis->machine_views, query.limits);
  add_run_events(view, *analysis, query.limits);
  set_run_rates(view, counts);
  add_component_energies(view, analysis->domain_classes);
  add_level_views(view, *analysis, query.levels);
  return view;
}

}  // namespace joulemap::attribution
