// SPDX-License-Identifier: Apache-2.0
//
// RecordingSurvey: the first look at a recording: who wrote it, when the command began and ended, what it reported.
// Everything but the samples' values. Memory grows with the number of sources and names, not with the length.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribution/ledger/recorded_energy.h"
#include "model/report_result.h"
#include "recording/recording_reader.h"

namespace joulemap::attribution {

// Seconds since the command began; without an end, until its end.
struct SecondsWithin {
  double from_s = 0;
  std::optional<double> to_s;

  bool is_all() const { return from_s <= 0 && !to_s; }
};

struct SurveyedSource {
  RecordingSource source;
  std::uint32_t first_channel = 0;
  std::vector<Channel> channels;
  std::optional<std::int64_t> command_begin_ns;
  std::optional<std::int64_t> command_end_ns;
  std::optional<std::int64_t> first_sample_ns;
  std::optional<std::int64_t> last_sample_ns;
  std::optional<ClockPair> clock;
  std::optional<RecordingEnd> end;
  bool is_clipped = false;   // to less than the command's time
  bool is_repeated = false;  // a recorder of a machine that another one recorded at the same time: that one counts
  std::string cpus_online;   // a list such as "0-3", where it was told
  std::vector<ChannelCalibration> calibration;
  std::string rank;  // of a distributed run; empty where it is none, or not known
  FollowedSteps traced_steps;
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;

  // The command's time, or as much of it as the samples cover when a mark is missing. Nothing without samples and marks.
  std::optional<TimeSpan> span() const;
};

class RecordingSurvey final : public recording::RecordingVisitor {
 public:
  void on_source(std::uint32_t source, const RecordingSource& described) override;
  void on_channels(std::uint32_t source, std::uint32_t first_channel, std::span<const Channel> channels) override;
  void on_samples(std::uint32_t source, std::span<const Sample> samples) override;
  void on_clock(std::uint32_t source, const ClockPair& pair) override;
  void on_mark(std::uint32_t source, const Mark& mark) override;
  void on_metric(std::uint32_t source, const Metric& metric) override;
  void on_fact(std::uint32_t source, const EnvironmentFact& fact) override;
  void on_calibration(std::uint32_t source, const ChannelCalibration& known) override;
  void on_activity(std::uint32_t source, const Activity& activity) override;
  void on_power(std::uint32_t source, const KernelPower& known) override;
  void on_end(std::uint32_t source, const RecordingEnd& end) override;

  // Once all was seen.
  void finish();
  // From now on no source spans more than that. Fails where nothing is left.
  Status clip(const SecondsWithin& within);

  // From now on domains of these classes are told of, but not counted, and neither is a platform that contains them.
  void leave_out(std::span<const DomainClass> classes);

  const std::vector<SurveyedSource>& sources() const { return sources_; }
  // Of kernels, as they were known when it was made.
  const std::vector<KernelPower>& powers() const { return powers_; }
  // How many there are, by their boots.
  std::size_t machines() const;
  // Of each source: its machine's name; where several machines have the same, with a number.
  std::vector<std::string> host_names() const;
  // Fills in what needs no samples.
  void describe(ReportResult& result) const;

 private:
  SurveyedSource& at(std::uint32_t source);
  void count_steps(ReportResult& result) const;

  std::vector<SurveyedSource> sources_;
  std::vector<ReportedMetric> metrics_;
  std::map<std::string, std::size_t> metric_of_;
  std::vector<EnvironmentFact> facts_;
  std::vector<ChannelCalibration> calibration_;
  std::vector<KernelPower> powers_;
};

}  // namespace joulemap::attribution
