// SPDX-License-Identifier: Apache-2.0
#include "ingest/epoch_logs/power_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "ingest/epoch_logs/epoch_log.h"
#include "ingest/epoch_logs/experiment_files.h"
#include "ingest/epoch_logs/file_name_pattern.h"
#include "ingest/epoch_logs/power_integral.h"
#include "ingest/trace_file.h"

namespace joulemap::ingest {
namespace {

namespace fs = std::filesystem;

// Gauges of gpu0 from after `from_s` until `to_s`, in seconds since origin_ns.
GaugeValues mean_gauges_between(const PowerLog& log, std::int64_t origin_ns, double from_s, double to_s) {
  GaugeAccumulator window;
  for (const Sample& sample : log.samples) {
    const Channel& channel = log.channels[sample.channel];
    const double time_s = seconds(sample.reading.time_ns() - origin_ns);
    if (time_s <= from_s || time_s > to_s || !channel.name.starts_with("gpu0-")) continue;
    const std::optional<std::size_t> gauge = gauge_index_of_channel(channel.name);
    if (gauge) window.add(*gauge, static_cast<double>(sample.reading.raw) * channel.scale, 1);
  }
  return window.values();
}

// Power of each domain and gauges of gpu0 in equal slices. A slice without a sample of a gauge has no value.
RowSeries make_power_series(const PowerLog& log, const std::vector<std::pair<std::string, PowerIntegral>>& integrals,
                            std::int64_t origin_ns, double elapsed_s) {
  RowSeries series;
  if (!(elapsed_s > 0)) return series;
  const std::size_t slices = std::clamp<std::size_t>(log.samples.size() / log.channels.size(), 1, kMaxSeriesSlices);
  series.slice_s = elapsed_s / static_cast<double>(slices);
  std::vector<GaugeAccumulator> windows(slices);
  for (const Sample& sample : log.samples) {
    const Channel& channel = log.channels[sample.channel];
    const std::optional<std::size_t> gauge = gauge_index_of_channel(channel.name);
    if (!gauge || !channel.name.starts_with("gpu0-")) continue;
    const auto slice =
        static_cast<std::size_t>(std::max(0.0, seconds(sample.reading.time_ns() - origin_ns) / series.slice_s));
    windows[std::min(slice, slices - 1)].add(*gauge, static_cast<double>(sample.reading.raw) * channel.scale, 1);
  }
  for (const auto& [name, integral] : integrals) {
    SeriesChannel power{name, "W", {}};
    for (std::size_t i = 0; i < slices; ++i) {
      const double begin_s = static_cast<double>(i) * series.slice_s;
      power.values.push_back(integral.energy_j(begin_s, begin_s + series.slice_s) / series.slice_s);
    }
    series.channels.push_back(std::move(power));
  }
  for (std::size_t gauge = 0; gauge < kGauges.size(); ++gauge) {
    SeriesChannel channel{std::string(kGauges[gauge].name), std::string(kGauges[gauge].unit), {}};
    for (const GaugeAccumulator& window : windows) channel.values.push_back(window.values()[gauge]);
    const bool is_known = std::ranges::any_of(channel.values, [](const auto& value) { return value.has_value(); });
    if (is_known) series.channels.push_back(std::move(channel));
  }
  return series;
}

// Name of each domain (GPU) with power samples, and the integral of its first power channel.
std::vector<std::pair<std::string, PowerIntegral>> integrate_power_by_domain(const PowerLog& log) {
  std::vector<std::pair<std::string, PowerIntegral>> integrals;
  for (std::uint32_t i = 0; i < log.channels.size(); ++i) {
    const Channel& channel = log.channels[i];
    const bool is_known = std::any_of(integrals.begin(), integrals.end(), [&](const auto& domain_integral) {
      return domain_integral.first == channel.domain;
    });
    if (channel.quantity != Quantity::power || is_known) continue;
    PowerIntegral integral(log, i);
    if (!integral.is_empty()) integrals.emplace_back(channel.domain, std::move(integral));
  }
  return integrals;
}

class ExperimentRowBuilder {
 public:
  explicit ExperimentRowBuilder(ExperimentData& data) : experiment_data_(data) {}

  Status add(const PowerLog& log, const EpochLog* epochs, ExperimentRow row) {
    const auto integrals = integrate_power_by_domain(log);
    if (integrals.empty()) return Error{ErrorCode::malformed, "no power channel has a sample", ""};
    const std::int64_t origin_ns = PowerIntegral::origin_ns(log);
    std::int64_t end_ns = origin_ns;
    for (const Sample& sample : log.samples) end_ns = std::max(end_ns, sample.reading.after_ns);
    row.start_unix_ns = origin_ns;
    row.elapsed_s = seconds(end_ns - origin_ns);
    row.state = ExperimentRowState::done;
    row.attempts = 1;
    row.first.measured = MeasuredWatts(0);
    for (const auto& [name, integral] : integrals) append_domain_energy(name, integral, row);
    distribute_diagnostics(log.diagnostics, row);
    set_metrics(log, epochs, origin_ns, row);
    if (epochs != nullptr) add_epoch_results(*epochs, log, integrals, row);
    row.series = make_power_series(log, integrals, origin_ns, *row.elapsed_s);
    experiment_data_.rows.push_back(std::move(row));
    return Done{};
  }

 private:
  // Moves diagnostics to the row. Those that apply to all logs of this kind are reported once for the experiment.
  void distribute_diagnostics(const Diagnostics& notes, ExperimentRow& row) {
    constexpr std::array<std::string_view, 4> kExperimentWideCodes = {"local_time", "power_is_mean", "columns_guessed",
                                                                      "epoch_times_cut"};
    for (Diagnostic note : notes.list()) {
      if (std::find(kExperimentWideCodes.begin(), kExperimentWideCodes.end(), note.code) ==
          kExperimentWideCodes.end()) {
        row.diagnostics.add(std::move(note));
        continue;
      }
      if (const std::size_t colon = note.message.find(": "); colon != std::string::npos)
        note.message.erase(0, colon + 2);
      experiment_data_.diagnostics.add(std::move(note));
    }
  }

  static void append_domain_energy(const std::string& name, const PowerIntegral& integral, ExperimentRow& row) {
    DomainEnergy domain;
    domain.name = name;
    domain.joules = integral.energy_j(0, *row.elapsed_s);
    if (*row.elapsed_s > 0) domain.mean_w = *domain.joules / *row.elapsed_s;
    domain.provenance = Provenance::measured;
    domain.is_counted = true;
    domain.sensor = "nvidia-smi";
    domain.channel = "power";
    *row.first.measured += MeasuredWatts(integral.first_power_w());
    row.domains.push_back(std::move(domain));
  }

  std::size_t find_or_add_metric(const std::string& name, std::string_view unit, bool higher_is_better,
                                 bool is_compared) {
    for (std::size_t i = 0; i < experiment_data_.metrics.size(); ++i) {
      if (experiment_data_.metrics[i].name == name) return i;
    }
    experiment_data_.metrics.push_back({name, std::string(unit), higher_is_better, is_compared});
    return experiment_data_.metrics.size() - 1;
  }

  static void set_metric_value(std::vector<std::optional<double>>& metrics, std::size_t index,
                               std::optional<double> value) {
    if (metrics.size() <= index) metrics.resize(index + 1);
    metrics[index] = value;
  }

  void set_gauges(const GaugeValues& gauges, std::vector<std::optional<double>>& metrics) {
    for (std::size_t i = 0; i < kGauges.size(); ++i) {
      if (gauges[i])
        set_metric_value(metrics, find_or_add_metric(std::string(kGauges[i].name), kGauges[i].unit, false, false),
                         gauges[i]);
    }
  }

  void set_metrics(const PowerLog& log, const EpochLog* epochs, std::int64_t origin_ns, ExperimentRow& row) {
    for (std::size_t i = 0; epochs != nullptr && i < epochs->metric_names.size(); ++i) {
      const std::size_t index =
          find_or_add_metric(epochs->metric_names[i], "", is_higher_better(epochs->metric_names[i]), true);
      set_metric_value(row.metrics, index,
                       epochs->epoch_ends.empty() ? std::nullopt : epochs->epoch_ends.back().metric_values[i]);
    }
    set_gauges(mean_gauges_between(log, origin_ns, -1, *row.elapsed_s), row.metrics);
  }

  void add_epoch_results(const EpochLog& epochs, const PowerLog& log,
                         const std::vector<std::pair<std::string, PowerIntegral>>& integrals, ExperimentRow& row) {
    distribute_diagnostics(epochs.diagnostics, row);
    const std::int64_t origin_ns = PowerIntegral::origin_ns(log);
    double begin_s = 0;
    for (const EpochEnd& end : epochs.epoch_ends) {
      const double end_s = seconds(end.time_ns - origin_ns);
      if (end_s <= begin_s || end_s > *row.elapsed_s + 2) {
        row.diagnostics.add({"epoch_outside", 1, "epochs end where the power log has no samples",
                             "both logs must use one time zone: --utc-offset"});
        continue;
      }
      EpochResult epoch;
      epoch.start_s = begin_s;
      epoch.elapsed_s = end_s - begin_s;
      epoch.energy_j = 0;
      for (const auto& [name, integral] : integrals) *epoch.energy_j += integral.energy_j(begin_s, end_s);
      for (std::size_t i = 0; i < epochs.metric_names.size(); ++i) {
        const std::string& name = epochs.metric_names[i];
        set_metric_value(epoch.metrics, find_or_add_metric(name, "", is_higher_better(name), true),
                         end.metric_values[i]);
      }
      epoch.gauges = mean_gauges_between(log, origin_ns, row.epochs.empty() ? -1 : begin_s, end_s);
      set_gauges(epoch.gauges, epoch.metrics);
      row.epochs.push_back(std::move(epoch));
      begin_s = end_s;
    }
  }

  ExperimentData& experiment_data_;
};

Result<EpochLog> read_matching_epoch_log(const InputFile& file, const FileNamePattern& names,
                                         std::optional<std::int64_t> utc_offset_s) {
  const std::optional<std::string> name = names.make_file_name(file.field_values);
  if (!name)
    return Error{ErrorCode::usage, "--epochs has a field that --pattern does not have", "use the same fields in both"};
  const bool is_log_beside_input = !names.field_names().empty();
  const fs::path path = is_log_beside_input ? fs::path(file.path).parent_path() / *name : fs::path(*name);
  const Result<TraceBytes> text = read_trace_file(path.string());
  if (!text) return text.error();
  Result<EpochLog> log = parse_epoch_log(text->view(), path.string(), utc_offset_s);
  if (log) text->report_damage(log->diagnostics);
  return log;
}

// Sorts and numbers the rows by start time. Gives each row and epoch an entry for every metric, empty where unknown.
ExperimentData finish_imported_experiment(ExperimentData data) {
  sort_factor_levels(data);
  std::stable_sort(data.rows.begin(), data.rows.end(),
                   [](const ExperimentRow& a, const ExperimentRow& b) { return a.start_unix_ns < b.start_unix_ns; });
  for (std::size_t i = 0; i < data.rows.size(); ++i) {
    data.rows[i].number = i;
    data.rows[i].metrics.resize(data.metrics.size());
    for (EpochResult& epoch : data.rows[i].epochs) epoch.metrics.resize(data.metrics.size());
  }
  return data;
}

Status add_power_log_row(const InputFile& file, const FileNamePattern& epoch_names,
                         const PowerExperimentOptions& options, ExperimentRow row, ExperimentData& data) {
  const Result<TraceBytes> text = read_trace_file(file.path);
  if (!text) return text.error();
  const Result<PowerLog> log = parse_power_log(text->view(), file.path, options.utc_offset_s);
  if (!log) {
    row.state = ExperimentRowState::failed;
    row.attempts = 1;
    row.diagnostics.add({"damaged_file", 1, log.error().message, ""});
    data.rows.push_back(std::move(row));
    return Done{};
  }
  text->report_damage(row.diagnostics);
  std::optional<EpochLog> epochs;
  if (!options.epoch_log_pattern.empty()) {
    Result<EpochLog> epoch_log = read_matching_epoch_log(file, epoch_names, options.utc_offset_s);
    if (epoch_log) {
      epochs = *std::move(epoch_log);
    } else if (options.pattern.empty()) {
      return std::move(epoch_log).error();
    } else {
      row.diagnostics.add({"epochs_missing", 1, epoch_log.error().message, epoch_log.error().remedy});
    }
  }
  Status add_status = ExperimentRowBuilder(data).add(*log, epochs ? &*epochs : nullptr, std::move(row));
  return add_status ? Status(Done{}) : Status(std::move(add_status).error().with_context(file.path));
}

}  // namespace

Result<ExperimentData> read_power_experiment(const PowerExperimentOptions& options) {
  const Result<FileNamePattern> pattern = FileNamePattern::parse(options.pattern);
  if (!pattern) return pattern.error();
  const Result<FileNamePattern> epoch_names = FileNamePattern::parse(options.epoch_log_pattern);
  if (!epoch_names) return epoch_names.error();
  const FileNamePattern* const names = options.pattern.empty() ? nullptr : &*pattern;
  const Result<std::vector<InputFile>> files =
      find_experiment_files(options.inputs, names, "run{run}-{framework}-{dataset}-ENERGY.csv");
  if (!files) return files.error();
  Result<std::vector<ExperimentFactor>> factors = make_pattern_factors(names);
  if (!factors) return std::move(factors).error();
  ExperimentData data;
  data.name = "nvidia-smi";
  data.factors = std::move(*factors);
  for (std::size_t i = 0; i < files->size(); ++i) {
    ExperimentRow row = make_experiment_row((*files)[i], names, i, data);
    if (Status add_status = add_power_log_row((*files)[i], *epoch_names, options, std::move(row), data); !add_status) {
      return std::move(add_status).error();
    }
  }
  return finish_imported_experiment(std::move(data));
}

}  // namespace joulemap::ingest
