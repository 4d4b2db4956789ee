// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/recording_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "recording/part_folder.h"

namespace joulemap::attribution {
namespace {

// Limit of kernel powers: more than a program has classes, on several GPUs.
constexpr std::size_t kMaxKernelPriors = 200'000;

constexpr double kRoundingError = 1e-6;  // of sums of fractions of steps

// Whether a part without its end lacks steps: the recorders sampled on, for longer than the program's steps take.
bool lacks_last_steps(const SurveyedSource& process, std::span<const TimeSpan> spans) {
  constexpr std::int64_t kStepsUntilMissing = 5;
  const std::optional<std::int64_t> length_ns = median_step_length_ns(process.steps);
  if (process.recording_end || !length_ns) return false;
  const std::int64_t last_ns = process.steps.back().time_ns;
  const std::int64_t missing_ns = std::max(kStepsUntilMissing * *length_ns, kNanosecondsPerSecond);
  return std::ranges::any_of(
      spans, [&](const TimeSpan& span) { return span.begin_ns <= last_ns && last_ns < span.end_ns - missing_ns; });
}

// Steps and epochs of a process in the time that was sampled. Without samples, all of them.
CoveredStepCounts count_steps_of(const SurveyedSource& process, std::span<const TimeSpan> spans) {
  if (!spans.empty())
    return {count_covered(process.steps, spans, false), count_covered(process.steps, spans, true),
            count_covered(process.epochs, spans, false)};
  const auto evaluations =
      static_cast<double>(std::ranges::count(process.steps, true, &StepOrEpochMark::is_evaluation));
  return {static_cast<double>(process.steps.size()) - evaluations, evaluations,
          static_cast<double>(process.epochs.size())};
}

}  // namespace

std::optional<TimeSpan> SurveyedSource::command_span() const {
  const std::optional<std::int64_t> from_ns = command_begin_ns ? command_begin_ns : first_sample_ns;
  const std::optional<std::int64_t> to_ns = command_end_ns ? command_end_ns : last_sample_ns;
  if (!from_ns || !to_ns) return std::nullopt;
  return TimeSpan{*from_ns, std::max(*from_ns, *to_ns)};
}

SurveyedSource& RecordingSurvey::find_or_add_source(std::uint32_t source) {
  if (source >= sources_.size()) sources_.resize(source + 1);
  return sources_[source];
}

void RecordingSurvey::on_source(std::uint32_t source, const RecordingSource& recorded_source) {
  find_or_add_source(source).source = recorded_source;
}

void RecordingSurvey::on_channels(std::uint32_t source, std::uint32_t first_channel,
                                  std::span<const Channel> channels) {
  find_or_add_source(source).first_channel = first_channel;
  find_or_add_source(source).channels.assign(channels.begin(), channels.end());
}

void RecordingSurvey::on_samples(std::uint32_t source, std::span<const Sample> samples) {
  SurveyedSource& surveyed_source = find_or_add_source(source);
  for (const Sample& sample : samples) {
    const std::int64_t time_ns = sample.reading.time_ns();
    surveyed_source.first_sample_ns = std::min(surveyed_source.first_sample_ns.value_or(time_ns), time_ns);
    surveyed_source.last_sample_ns = std::max(surveyed_source.last_sample_ns.value_or(time_ns), time_ns);
  }
}

void RecordingSurvey::on_clock(std::uint32_t source, const ClockPair& pair) {
  if (!find_or_add_source(source).clock_pair) find_or_add_source(source).clock_pair = pair;
}

void RecordingSurvey::on_mark(std::uint32_t source, const Mark& mark) {
  if (mark.kind == MarkKind::command_begin) find_or_add_source(source).command_begin_ns = mark.time_ns;
  if (mark.kind == MarkKind::command_end) find_or_add_source(source).command_end_ns = mark.time_ns;
  if (mark.kind == MarkKind::step) find_or_add_source(source).steps.push_back({mark.time_ns, mark.id});
  if (mark.kind == MarkKind::evaluation) find_or_add_source(source).evaluations.push_back({mark.time_ns, mark.id});
  if (mark.kind == MarkKind::epoch) find_or_add_source(source).epochs.push_back({mark.time_ns, mark.id});
  if (mark.kind == MarkKind::step_retraction) retract_marks(find_or_add_source(source).steps, mark.id);
  if (mark.kind == MarkKind::epoch_retraction) retract_marks(find_or_add_source(source).epochs, mark.id);
}

void RecordingSurvey::on_metric(std::uint32_t /*source*/, const Metric& metric) {
  const auto [slot, is_new] = metric_index_.try_emplace(metric.name, metrics_.size());
  if (is_new) metrics_.push_back({metric.name, 0, metric.value, metric.value, 0});
  ReportedMetric& reported_metric = metrics_[slot->second];
  ++reported_metric.count;
  reported_metric.last = metric.value;
  reported_metric.sum += metric.value;
}

void RecordingSurvey::on_fact(std::uint32_t source, const EnvironmentFact& fact) {
  if (fact.name == recording::kRankFactName) {
    find_or_add_source(source).rank = fact.value;
    return;
  }
  if (fact.name == "cpus_online") find_or_add_source(source).cpus_online = fact.value;
  const bool is_known_fact =
      std::any_of(environment_facts_.begin(), environment_facts_.end(), [&](const EnvironmentFact& earlier_fact) {
        return earlier_fact.name == fact.name && earlier_fact.value == fact.value;
      });
  if (!is_known_fact) environment_facts_.push_back(fact);
}

void RecordingSurvey::on_calibration(std::uint32_t source, const ChannelCalibration& channel_calibration) {
  find_or_add_source(source).calibration.push_back(channel_calibration);
  calibration_.push_back(channel_calibration);
}

void RecordingSurvey::on_power(std::uint32_t /*source*/, const KernelPower& kernel_power) {
  if (kernel_priors_.size() < kMaxKernelPriors) kernel_priors_.push_back(kernel_power);
}

void RecordingSurvey::on_activity(std::uint32_t source, const Activity& activity) {
  for (const StepRecord& step : activity.steps) find_or_add_source(source).surveyed_steps.add(step);
}

void RecordingSurvey::on_end(std::uint32_t source, const RecordingEnd& end) {
  find_or_add_source(source).recording_end = end;
}

void RecordingSurvey::exclude_domains(std::span<const DomainClass> classes) {
  const auto is_class_excluded = [&](DomainClass domain_class) {
    return std::find(classes.begin(), classes.end(), domain_class) != classes.end();
  };
  const bool excludes_platforms = is_class_excluded(DomainClass::cpu) || is_class_excluded(DomainClass::memory);
  for (SurveyedSource& surveyed_source : sources_) {
    std::vector<std::string> excluded_platforms;
    for (Channel& channel : surveyed_source.channels) {
      const bool is_excluded_platform = excludes_platforms && channel.domain_class == DomainClass::platform;
      if (is_excluded_platform) excluded_platforms.push_back(channel.domain);
      if (is_excluded_platform || is_class_excluded(channel.domain_class)) channel.is_countable = false;
    }
    // The domains inside an excluded platform domain now count towards the totals.
    for (Channel& channel : surveyed_source.channels) {
      if (std::find(excluded_platforms.begin(), excluded_platforms.end(), channel.part_of) != excluded_platforms.end())
        channel.part_of.clear();
    }
  }
}

void RecordingSurvey::finish() {
  find_duplicate_recorders();
  for (SurveyedSource& surveyed_source : sources_) {
    mark_evaluation_steps(surveyed_source.steps, surveyed_source.evaluations);
    std::ranges::sort(surveyed_source.epochs, {}, &StepOrEpochMark::time_ns);
  }
}

// Marks a recorder as duplicate if an earlier one sampled the same machine at the same time. The reader delivers
// samples of both only once, as those of the earlier one.
void RecordingSurvey::find_duplicate_recorders() {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::optional<TimeSpan> span = sources_[i].command_span();
    if (sources_[i].source.role != "recorder" || !span) continue;
    for (std::size_t j = 0; j < i && !sources_[i].is_duplicate; ++j) {
      const std::optional<TimeSpan> earlier_span = sources_[j].command_span();
      const bool is_same_machine = sources_[j].source.role == "recorder" && !sources_[j].is_duplicate &&
                                   sources_[j].source.boot_id == sources_[i].source.boot_id;
      sources_[i].is_duplicate = is_same_machine && earlier_span && earlier_span->begin_ns < span->end_ns &&
                                 span->begin_ns < earlier_span->end_ns;
    }
  }
}

Status RecordingSurvey::limit_time_range(const CommandTimeRange& time_range) {
  if (time_range.is_whole_run()) return Done{};
  constexpr auto kNsPerSecond = static_cast<double>(kNanosecondsPerSecond);
  double longest_s = 0;
  bool has_time_left = false;
  for (SurveyedSource& surveyed_source : sources_) {
    const std::optional<TimeSpan> span = surveyed_source.command_span();
    if (!span) continue;
    const double length_s = seconds(span->end_ns - span->begin_ns);
    longest_s = std::max(longest_s, length_s);
    const double from_s = std::clamp(time_range.from_s, 0.0, length_s);
    const double to_s = std::clamp(time_range.to_s.value_or(length_s), from_s, length_s);
    surveyed_source.command_begin_ns = span->begin_ns + static_cast<std::int64_t>(from_s * kNsPerSecond);
    surveyed_source.command_end_ns = span->begin_ns + static_cast<std::int64_t>(to_s * kNsPerSecond);
    surveyed_source.is_clipped = true;
    surveyed_source.unclipped_span = span;
    has_time_left = has_time_left || to_s > from_s;
  }
  if (has_time_left) return Done{};
  return Error{ErrorCode::usage,
               fmt::format("the recording has no data in that time range: the command ran for {:.3f} s", longest_s),
               "--time FROM,TO takes seconds since the start of the command"};
}

// The times in which recorders sampled the machine of a process, whatever part of them was requested.
std::vector<TimeSpan> RecordingSurvey::recorded_spans(const SurveyedSource& process) const {
  std::vector<TimeSpan> spans;
  for (const SurveyedSource& recorder : sources_) {
    const bool is_recorder = recorder.source.role == "recorder" && !recorder.is_duplicate;
    if (!is_recorder || recorder.source.boot_id != process.source.boot_id) continue;
    const std::optional<TimeSpan> span = recorder.unclipped_span ? recorder.unclipped_span : recorder.command_span();
    if (span) spans.push_back(*span);
  }
  return spans;
}

// Ranks share their steps, so the maximum counts; other processes add theirs.
void RecordingSurvey::count_steps(ReportResult& result) const {
  CoveredStepCounts sums;
  CoveredStepCounts of_ranks;
  for (const SurveyedSource& process : sources_) {
    const std::vector<TimeSpan> spans = recorded_spans(process);
    // Parts of killed programs have no end either, but no steps are missing. Where data were lost, they are.
    const bool lost_data =
        result.diagnostics.contains("recording_cut") || result.diagnostics.contains("recording_damaged");
    result.lacks_steps = result.lacks_steps || (lost_data && lacks_last_steps(process, spans));
    const CoveredStepCounts counts = count_steps_of(process, spans);
    if (process.rank.empty()) {
      sums = {sums.steps + counts.steps, sums.evaluation_steps + counts.evaluation_steps, sums.epochs + counts.epochs};
    } else {
      of_ranks = {std::max(of_ranks.steps, counts.steps), std::max(of_ranks.evaluation_steps, counts.evaluation_steps),
                  std::max(of_ranks.epochs, counts.epochs)};
    }
  }
  result.covered = {sums.steps + of_ranks.steps, sums.evaluation_steps + of_ranks.evaluation_steps,
                    sums.epochs + of_ranks.epochs};
  const auto whole_number = [](double count) { return static_cast<std::uint64_t>(std::ceil(count - kRoundingError)); };
  result.steps = whole_number(result.covered->steps);
  result.evaluation_steps = whole_number(result.covered->evaluation_steps);
  result.epochs = whole_number(result.covered->epochs);
  for (const SurveyedSource& process : sources_)
    result.evaluation_groups = std::max(result.evaluation_groups, count_evaluation_groups(process.steps));
}

std::size_t RecordingSurvey::machine_count() const {
  std::set<std::string> boot_ids;
  for (const SurveyedSource& surveyed_source : sources_) boot_ids.insert(surveyed_source.source.boot_id);
  return boot_ids.size();
}

std::vector<std::string> RecordingSurvey::host_names() const {
  std::map<std::string, std::set<std::string>> boot_ids;  // by name
  for (const SurveyedSource& surveyed_source : sources_)
    boot_ids[surveyed_source.source.host].insert(surveyed_source.source.boot_id);
  std::vector<std::string> names;
  for (const SurveyedSource& surveyed_source : sources_) {
    const std::set<std::string>& host_boot_ids = boot_ids[surveyed_source.source.host];
    const auto index = std::distance(host_boot_ids.begin(), host_boot_ids.find(surveyed_source.source.boot_id));
    names.push_back(host_boot_ids.size() == 1 ? surveyed_source.source.host
                                              : fmt::format("{}:{}", surveyed_source.source.host, index));
  }
  return names;
}

void RecordingSurvey::fill_in_metadata(ReportResult& result) const {
  count_steps(result);
  result.metrics = metrics_;
  result.environment = environment_facts_;
  result.calibration = calibration_;
  for (const SurveyedSource& surveyed_source : sources_) {
    const std::string& host = surveyed_source.source.host;
    if (std::find(result.hosts.begin(), result.hosts.end(), host) == result.hosts.end()) result.hosts.push_back(host);
    if (surveyed_source.recording_end) result.diagnostics.add_all(surveyed_source.recording_end->diagnostics);
    result.is_clipped = result.is_clipped || surveyed_source.is_clipped;
    if (surveyed_source.source.role != "recorder") continue;
    if (result.command.empty()) result.command = surveyed_source.source.command;
    if (surveyed_source.recording_end) {
      // Of several recorders, one whose command failed determines how the run ended.
      const bool is_successful = result.exit_code.value_or(0) == 0 && !result.signal;
      if (is_successful) result.exit_code = surveyed_source.recording_end->exit_code;
      if (is_successful) result.signal = surveyed_source.recording_end->signal;
      // Of a part of the run it is unknown; an import has no recorder.
      if (!surveyed_source.is_clipped && !is_imported(surveyed_source.source))
        result.overhead_cpu_s = result.overhead_cpu_s.value_or(0) + surveyed_source.recording_end->overhead_cpu_s;
    }
    const std::optional<TimeSpan> span = surveyed_source.command_span();
    if (!span) continue;
    if (!result.start_monotonic_ns) result.start_monotonic_ns = span->begin_ns;
    result.elapsed_s = std::max(result.elapsed_s, seconds(span->end_ns - span->begin_ns));
    if (!surveyed_source.clock_pair) continue;
    const std::int64_t start_ns =
        surveyed_source.clock_pair->unix_ns - surveyed_source.clock_pair->monotonic_ns + span->begin_ns;
    result.start_unix_ns = std::min(result.start_unix_ns.value_or(start_ns), start_ns);
  }
}

}  // namespace joulemap::attribution
