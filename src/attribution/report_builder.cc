// SPDX-License-Identifier: Apache-2.0
#include "attribution/report_builder.h"

#include <fmt/format.h>

#include <map>

#include "attribution/recorded_energy.h"
#include "attribution/recording_survey.h"
#include "base/clock.h"
#include "recording/recording_parts.h"

namespace joulemap::attribution {
namespace {

// Finer than any terminal; a page shows it without thinning.
constexpr std::size_t kSlices = 240;

// Half widths are made for 95 %; the report states 90 %. They are sums of many small errors: the normal law's ratio.
constexpr double kNinetyOfNinetyFive = 1.6449 / 1.9600;

// The second look: the samples.
class EnergyPass final : public recording::RecordingVisitor {
 public:
  explicit EnergyPass(const std::vector<SurveyedSource>& sources) {
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
      const std::optional<TimeSpan> span = sources[i].span();
      if (!span || sources[i].channels.empty()) continue;
      passes_.emplace(i, Pass{sources[i].first_channel, RecordedEnergy(sources[i].channels, *span, kSlices)});
    }
  }
  void on_samples(std::uint32_t source, std::span<const Sample> samples) override {
    const auto pass = passes_.find(source);
    if (pass == passes_.end()) return;
    for (Sample sample : samples) {
      sample.channel -= pass->second.first_channel;
      pass->second.energy.add(sample);
    }
  }
  std::size_t count() const { return passes_.size(); }
  template <class Use>
  void finish(Use&& use) {
    for (auto& [source, pass] : passes_) use(source, pass.energy.finish());
  }

 private:
  struct Pass {
    std::uint32_t first_channel = 0;
    RecordedEnergy energy;
  };
  std::map<std::uint32_t, Pass> passes_;
};

void add_to(ReportResult& result, RecordedEnergy::Result energy, const std::string& prefix) {
  for (DomainEnergy& domain : energy.table.rows) {
    domain.name = prefix + domain.name;
    if (!domain.part_of.empty()) domain.part_of = prefix + domain.part_of;
    if (domain.uncertainty_j) *domain.uncertainty_j *= kNinetyOfNinetyFive;
    result.domains.push_back(std::move(domain));
  }
  for (PowerSeries& series : energy.power) result.power.push_back({prefix + series.domain, std::move(series.watts)});
  for (ReportTrack& track : energy.tracks) {
    track.name = prefix + track.name;
    result.tracks.push_back(std::move(track));
  }
  for (CounterSteps& steps : energy.steps) {
    steps.channel = prefix + steps.channel;
    result.counter_steps.push_back(std::move(steps));
  }
  result.slice_s = energy.slice_s;
  result.diagnostics.add_all(energy.table.diagnostics);
}

// A row for each domain that is counted: measured ones; estimated ones where nothing was measured.
void add_rows(ReportResult& result) {
  const Provenance shown = result.totals.measured_j ? Provenance::measured : Provenance::estimated;
  const std::optional<double> total_j =
      shown == Provenance::measured ? result.totals.measured_j : result.totals.estimated_j;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.counted || !domain.joules || domain.provenance != shown) continue;
    ReportRow row;
    row.path = {domain.name};
    row.name = row.display_name = domain.name;
    row.count = 1;
    row.time_s = result.elapsed_s;
    row.energy_j = domain.joules;
    row.low_j = std::max(*domain.joules - domain.uncertainty_j.value_or(0), 0.0);
    row.high_j = *domain.joules + domain.uncertainty_j.value_or(0);
    row.power_w = domain.mean_w;
    if (total_j && *total_j > 0) row.share = *domain.joules / *total_j;
    row.basis = to_string(shown);
    result.rows.push_back(std::move(row));
  }
  if (!total_j) return;
  // By domain nothing is set apart: all that was measured is somebody's.
  result.attributed_j = total_j;
  result.idle_j = result.unattributed_j = 0;
}

void note_what_is_missing(ReportResult& result, const std::vector<SurveyedSource>& sources) {
  bool has_recorder = false;
  for (const SurveyedSource& seen : sources) {
    if (seen.source.role != "recorder") continue;
    has_recorder = true;
    if (seen.command_end_ns) continue;
    const std::optional<TimeSpan> span = seen.span();
    result.diagnostics.add(
        {"cut_off", 1,
         fmt::format(
             "the recording ends {} s after the command began, before the command did: energy and time are those "
             "until then",
             span ? fmt::format("{:.3f}", seconds(span->end_ns - span->begin_ns)) : "0"),
         "the recorder was killed or its disk was full"});
  }
  if (!has_recorder) {
    result.diagnostics.add({"no_recorder", 1, "no part of this recording holds samples: energies are not known",
                            "give the file that joulemap record wrote on that machine, too"});
  } else if (result.domains.empty()) {
    result.diagnostics.add(
        {"no_samples", 1, "no sensor was recorded: energies are not known", "joulemap doctor tells why"});
  }
}

}  // namespace

Result<ReportResult> build_report(std::span<const std::string> paths) {
  Result<std::vector<recording::RecordingFile>> files = recording::open_recording(paths);
  if (!files) return std::move(files).error();
  RecordingSurvey survey;
  Result<recording::RecordingSummary> summary = recording::read_recording(*files, survey);
  if (!summary) return std::move(summary).error();
  EnergyPass energy(survey.sources());
  Result<recording::RecordingSummary> again = recording::read_recording(*files, energy);
  if (!again) return std::move(again).error();

  ReportResult result;
  result.inputs.assign(paths.begin(), paths.end());
  const bool all_written = !summary->diagnostics.contains("recording_write_failed");
  result.complete = summary->ended && summary->damaged_places == 0 && all_written;
  result.samples = summary->samples;
  result.file_bytes = summary->bytes;
  result.diagnostics = summary->diagnostics;
  survey.describe(result);
  const bool several = energy.count() > 1;
  energy.finish([&](std::uint32_t source, RecordedEnergy::Result found) {
    add_to(result, std::move(found), several ? survey.sources()[source].source.host + "/" : "");
  });
  result.totals = total_energy(result.domains);
  add_rows(result);
  note_what_is_missing(result, survey.sources());
  return result;
}

}  // namespace joulemap::attribution
