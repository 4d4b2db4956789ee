// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/recording_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "attribution/ledger/host_ledgers.h"
#include "attribution/ledger/recorded_energy.h"
#include "base/clock.h"
#include "recording/recording_parts.h"
#include "statistics/normal.h"

namespace joulemap::attribution {
namespace {

// Assumed fraction of the work that is done after the first and after the second pass; only for progress reports.
constexpr double kProgressFractionAfterSurvey = 0.2;
constexpr double kProgressFractionAfterSums = 0.6;

// Ratio of the half widths of 90 % intervals (reported) and 95 % intervals (computed), for normally distributed errors.
constexpr double kHalfWidth90To95Ratio = statistics::kNormalHalfWidth90 / statistics::kNormalHalfWidth95;

// Visitor of the second pass: computes energies from the samples, and sums of what ran.
class EnergySumVisitor final : public recording::RecordingVisitor {
 public:
  EnergySumVisitor(const std::vector<SurveyedSource>& sources, std::size_t slices, HostTotals& totals,
                   RunEvents* events)
      : host_totals_(totals), events_(events) {
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
      const std::optional<TimeSpan> span = sources[i].command_span();
      // A recorder without sensors still records when the command ran.
      if (!span || sources[i].is_duplicate || (sources[i].channels.empty() && sources[i].source.role != "recorder"))
        continue;
      energy_by_source_.emplace(
          i, SourceEnergy{sources[i].first_channel, RecordedEnergy(sources[i].channels, *span, slices)});
    }
  }
  void on_samples(std::uint32_t source, std::span<const Sample> samples) override {
    const auto pass = energy_by_source_.find(source);
    if (pass == energy_by_source_.end()) return;
    for (Sample sample : samples) {
      sample.channel -= pass->second.first_channel;
      pass->second.recorded_energy.add(sample);
    }
  }
  void on_activity(std::uint32_t source, const Activity& activity) override { host_totals_.add(source, activity); }
  void on_engine_steps(std::uint32_t source, const EngineSteps& steps) override { host_totals_.add(source, steps); }
  void on_mark(std::uint32_t source, const Mark& mark) override {
    host_totals_.add(source, mark);
    if (events_ != nullptr) events_->add(source, mark);
  }
  void on_metric(std::uint32_t source, const Metric& metric) override {
    if (events_ != nullptr) events_->add(source, metric);
  }
  std::size_t recorded_source_count() const { return energy_by_source_.size(); }
  std::vector<HostEnergy> finish() {
    std::vector<HostEnergy> energies;
    for (auto& [source, pass] : energy_by_source_) energies.push_back({source, pass.recorded_energy.finish()});
    return energies;
  }

 private:
  struct SourceEnergy {
    std::uint32_t first_channel = 0;
    RecordedEnergy recorded_energy;
  };
  HostTotals& host_totals_;
  RunEvents* events_;
  std::map<std::uint32_t, SourceEnergy> energy_by_source_;
};

// Visitor of the third pass: attributes the energy.
class AttributionVisitor final : public recording::RecordingVisitor {
 public:
  explicit AttributionVisitor(HostAttribution& attribution) : attribution_(attribution) {}
  void on_activity(std::uint32_t source, const Activity& activity) override { attribution_.add(source, activity); }
  void on_engine_steps(std::uint32_t source, const EngineSteps& steps) override { attribution_.add(source, steps); }

 private:
  HostAttribution& attribution_;
};

void add_energy_to_report(ReportResult& result, RecordedEnergy::Result energy, const std::string& prefix) {
  for (DomainEnergy& domain : energy.domain_table.rows) {
    domain.name = prefix + domain.name;
    if (!domain.part_of.empty()) domain.part_of = prefix + domain.part_of;
    if (domain.uncertainty_j) *domain.uncertainty_j *= kHalfWidth90To95Ratio;
    result.domains.push_back(std::move(domain));
  }
  for (PowerSeries& series : energy.power_series)
    result.power.push_back({prefix + series.domain, std::move(series.watts)});
  for (ReportTrack& track : energy.gauge_tracks) {
    track.name = prefix + track.name;
    result.tracks.push_back(std::move(track));
  }
  for (CounterUpdateTiming& counter_updates : energy.counter_updates) {
    counter_updates.channel = prefix + counter_updates.channel;
    result.counter_updates.push_back(std::move(counter_updates));
  }
  result.slice_s = energy.slice_s;
  result.clock_readings.readings += energy.clock_readings.readings;
  result.clock_readings.throttled += energy.clock_readings.throttled;
  result.diagnostics.add_all(energy.domain_table.diagnostics);
}

// A ledger sums over machines: if any machine was measured, the energy of machines with estimates only is left out.
void drop_estimates_if_measured(std::vector<HostEnergy>& energies, const std::vector<std::string>& hosts,
                                Diagnostics& diagnostics) {
  const auto is_measured = [](const HostEnergy& host_energy) {
    return total_energy(host_energy.energy.domain_table.rows).measured.has_value();
  };
  if (std::none_of(energies.begin(), energies.end(), is_measured)) return;
  for (HostEnergy& host_energy : energies) {
    if (is_measured(host_energy) || host_energy.energy.domain_curves.empty()) continue;
    host_energy.energy.domain_curves.clear();
    diagnostics.add(
        {"estimates_not_added", 1,
         fmt::format("{}: its energy is only estimated and is not added to the measured energy of the other hosts",
                     hosts[host_energy.source]),
         "run joulemap doctor on that machine to see how to measure it"});
  }
}

void add_missing_samples_diagnostic(ReportResult& result, const std::vector<SurveyedSource>& sources) {
  bool has_recorder = false;
  for (const SurveyedSource& surveyed_source : sources) {
    if (surveyed_source.source.role != "recorder") continue;
    has_recorder = true;
    if (surveyed_source.command_end_ns) continue;
    const std::optional<TimeSpan> span = surveyed_source.command_span();
    result.diagnostics.add({"cut_off", 1,
                            fmt::format("the recording ends {} s after the command began, before the command ended: "
                                        "energy and time cover only this part",
                                        span ? fmt::format("{:.3f}", seconds(span->end_ns - span->begin_ns)) : "0"),
                            "the recorder was killed or its disk was full"});
  }
  if (!has_recorder) {
    result.diagnostics.add({"no_recorder", 1, "no part of this recording contains samples: energies are unknown",
                            "also pass the file that joulemap record wrote on that machine"});
  } else if (result.domains.empty()) {
    result.diagnostics.add({"no_samples", 1, "no sensor was recorded: energies are unknown",
                            "run joulemap doctor to see why; an import needs --power"});
  }
}

// A program that was killed or exited without cleanup could not be probed and left no diagnostic.
void add_missing_probe_diagnostic(ReportResult& result) {
  const auto is_request_fact = [](const EnvironmentFact& fact) { return fact.name == kProbeFactName; };
  if (std::none_of(result.environment.begin(), result.environment.end(), is_request_fact)) return;
  if (result.probe || result.is_clipped || result.diagnostics.contains("not_probed")) return;
  result.diagnostics.add({"not_probed", 1,
                          "not probed: no process of the command used PyTorch modules and exited normally from Python",
                          "let the program exit normally; one that is killed or calls os._exit cannot be probed"});
}

// A run of less than a few seconds is too short for a pause and left no diagnostic.
void add_missing_dither_diagnostic(ReportResult& result) {
  const auto is_request_fact = [](const EnvironmentFact& fact) { return fact.name == kDitherFactName; };
  if (std::none_of(result.environment.begin(), result.environment.end(), is_request_fact)) return;
  if (result.dither_s || result.diagnostics.contains("not_dithered")) return;
  result.diagnostics.add({"not_dithered", 1,
                          "not dithered: no process of the command used PyTorch modules for long enough",
                          "record a longer run: dithering inserts a pause of 20 to 40 ms every few seconds"});
}

}  // namespace

Result<RecordingAnalysis> analyse_recording(std::span<const std::string> paths, const AnalysisQuery& query) {
  // Sorts the files, so that their order does not change the last bits of floating-point sums.
  std::vector<std::string> sorted_paths(paths.begin(), paths.end());
  std::sort(sorted_paths.begin(), sorted_paths.end());
  Result<std::vector<recording::RecordingFile>> files = recording::open_recording(sorted_paths);
  if (!files) return std::move(files).error();
  RecordingSurvey survey;
  Result<recording::RecordingSummary> summary = recording::read_recording(
      *files, survey, make_partial_progress_callback(query.on_progress, 0, kProgressFractionAfterSurvey));
  if (!summary) return std::move(summary).error();
  survey.finish();
  if (const Status clip_status = survey.limit_time_range(query.time_range); !clip_status) return clip_status.error();
  survey.exclude_domains(query.excluded_domains);
  const KernelPriors priors = query.library ? KernelPriors::make_from_library(*query.library)
                                            : KernelPriors::make_from_recording(survey.kernel_priors());
  const auto distribution_level = query.views ? std::optional(query.views->distribution_level) : std::nullopt;
  Machines::RequestedResults requested_results{query.levels, distribution_level};
  if (query.program_end_s) requested_results.program_end_s = *query.program_end_s - query.time_range.from_s;
  HostTotals totals(survey.sources(), std::move(requested_results), query.mode, priors);
  RecordingAnalysis analysis{.summary = {}, .sources = survey.sources(), .ledgers = {}};
  EnergySumVisitor energy(survey.sources(), query.power_slice_count, totals, query.views ? &analysis.events : nullptr);
  Result<recording::RecordingSummary> third_pass_summary = recording::read_recording(
      *files, energy,
      make_partial_progress_callback(query.on_progress, kProgressFractionAfterSurvey, kProgressFractionAfterSums));
  if (!third_pass_summary) return std::move(third_pass_summary).error();

  ReportResult& result = analysis.summary;
  result.inputs.assign(paths.begin(), paths.end());
  result.samples = summary->samples;
  result.file_bytes = summary->bytes;
  result.diagnostics = summary->diagnostics;
  survey.fill_in_metadata(result);
  const bool is_fully_written = !result.diagnostics.contains("recording_write_failed");
  result.complete = summary->all_sources_ended && summary->damaged_ranges == 0 && is_fully_written;
  const bool has_several_machines = energy.recorded_source_count() > 1 && survey.machine_count() > 1;
  const std::vector<std::string> hosts = survey.host_names();
  std::vector<HostEnergy> energies = energy.finish();
  for (HostEnergy& host_energy : energies)
    host_energy.prefix = has_several_machines ? hosts[host_energy.source] + "/" : "";
  drop_estimates_if_measured(energies, hosts, result.diagnostics);
  HostAttribution attribution = std::move(totals).attribute_energies(energies);
  for (auto& [source, source_energy, prefix] : energies) {
    for (const Channel& channel : survey.sources()[source].channels) {
      if (measures_energy_or_power(channel))
        analysis.domain_classes.try_emplace(prefix + channel.domain, channel.domain_class);
    }
    add_energy_to_report(result, std::move(source_energy), prefix);
  }
  result.totals = total_energy(result.domains);
  result.probe = attribution.probe_cost();
  result.dither_s = attribution.dither_s();
  if (std::ranges::all_of(query.levels, [](RowLevel level) { return level == RowLevel::domain; })) return analysis;
  AttributionVisitor pass(attribution);
  const auto read_result = recording::read_recording(
      *files, pass, make_partial_progress_callback(query.on_progress, kProgressFractionAfterSums, 1));
  if (!read_result) return read_result.error();
  HostLedgers ledgers = std::move(attribution).finish();
  for (const RowLevel level : query.levels) {
    if (level != RowLevel::domain) analysis.ledgers.emplace(level, ledgers.ledger(level, query.grouping));
  }
  if (query.views || query.includes_step_times)
    analysis.machine_views = ledgers.views(query.views.value_or(ViewLimits{}));
  return analysis;
}

void add_empty_level_diagnostic(const std::vector<ReportRow>& rows, std::string_view level_name,
                                Diagnostics& diagnostics) {
  if (!rows.empty()) return;
  diagnostics.add(
      {"nothing_captured", 1, fmt::format("the recording contains no activity by {}", level_name),
       level_name == "request" || level_name == "token" ? "report the steps of a serving engine with jm.engine_step()"
       : level_name == "kernel"
           ? "kernels are those of NVIDIA GPUs: run joulemap doctor to see whether they can be recorded"
           : "record a program that uses PyTorch or CUDA, or mark its parts with jm.region() and jm.step()"});
}

void add_missing_data_diagnostics(ReportResult& result, const std::vector<SurveyedSource>& sources) {
  add_missing_samples_diagnostic(result, sources);
  add_missing_probe_diagnostic(result);
  add_missing_dither_diagnostic(result);
}

void add_domain_rows(ReportResult& result) {
  const std::optional<EnergyWithProvenance> preferred_total = preferred_energy(result.totals);
  if (!preferred_total) return;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.is_counted || !domain.joules || domain.provenance != preferred_total->provenance) continue;
    ReportRow row;
    row.path = {domain.name};
    row.name = row.display_name = domain.name;
    row.count = 1;
    row.time_s = result.elapsed_s;
    row.energy_j = domain.joules;
    row.low_j = std::max(*domain.joules - domain.uncertainty_j.value_or(0), 0.0);
    row.high_j = *domain.joules + domain.uncertainty_j.value_or(0);
    row.power_w = domain.mean_w;
    if (preferred_total->joules > 0) row.share = *domain.joules / preferred_total->joules;
    row.basis = to_string(preferred_total->provenance);
    result.rows.push_back(std::move(row));
  }
  // By domain nothing is idle or unattributed: all measured energy is attributed.
  result.attributed_j = preferred_total->joules;
  result.idle_j = result.unattributed_j = 0;
}

Result<std::vector<KernelPower>> learn_kernel_powers(std::span<const std::string> paths,
                                                     const CommandTimeRange& time_range,
                                                     const std::string& default_gpu_model) {
  Result<std::vector<recording::RecordingFile>> files = recording::open_recording(paths);
  if (!files) return std::move(files).error();
  RecordingSurvey survey;
  if (const auto read_result = recording::read_recording(*files, survey); !read_result) return read_result.error();
  survey.finish();
  if (const Status clip_status = survey.limit_time_range(time_range); !clip_status) return clip_status.error();
  // Without priors from a library: learning from them would count the same data repeatedly.
  const KernelPriors empty_priors;
  HostTotals totals(survey.sources(), {{RowLevel::kernel}}, AttributionMode::regress, empty_priors);
  EnergySumVisitor energy(survey.sources(), kReportPowerSliceCount, totals, nullptr);
  if (const auto read_result = recording::read_recording(*files, energy); !read_result) return read_result.error();
  std::vector<HostEnergy> energies = energy.finish();
  return std::move(totals).attribute_energies(energies).learned_kernel_powers(default_gpu_model);
}

}  // namespace joulemap::attribution
