// SPDX-License-Identifier: Apache-2.0
#include "ingest/prengdl/prengdl.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kMeasurementFolderPrefix = "measurements_";
constexpr std::string_view kPerfFileMarker = "_perf";
constexpr std::string_view kNvidiaSmiFileMarker = "_nvidia_smi";
constexpr std::size_t kMaxFile = std::size_t{64} << 20;
constexpr double kPublishedSamplePeriod_s = 1;  // between samples, by the study's run.sh: nvidia-smi --loop-ms=1000

// The last separator is the decimal one; earlier ones separate thousands.
std::optional<double> parse_grouped_number(std::string_view text) {
  const std::size_t decimal_position = text.find_last_of(".,");
  std::string ungrouped_number;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == decimal_position) {
      ungrouped_number += '.';
    } else if (text[i] != ',' && text[i] != '.' && text[i] != '\'') {
      ungrouped_number += text[i];
    }
  }
  return parse_double(ungrouped_number);
}

// The parts of a file name: "mask_rcnn_PyTorch_perf_7.txt".
struct ParsedFileName {
  std::string model;
  std::string framework;
  std::size_t repetition = 0;
  bool is_perf_file = false;
};

std::optional<ParsedFileName> parse_measurement_file_name(std::string_view name) {
  if (!name.ends_with(".txt")) return std::nullopt;
  name.remove_suffix(4);
  const std::size_t repetition_separator = name.rfind('_');
  if (repetition_separator == std::string_view::npos) return std::nullopt;
  const std::optional<std::uint64_t> repetition = parse_u64(name.substr(repetition_separator + 1));
  if (!repetition || *repetition == 0) return std::nullopt;
  name = name.substr(0, repetition_separator);
  ParsedFileName parsed;
  parsed.repetition = *repetition;
  parsed.is_perf_file = name.ends_with(kPerfFileMarker);
  if (!parsed.is_perf_file && !name.ends_with(kNvidiaSmiFileMarker)) return std::nullopt;
  name.remove_suffix(parsed.is_perf_file ? kPerfFileMarker.size() : kNvidiaSmiFileMarker.size());
  const std::size_t framework_separator = name.rfind('_');
  if (framework_separator == std::string_view::npos || framework_separator == 0 ||
      framework_separator + 1 == name.size())
    return std::nullopt;
  parsed.model = name.substr(0, framework_separator);
  parsed.framework = name.substr(framework_separator + 1);
  return parsed;
}

// Paths of the two files of one execution; empty if missing.
struct MeasurementFiles {
  std::string perf_path;
  std::string nvidia_smi_path;
};
using MeasurementKey =
    std::tuple<std::string, std::string, std::string, std::size_t>;  // phase, model, framework, repetition
using MeasurementFilesByKey = std::map<MeasurementKey, MeasurementFiles>;

Status collect_measurement_files(const std::string& folder, const std::string& phase,
                                 MeasurementFilesByKey& files_by_key) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const std::optional<ParsedFileName> parsed = parse_measurement_file_name(name);
    if (!parsed) continue;
    MeasurementFiles& execution = files_by_key[{phase, parsed->model, parsed->framework, parsed->repetition}];
    (parsed->is_perf_file ? execution.perf_path : execution.nvidia_smi_path) = folder + "/" + name;
  }
  return Done{};
}

Result<MeasurementFilesByKey> find_measurement_files(const std::string& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return names.error();
  MeasurementFilesByKey files_by_key;
  for (const std::string& name : *names) {
    if (!name.starts_with(kMeasurementFolderPrefix)) continue;
    if (Status collection_status =
            collect_measurement_files(folder + "/" + name, name.substr(kMeasurementFolderPrefix.size()), files_by_key);
        !collection_status) {
      return std::move(collection_status).error();
    }
  }
  // The folder may contain the files of one phase directly.
  if (files_by_key.empty()) {
    const std::string name = folder.substr(folder.find_last_of('/') + 1);
    const std::string phase =
        name.starts_with(kMeasurementFolderPrefix) ? name.substr(kMeasurementFolderPrefix.size()) : name;
    if (Status collection_status = collect_measurement_files(folder, phase.empty() ? "run" : phase, files_by_key);
        !collection_status) {
      return std::move(collection_status).error();
    }
  }
  if (!files_by_key.empty()) return files_by_key;
  return Error{ErrorCode::not_found, fmt::format("{} contains no files MODEL_FRAMEWORK_perf_REP.txt", folder),
               "pass the folder that contains measurements_train and measurements_inference"};
}

DomainEnergy make_domain_energy(std::string name, std::optional<double> joules, double elapsed_s, std::string sensor) {
  DomainEnergy domain;
  domain.name = std::move(name);
  domain.joules = joules;
  domain.is_counted = true;
  domain.sensor = std::move(sensor);
  domain.channel = domain.name;
  if (joules) domain.provenance = Provenance::measured;
  if (joules && elapsed_s > 0) domain.mean_w = *joules / elapsed_s;
  if (!joules) domain.reason = "the file does not contain it";
  return domain;
}

Result<std::string> read_published_file(const std::string& path, std::string_view measurement_name) {
  if (path.empty()) return Error{ErrorCode::not_found, fmt::format("the file of {} is missing", measurement_name), ""};
  return read_file_start(path, kMaxFile);
}

void read_perf_counters(const std::string& path, ExperimentRow& row) {
  PerfEnergies energies;
  if (const Result<std::string> text = read_published_file(path, "perf")) {
    energies = parse_perf_energies(*text);
    if (!energies.elapsed_s || !energies.package_j || !energies.dram_j) {
      row.diagnostics.add({"damaged_file", 1, fmt::format("{} does not contain time, package and RAM", path), ""});
    }
  } else {
    row.diagnostics.add({"missing_file", 1, text.error().message, ""});
  }
  row.elapsed_s = energies.elapsed_s;
  const double elapsed_s = energies.elapsed_s.value_or(0);
  row.domains.push_back(make_domain_energy("package", energies.package_j, elapsed_s, "perf"));
  row.domains.push_back(make_domain_energy("dram", energies.dram_j, elapsed_s, "perf"));
}

void read_gpu_samples(const std::string& path, ExperimentRow& row) {
  PowerSamples samples;
  if (const Result<std::string> text = read_published_file(path, "nvidia-smi")) {
    samples = parse_power_samples(*text);
    if (samples.unreadable_line_count > 0) {
      row.diagnostics.add({"samples_dropped", samples.unreadable_line_count,
                           fmt::format("lines of {} are not power values", path), ""});
    }
    if (samples.watts.empty())
      row.diagnostics.add({"damaged_file", 1, fmt::format("{} contains no power values", path), ""});
  } else {
    row.diagnostics.add({"missing_file", 1, text.error().message, ""});
  }
  std::optional<double> joules;
  const double sum_w = std::accumulate(samples.watts.begin(), samples.watts.end(), 0.0);
  if (!samples.watts.empty() && row.elapsed_s) {
    joules = sum_w / static_cast<double>(samples.watts.size()) * *row.elapsed_s;
    row.first.measured = MeasuredWatts(samples.watts.front());
  }
  DomainEnergy gpu = make_domain_energy("gpu0", joules, row.elapsed_s.value_or(0), "nvidia-smi");
  if (joules) gpu.checks.push_back({"nvidia-smi", "sum of samples", sum_w * kPublishedSamplePeriod_s, 0});
  row.domains.push_back(std::move(gpu));
}

ExperimentRow read_measurement_row(const MeasurementFiles& execution) {
  ExperimentRow row;
  read_perf_counters(execution.perf_path, row);
  read_gpu_samples(execution.nvidia_smi_path, row);
  row.state = row.elapsed_s ? ExperimentRowState::done : ExperimentRowState::failed;
  row.attempts = 1;
  return row;
}

std::size_t find_or_add_factor_level(ExperimentFactor& factor, const std::string& level) {
  const auto matching_level = std::find(factor.levels.begin(), factor.levels.end(), level);
  const auto index = static_cast<std::size_t>(matching_level - factor.levels.begin());
  if (matching_level == factor.levels.end()) factor.levels.push_back(level);
  return index;
}

}  // namespace

PerfEnergies parse_perf_energies(std::string_view text) {
  PerfEnergies energies;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = split_whitespace(line);
    if (words.size() < 3) continue;
    if (words[1] == "Joules" && words[2] == "power/energy-pkg/") energies.package_j = parse_grouped_number(words[0]);
    if (words[1] == "Joules" && words[2] == "power/energy-ram/") energies.dram_j = parse_grouped_number(words[0]);
    if (words[1] == "seconds" && words[2] == "time") energies.elapsed_s = parse_grouped_number(words[0]);
  }
  return energies;
}

PowerSamples parse_power_samples(std::string_view text) {
  PowerSamples samples;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = split_whitespace(line);
    if (words.empty() || words[0].starts_with("power.draw")) continue;
    const std::optional<double> watts = words.size() <= 2 ? parse_double(words[0]) : std::nullopt;
    if (watts && *watts >= 0) {
      samples.watts.push_back(*watts);
    } else {
      ++samples.unreadable_line_count;
    }
  }
  return samples;
}

Result<ExperimentData> read_prengdl(const std::string& folder) {
  std::string path = folder;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const Result<MeasurementFilesByKey> files_by_key = find_measurement_files(path);
  if (!files_by_key) return files_by_key.error();
  ExperimentData data;
  data.name = "prengdl";
  data.factors = {{"phase", {}, false}, {"model", {}, false}, {"framework", {}, true}};
  for (const auto& [key, execution] : *files_by_key) {
    ExperimentRow row = read_measurement_row(execution);
    row.number = data.rows.size();
    row.levels = {find_or_add_factor_level(data.factors[0], std::get<0>(key)),
                  find_or_add_factor_level(data.factors[1], std::get<1>(key)),
                  find_or_add_factor_level(data.factors[2], std::get<2>(key))};
    row.block = std::get<3>(key) - 1;
    data.rows.push_back(std::move(row));
  }
  data.diagnostics.add({"order_assumed", 1,
                        "the files contain no times: rows are in the order of the study's script, with all repetitions "
                        "of a model and framework in sequence",
                        ""});
  return data;
}

}  // namespace joulemap::ingest
