// SPDX-License-Identifier: Apache-2.0
//
// RecordingSurvey: the first pass over a recording: its sources, when the command began and ended, its metrics, facts
// and traced steps, but not the values of samples. Memory grows with the number of sources, names and steps, not with the
// number of samples.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribution/gpu/traced_steps.h"
#include "attribution/ledger/recorded_energy.h"
#include "attribution/ledger/step_rows.h"
#include "model/report_result.h"
#include "recording/recording_reader.h"

namespace joulemap::attribution {

// A part of the command's time, in seconds since the command began; without `to_s`, until its end.
struct CommandTimeRange {
  double from_s = 0;
  std::optional<double> to_s;

  bool is_whole_run() const { return from_s <= 0 && !to_s; }
};

struct SurveyedSource {
  RecordingSource source;
  std::uint32_t first_channel = 0;
  std::vector<Channel> channels;
  std::optional<std::int64_t> command_begin_ns;
  std::optional<std::int64_t> command_end_ns;
  std::optional<std::int64_t> first_sample_ns;
  std::optional<std::int64_t> last_sample_ns;
  std::optional<ClockPair> clock_pair;
  std::optional<RecordingEnd> recording_end;
  bool is_clipped = false;                 // the command's marks are those of a requested part of its time
  std::optional<TimeSpan> unclipped_span;  // the command's, if is_clipped
  bool is_duplicate = false;               // another recorder recorded this machine at the same time and counts instead
  std::string cpus_online;                 // a list such as "0-3"; empty if not recorded
  std::vector<ChannelCalibration> calibration;
  std::string rank;  // of a distributed run; empty if none or unknown
  TracedSteps surveyed_steps;
  std::vector<StepOrEpochMark> steps;  // sorted after finish(), with is_evaluation set
  std::vector<EvaluationMark> evaluations;
  std::vector<StepOrEpochMark> epochs;  // sorted after finish()

  // The command's time, or the time covered by samples where a mark is missing. Empty without samples and marks.
  std::optional<TimeSpan> command_span() const;
};

class RecordingSurvey final : public recording::RecordingVisitor {
 public:
  void on_source(std::uint32_t source, const RecordingSource& recorded_source) override;
  void on_channels(std::uint32_t source, std::uint32_t first_channel, std::span<const Channel> channels) override;
  void on_samples(std::uint32_t source, std::span<const Sample> samples) override;
  void on_clock(std::uint32_t source, const ClockPair& pair) override;
  void on_mark(std::uint32_t source, const Mark& mark) override;
  void on_metric(std::uint32_t source, const Metric& metric) override;
  void on_fact(std::uint32_t source, const EnvironmentFact& fact) override;
  void on_calibration(std::uint32_t source, const ChannelCalibration& channel_calibration) override;
  void on_activity(std::uint32_t source, const Activity& activity) override;
  void on_power(std::uint32_t source, const KernelPower& kernel_power) override;
  void on_end(std::uint32_t source, const RecordingEnd& end) override;

  // Call after the last callback: finds duplicate recorders, sorts steps and marks those of evaluations.
  void finish();
  // Limits the span of every source to a part of the command's time. Fails if nothing remains.
  Status limit_time_range(const CommandTimeRange& time_range);

  // Excludes domains of these classes from the totals; they are still reported. Excluding CPUs or memory also excludes
  // platform domains, which contain them.
  void exclude_domains(std::span<const DomainClass> classes);

  const std::vector<SurveyedSource>& sources() const { return sources_; }
  // Kernel powers stored in the recording when it was made.
  const std::vector<KernelPower>& kernel_priors() const { return kernel_priors_; }
  // Number of machines, by boot id.
  std::size_t machine_count() const;
  // Machine name of each source, with a number where several machines have the same name.
  std::vector<std::string> host_names() const;
  // Fills in all that needs no samples.
  void fill_in_metadata(ReportResult& result) const;

 private:
  SurveyedSource& find_or_add_source(std::uint32_t source);
  void find_duplicate_recorders();
  std::vector<TimeSpan> recorded_spans(const SurveyedSource& process) const;
  void count_steps(ReportResult& result) const;

  std::vector<SurveyedSource> sources_;
  std::vector<ReportedMetric> metrics_;
  std::map<std::string, std::size_t> metric_index_;
  std::vector<EnvironmentFact> environment_facts_;
  std::vector<ChannelCalibration> calibration_;
  std::vector<KernelPower> kernel_priors_;
};

}  // namespace joulemap::attribution
