// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/row_series.h"

#include <algorithm>

namespace joulemap::experiment {
namespace {

// Means over groups of `slices_per_group` slices; none where a group has no value.
std::vector<std::optional<double>> merge_slices(const std::vector<std::optional<double>>& values,
                                                std::size_t slices_per_group, double factor) {
  std::vector<std::optional<double>> means;
  for (std::size_t begin = 0; begin < values.size(); begin += slices_per_group) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = begin; i < std::min(values.size(), begin + slices_per_group); ++i) {
      if (!values[i]) continue;
      sum += *values[i] * factor;
      ++count;
    }
    means.push_back(count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt);
  }
  return means;
}

bool is_shown_domain(const ReportResult& run, const std::string& domain) {
  const auto has_provenance = [](const DomainEnergy& domain_energy, Provenance provenance) {
    return domain_energy.is_counted && domain_energy.provenance == provenance;
  };
  const bool is_measured = std::ranges::any_of(run.domains, [&](const DomainEnergy& domain_energy) {
    return has_provenance(domain_energy, Provenance::measured);
  });
  return std::ranges::any_of(run.domains, [&](const DomainEnergy& domain_energy) {
    return domain_energy.name == domain &&
           has_provenance(domain_energy, is_measured ? Provenance::measured : Provenance::estimated);
  });
}

}  // namespace

RowSeries make_row_series(const ReportResult& run) {
  RowSeries series;
  if (run.power.empty() || !(run.slice_s > 0)) return series;
  std::size_t slices = 0;
  for (const PowerSeries& power : run.power) slices = std::max(slices, power.watts.size());
  const std::size_t slices_per_group = std::max<std::size_t>(1, (slices + kMaxSeriesSlices - 1) / kMaxSeriesSlices);
  series.slice_s = run.slice_s * static_cast<double>(slices_per_group);
  for (const PowerSeries& power : run.power) {
    if (is_shown_domain(run, power.domain))
      series.channels.push_back({power.domain, "W", merge_slices(power.watts, slices_per_group, 1)});
  }
  for (const ReportTrack& track : run.tracks) {
    const std::optional<std::size_t> gauge = gauge_index_of_channel(track.name);
    if (!gauge) continue;
    const bool is_known =
        std::ranges::find(series.channels, kGauges[*gauge].name, &SeriesChannel::name) != series.channels.end();
    if (is_known) continue;  // gauges of the first GPU
    series.channels.push_back({std::string(kGauges[*gauge].name), std::string(kGauges[*gauge].unit),
                               merge_slices(track.values, slices_per_group, kGauges[*gauge].factor)});
  }
  return series;
}

GaugeValues mean_gauges_in_interval(const ReportResult& run, double begin_s, double end_s) {
  GaugeAccumulator window;
  for (const ReportTrack& track : run.tracks) {
    const std::optional<std::size_t> gauge = gauge_index_of_channel(track.name);
    if (!gauge || !(run.slice_s > 0)) continue;
    for (std::size_t i = 0; i < track.values.size(); ++i) {
      const double slice_s = static_cast<double>(i) * run.slice_s;
      const double overlap_s = std::min(end_s, slice_s + run.slice_s) - std::max(begin_s, slice_s);
      if (track.values[i] && overlap_s > 0) window.add(*gauge, *track.values[i], overlap_s);
    }
  }
  return window.values();
}

}  // namespace joulemap::experiment
