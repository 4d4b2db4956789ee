// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/epoch_means.h"

#include <algorithm>

namespace joulemap::experiment {
namespace {

// Mean over the rows that have a value.
struct RunningMean {
  double sum = 0;
  std::size_t rows = 0;

  void add(const std::optional<double>& value) {
    if (!value) return;
    sum += *value;
    ++rows;
  }
  std::optional<double> mean() const {
    return rows > 0 ? std::optional(sum / static_cast<double>(rows)) : std::nullopt;
  }
};

std::optional<std::size_t> find_gauge_index(std::string_view name) {
  const auto matching_gauge = std::ranges::find(kGauges, name, &Gauge::name);
  return matching_gauge == kGauges.end() ? std::nullopt
                                         : std::optional(static_cast<std::size_t>(matching_gauge - kGauges.begin()));
}

std::optional<double> epoch_metric(const ExperimentData& data, const EpochResult& epoch, std::string_view name) {
  for (std::size_t i = 0; i < data.metrics.size() && i < epoch.metrics.size(); ++i) {
    if (data.metrics[i].name == name) return epoch.metrics[i];
  }
  return std::nullopt;
}

std::optional<double> epoch_column_value(const ExperimentData& data, const EpochResult& epoch, std::string_view name) {
  const std::optional<std::size_t> gauge = find_gauge_index(name);
  if (gauge && epoch.gauges[*gauge]) return epoch.gauges[*gauge];
  return epoch_metric(data, epoch, name);
}

struct EpochSums {
  std::size_t n = 0;
  RunningMean energy_j;
  RunningMean time_s;
  RunningMean power_w;
  std::vector<RunningMean> column_means;
};

}  // namespace

std::vector<EpochColumn> epoch_columns(const ExperimentData& data) {
  std::vector<EpochColumn> candidates;
  for (const Gauge& gauge : kGauges) candidates.push_back({std::string(gauge.name), std::string(gauge.unit)});
  for (const ExperimentMetric& metric : data.metrics) {
    if (!find_gauge_index(metric.name)) candidates.push_back({metric.name, metric.unit});
  }
  const auto is_unknown = [&](const EpochColumn& column) {
    return std::ranges::none_of(data.rows, [&](const ExperimentRow& row) {
      return std::ranges::any_of(row.epochs, [&](const EpochResult& epoch) {
        return epoch_column_value(data, epoch, column.name).has_value();
      });
    });
  };
  std::erase_if(candidates, is_unknown);
  return candidates;
}

std::vector<EpochMean> epoch_means(const ExperimentData& data, const ExperimentTable& table, const CellRows& cell,
                                   const std::vector<EpochColumn>& columns) {
  std::vector<EpochSums> sums;
  for (const std::size_t index : cell.done_rows) {
    const ExperimentRow& row = data.rows[index];
    const bool has_energies = has_domains_of_basis(table.energy_basis, row);
    if (row.epochs.size() > sums.size()) sums.resize(row.epochs.size());
    for (std::size_t i = 0; i < row.epochs.size(); ++i) {
      const EpochResult& epoch = row.epochs[i];
      ++sums[i].n;
      sums[i].time_s.add(epoch.elapsed_s);
      if (has_energies) sums[i].energy_j.add(epoch.energy_j);
      if (has_energies && epoch.energy_j && epoch.elapsed_s > 0) sums[i].power_w.add(*epoch.energy_j / epoch.elapsed_s);
      sums[i].column_means.resize(columns.size());
      for (std::size_t column_index = 0; column_index < columns.size(); ++column_index)
        sums[i].column_means[column_index].add(epoch_column_value(data, epoch, columns[column_index].name));
    }
  }
  std::vector<EpochMean> means;
  for (const EpochSums& epoch : sums) {
    EpochMean mean{means.size() + 1, epoch.n, epoch.energy_j.mean(), epoch.time_s.mean(), epoch.power_w.mean(), {}};
    for (const RunningMean& value : epoch.column_means) mean.values.push_back(value.mean());
    means.push_back(std::move(mean));
  }
  return means;
}

}  // namespace joulemap::experiment
