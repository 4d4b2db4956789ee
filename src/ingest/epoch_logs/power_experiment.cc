// SPDX-License-Identifier: Apache-2.0
#include "ingest/epoch_logs/power_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "ingest/epoch_logs/epoch_log.h"
#include "ingest/epoch_logs/name_pattern.h"
#include "ingest/epoch_logs/power_integral.h"
#include "ingest/trace_file.h"

namespace joulemap::ingest {
namespace {

namespace fs = std::filesystem;

bool is_repetition(std::string_view field) { return field == "run" || field == "rep" || field == "repetition"; }

// A metric of a run from a gauge of its power log other than power.
struct GaugeMetric {
  std::string_view channel;  // name of the channel without "gpu0-"
  std::string_view name;
  std::string_view unit;
  bool is_mean;  // otherwise the maximum
  double factor;
};
constexpr std::array kGaugeMetrics = {GaugeMetric{"utilization", "gpu_utilization", "%", true, 1},
                                      GaugeMetric{"memory-utilization", "memory_utilization", "%", true, 1},
                                      GaugeMetric{"memory-used", "memory_used", "MiB", false, 1.0 / (1 << 20)},
                                      GaugeMetric{"temperature", "temperature", "degC", false, 1}};

struct InputFile {
  std::string path;
  NamePattern::Fields fields;
};

Status add_matching(const fs::path& path, const NamePattern* pattern, bool is_named, std::vector<InputFile>& files) {
  const std::string name = path.filename().string();
  if (pattern == nullptr) {
    files.push_back({path.string(), {}});
    return Done{};
  }
  std::optional<NamePattern::Fields> fields = pattern->match(name);
  if (fields) files.push_back({path.string(), *std::move(fields)});
  if (fields || !is_named) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} does not match the pattern", path.string()), "--pattern"};
}

Result<std::vector<InputFile>> find_files(const PowerExperimentOptions& options, const NamePattern* pattern) {
  std::vector<InputFile> files;
  for (const std::string& input : options.inputs) {
    std::error_code error;
    if (!fs::is_directory(input, error)) {
      if (Status added = add_matching(input, pattern, true, files); !added) return std::move(added).error();
      continue;
    }
    if (pattern == nullptr) {
      return Error{ErrorCode::usage, fmt::format("{} is a folder: a pattern must select its power logs", input),
                   "--pattern 'run{run}-{framework}-{dataset}-ENERGY.csv'"};
    }
    std::vector<fs::path> found;
    for (fs::recursive_directory_iterator at(input, error), end; !error && at != end; at.increment(error)) {
      if (at->is_regular_file(error)) found.push_back(at->path());
    }
    if (error) return Error{ErrorCode::io, fmt::format("read {}: {}", input, error.message()), ""};
    std::sort(found.begin(), found.end(),
              [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
    for (const fs::path& path : found) {
      if (Status added = add_matching(path, pattern, false, files); !added) return std::move(added).error();
    }
  }
  if (!files.empty()) return files;
  return Error{ErrorCode::not_found, "no file matches the pattern",
               "take the name of a file and put its fields in braces"};
}

std::optional<double> gauge_metric_value(const PowerLog& log, const GaugeMetric& gauge_metric) {
  double sum = 0;
  double most = std::numeric_limits<double>::lowest();
  std::size_t count = 0;
  for (const Sample& sample : log.samples) {
    const Channel& channel = log.channels[sample.channel];
    if (channel.name != "gpu0-" + std::string(gauge_metric.channel)) continue;
    const double value = static_cast<double>(sample.reading.raw) * channel.scale * gauge_metric.factor;
    sum += value;
    most = std::max(most, value);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return gauge_metric.is_mean ? sum / static_cast<double>(count) : most;
}

// Name of each domain (GPU) with power samples, and the integral of its first power channel.
std::vector<std::pair<std::string, PowerIntegral>> integrals_of(const PowerLog& log) {
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

class RowBuilder {
 public:
  explicit RowBuilder(ExperimentData& data) : data_(data) {}

  Status add(const PowerLog& log, const EpochLog* epochs, ExperimentRow row) {
    const auto integrals = integrals_of(log);
    if (integrals.empty()) return Error{ErrorCode::malformed, "no power channel has a sample", ""};
    const std::int64_t origin_ns = PowerIntegral::origin_ns(log);
    std::int64_t end_ns = origin_ns;
    for (const Sample& sample : log.samples) end_ns = std::max(end_ns, sample.reading.after_ns);
    row.start_unix_ns = origin_ns;
    row.elapsed_s = seconds(end_ns - origin_ns);
    row.state = RowState::done;
    row.attempts = 1;
    row.first.measured = MeasuredWatts(0);
    for (const auto& [name, integral] : integrals) add_domain(name, integral, row);
    take_diagnostics(log.diagnostics, row);
    set_metrics(log, epochs, row);
    if (epochs != nullptr) add_epochs(*epochs, integrals, origin_ns, row);
    data_.rows.push_back(std::move(row));
    return Done{};
  }

 private:
  // Moves diagnostics to the row. Those that apply to all logs of this kind are reported once for the experiment.
  void take_diagnostics(const Diagnostics& notes, ExperimentRow& row) {
    constexpr std::array<std::string_view, 4> kOfAll = {"local_time", "power_is_mean", "columns_guessed",
                                                        "epoch_times_cut"};
    for (Diagnostic note : notes.list()) {
      if (std::find(kOfAll.begin(), kOfAll.end(), note.code) == kOfAll.end()) {
        row.diagnostics.add(std::move(note));
        continue;
      }
      if (const std::size_t colon = note.message.find(": "); colon != std::string::npos)
        note.message.erase(0, colon + 2);
      data_.diagnostics.add(std::move(note));
    }
  }

  static void add_domain(const std::string& name, const PowerIntegral& integral, ExperimentRow& row) {
    DomainEnergy domain;
    domain.name = name;
    domain.joules = integral.energy_j(0, *row.elapsed_s);
    if (*row.elapsed_s > 0) domain.mean_w = *domain.joules / *row.elapsed_s;
    domain.provenance = Provenance::measured;
    domain.counted = true;
    domain.sensor = "nvidia-smi";
    domain.channel = "power";
    *row.first.measured += MeasuredWatts(integral.first_power_w());
    row.domains.push_back(std::move(domain));
  }

  std::size_t metric_index(const std::string& name, std::string_view unit, bool higher_is_better, bool is_compared) {
    for (std::size_t i = 0; i < data_.metrics.size(); ++i) {
      if (data_.metrics[i].name == name) return i;
    }
    data_.metrics.push_back({name, std::string(unit), higher_is_better, is_compared});
    return data_.metrics.size() - 1;
  }

  static void set(std::vector<std::optional<double>>& metrics, std::size_t index, std::optional<double> value) {
    if (metrics.size() <= index) metrics.resize(index + 1);
    metrics[index] = value;
  }

  void set_metrics(const PowerLog& log, const EpochLog* epochs, ExperimentRow& row) {
    for (std::size_t i = 0; epochs != nullptr && i < epochs->metrics.size(); ++i) {
      const std::size_t index = metric_index(epochs->metrics[i], "", is_higher_better(epochs->metrics[i]), true);
      set(row.metrics, index, epochs->epochs.empty() ? std::nullopt : epochs->epochs.back().metrics[i]);
    }
    for (const GaugeMetric& gauge_metric : kGaugeMetrics) {
      const std::optional<double> value = gauge_metric_value(log, gauge_metric);
      if (value) set(row.metrics, metric_index(std::string(gauge_metric.name), gauge_metric.unit, false, false), value);
    }
  }

  void add_epochs(const EpochLog& log, const std::vector<std::pair<std::string, PowerIntegral>>& integrals,
                  std::int64_t origin_ns, ExperimentRow& row) {
    take_diagnostics(log.diagnostics, row);
    double begin_s = 0;
    for (const EpochEnd& end : log.epochs) {
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
      for (std::size_t i = 0; i < log.metrics.size(); ++i) {
        set(epoch.metrics, metric_index(log.metrics[i], "", is_higher_better(log.metrics[i]), true), end.metrics[i]);
      }
      row.epochs.push_back(std::move(epoch));
      begin_s = end_s;
    }
  }

  ExperimentData& data_;
};

std::size_t level_index(ExperimentFactor& factor, const std::string& level) {
  const auto found = std::find(factor.levels.begin(), factor.levels.end(), level);
  const auto index = static_cast<std::size_t>(found - factor.levels.begin());
  if (found == factor.levels.end()) factor.levels.push_back(level);
  return index;
}

ExperimentRow row_of(const InputFile& file, const NamePattern* pattern, std::size_t number, ExperimentData& data) {
  ExperimentRow row;
  row.block = pattern == nullptr ? number : 0;
  std::size_t factor = 0;
  for (std::size_t i = 0; pattern != nullptr && i < pattern->fields().size(); ++i) {
    const std::string& field = pattern->fields()[i];
    const std::string& value = file.fields.at(field);
    if (is_repetition(field)) {
      const std::uint64_t repetition = parse_u64(value).value_or(number + 1);
      row.block = repetition > 0 ? repetition - 1 : 0;
      continue;
    }
    row.levels.push_back(level_index(data.factors[factor++], value));
  }
  if (pattern == nullptr) row.levels.push_back(0);
  return row;
}

// Sorts the levels of each factor in natural order (32, 64, 128) and adjusts the rows' level indices.
void sort_levels(ExperimentData& data) {
  for (std::size_t factor = 0; factor < data.factors.size(); ++factor) {
    const std::vector<std::string> before = data.factors[factor].levels;
    std::vector<std::string>& levels = data.factors[factor].levels;
    std::sort(levels.begin(), levels.end(), natural_less);
    for (ExperimentRow& row : data.rows)
      row.levels[factor] = level_index(data.factors[factor], before[row.levels[factor]]);
  }
}

Result<EpochLog> read_epochs(const InputFile& file, const NamePattern& names,
                             std::optional<std::int64_t> utc_offset_s) {
  const std::optional<std::string> name = names.fill(file.fields);
  if (!name)
    return Error{ErrorCode::usage, "--epochs has a field that --pattern does not have", "use the same fields in both"};
  const bool is_beside = !names.fields().empty();
  const fs::path path = is_beside ? fs::path(file.path).parent_path() / *name : fs::path(*name);
  const Result<TraceBytes> text = read_trace_file(path.string());
  if (!text) return text.error();
  Result<EpochLog> log = parse_epoch_log(text->view(), path.string(), utc_offset_s);
  if (log) text->report_damage(log->diagnostics);
  return log;
}

Result<std::vector<ExperimentFactor>> factors_of(const NamePattern* names) {
  std::vector<ExperimentFactor> factors;
  if (names == nullptr) return std::vector<ExperimentFactor>{{"run", {"all"}, true}};
  for (const std::string& field : names->fields()) {
    if (!is_repetition(field)) factors.push_back({field, {}, true});
  }
  if (!factors.empty()) return factors;
  return Error{ErrorCode::usage, "the pattern has no field besides the repetition",
               "--pattern '{framework}-{run}.csv'"};
}

// Sorts and numbers the rows by start time. Gives each row and epoch an entry for every metric, empty where unknown.
ExperimentData finish_experiment(ExperimentData data) {
  sort_levels(data);
  std::stable_sort(data.rows.begin(), data.rows.end(),
                   [](const ExperimentRow& a, const ExperimentRow& b) { return a.start_unix_ns < b.start_unix_ns; });
  for (std::size_t i = 0; i < data.rows.size(); ++i) {
    data.rows[i].number = i;
    data.rows[i].metrics.resize(data.metrics.size());
    for (EpochResult& epoch : data.rows[i].epochs) epoch.metrics.resize(data.metrics.size());
  }
  return data;
}

Status add_row(const InputFile& file, const NamePattern& epoch_names, const PowerExperimentOptions& options,
               ExperimentRow row, ExperimentData& data) {
  const Result<TraceBytes> text = read_trace_file(file.path);
  if (!text) return text.error();
  const Result<PowerLog> log = parse_power_log(text->view(), file.path, options.utc_offset_s);
  if (!log) {
    row.state = RowState::failed;
    row.attempts = 1;
    row.diagnostics.add({"damaged_file", 1, log.error().message, ""});
    data.rows.push_back(std::move(row));
    return Done{};
  }
  text->report_damage(row.diagnostics);
  std::optional<EpochLog> epochs;
  if (!options.epoch_logs.empty()) {
    Result<EpochLog> read = read_epochs(file, epoch_names, options.utc_offset_s);
    if (read) {
      epochs = *std::move(read);
    } else if (options.pattern.empty()) {
      return std::move(read).error();
    } else {
      row.diagnostics.add({"epochs_missing", 1, read.error().message, read.error().remedy});
    }
  }
  Status added = RowBuilder(data).add(*log, epochs ? &*epochs : nullptr, std::move(row));
  return added ? Status(Done{}) : Status(std::move(added).error().with_context(file.path));
}

}  // namespace

Result<ExperimentData> read_power_experiment(const PowerExperimentOptions& options) {
  const Result<NamePattern> pattern = NamePattern::parse(options.pattern);
  if (!pattern) return pattern.error();
  const Result<NamePattern> epoch_names = NamePattern::parse(options.epoch_logs);
  if (!epoch_names) return epoch_names.error();
  const NamePattern* const names = options.pattern.empty() ? nullptr : &*pattern;
  const Result<std::vector<InputFile>> files = find_files(options, names);
  if (!files) return files.error();
  Result<std::vector<ExperimentFactor>> factors = factors_of(names);
  if (!factors) return std::move(factors).error();
  ExperimentData data;
  data.name = "nvidia-smi";
  data.factors = std::move(*factors);
  for (std::size_t i = 0; i < files->size(); ++i) {
    ExperimentRow row = row_of((*files)[i], names, i, data);
    if (Status added = add_row((*files)[i], *epoch_names, options, std::move(row), data); !added) {
      return std::move(added).error();
    }
  }
  return finish_experiment(std::move(data));
}

}  // namespace joulemap::ingest
