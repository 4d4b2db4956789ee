// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "predict/evaluation/score.h"
#include "predict/fit/table.h"
#include "predict/model/network_model.h"

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, 6> kNetworkColumns = {"parameters", "dtype",  "pass",
                                                             "source",     "time_s", "energy_j"};
constexpr std::array<std::string_view, 5> kListedOperationColumns = {"id", "kind", "parameters", "dtype", "pass"};
constexpr std::array<std::string_view, 8> kSettingColumns = {"network", "family", "package", "batch",
                                                             "size",    "dtype",  "pass",    "operations"};

// Value of `name` in "name=resnet50;package=torchvision;batch=8;size=224"; empty if absent.
std::string parameter_value(std::string_view parameters, std::string_view name) {
  const std::string name_prefix = fmt::format("{}=", name);
  while (!parameters.empty()) {
    const std::string_view pair = parameters.substr(0, parameters.find(';'));
    if (pair.starts_with(name_prefix)) return std::string(pair.substr(name_prefix.size()));
    parameters.remove_prefix(std::min(parameters.size(), pair.size() + 1));
  }
  return "";
}

// If a launch takes this factor longer than the fastest launch of its run, the host was disturbed.
constexpr double kMaxUndisturbedLaunchRatio = 1.25;
// If a step takes this factor longer than both its issue time and its GPU time, it was disturbed.
constexpr double kMaxUndisturbedStepRatio = 1.3;
// A step in which the GPU is busy for more than this fraction does not show the host's speed.
constexpr double kMinGpuBoundBusyShare = 0.9;
// If the host issues a step in less than this fraction of the step's time, it does not limit the step even if
// disturbed: no measured disturbance exceeded a factor of 2.
constexpr double kMaxIssueShareOfHostAhead = 0.5;
// A step whose issue time exceeds this fraction of its time is host-bound.
constexpr double kMinHostBoundIssueShare = 0.8;
// kMinCommonSettings: least number of rows of a run that share settings with other runs, to estimate the run's factor.
// kMedianPolishRounds: rounds of the median polish.
constexpr std::size_t kMinCommonSettings = 5;
constexpr int kMedianPolishRounds = 8;

// What a row of networks.csv shows about its host. Of the rows of a setting only those with the highest value count.
enum class HostTimingEvidence { nothing, launch_time_only, undisturbed_step };

struct SettingSums {
  double time_s = 0;
  double energy_j = 0;
  double issue_s = 0;
  double host_slowdown_sum = 0;
  double idle_w = 0;
  int idle_power_count = 0;
  int repeat_count = 0;
  HostTimingEvidence evidence = HostTimingEvidence::nothing;
};

using SecondsByKey = std::map<std::string, double, std::less<>>;
using SlowdownByRun = std::map<std::string, double, std::less<>>;
// Speed of hosts, by run (column slice).
struct HostSpeeds {
  SecondsByKey fastest_launch_by_run_s;  // fastest launch of each run, s
  SlowdownByRun step_slowdown_by_run;    // slowdown of a run's steps beyond that of its launches
  double fastest_launch_s = 1;           // fastest launch of all runs, s
};

SecondsByKey fastest_launches_by_run(const CsvTable& table) {
  SecondsByKey fastest_launch_by_run_s;
  for (const formats::CsvRecord& record : table.records) {
    const double launch_s = table.columns.number(record, "launch_s");
    if (!(launch_s > 0)) continue;
    const auto [launch_entry, is_new] =
        fastest_launch_by_run_s.try_emplace(table.columns.text(record, "slice"), launch_s);
    if (!is_new) launch_entry->second = std::min(launch_entry->second, launch_s);
  }
  return fastest_launch_by_run_s;
}

std::string network_setting_key(const CsvTable& table, const formats::CsvRecord& record) {
  const std::string& parameters = table.columns.text(record, "parameters");
  return fmt::format("{}/{} {}x{} {} {}", parameter_value(parameters, "package"), parameter_value(parameters, "name"),
                     parameter_value(parameters, "batch"), parameter_value(parameters, "size"),
                     table.columns.text(record, "dtype"), table.columns.text(record, "pass"));
}

// `busy_s`: GPU busy time, 0 if unknown.
HostTimingEvidence classify_host_timing_evidence(const CsvTable& table, const formats::CsvRecord& record,
                                                 double quickest_s, double busy_s) {
  const double launch_s = table.columns.number(record, "launch_s");
  const double issue_s = table.columns.number(record, "issue_s");
  if (!(launch_s > 0)) return HostTimingEvidence::nothing;
  // The collector searched for idle-host windows and found none.
  if (table.columns.text(record, "quiet_windows") == "0") return HostTimingEvidence::launch_time_only;
  const bool is_known = issue_s > 0 && busy_s > 0;
  const bool is_explained =
      !is_known || table.columns.number(record, "time_s") < kMaxUndisturbedStepRatio * std::max(issue_s, busy_s);
  return launch_s < kMaxUndisturbedLaunchRatio * quickest_s && is_explained ? HostTimingEvidence::undisturbed_step
                                                                            : HostTimingEvidence::launch_time_only;
}

double run_value_or(const SecondsByKey& value_by_run, std::string_view slice, double default_value) {
  const auto run_entry = value_by_run.find(slice);
  return run_entry == value_by_run.end() ? default_value : run_entry->second;
}

void add_row_to_setting_sums(SettingSums& sums, const CsvTable& table, const formats::CsvRecord& record,
                             const HostSpeeds& hosts, double busy_s) {
  const std::string& slice = table.columns.text(record, "slice");
  const HostTimingEvidence evidence =
      classify_host_timing_evidence(table, record, run_value_or(hosts.fastest_launch_by_run_s, slice, 0), busy_s);
  if (evidence < sums.evidence) return;
  if (evidence > sums.evidence) sums = {.evidence = evidence};
  const double launch_s = table.columns.number(record, "launch_s");
  sums.time_s += table.columns.number(record, "time_s");
  sums.energy_j += table.columns.number(record, "energy_j");
  sums.issue_s += table.columns.number(record, "issue_s");
  sums.host_slowdown_sum +=
      launch_s > 0 ? launch_s / hosts.fastest_launch_s * run_value_or(hosts.step_slowdown_by_run, slice, 1) : 1;
  if (const double idle_w = table.columns.number(record, "idle_w"); idle_w > 0) {
    sums.idle_w += idle_w;
    ++sums.idle_power_count;
  }
  ++sums.repeat_count;
}

double gpu_busy_s(const SecondsByKey& busy_s, std::string_view key) {
  const auto busy_entry = busy_s.find(key);
  return busy_entry == busy_s.end() ? 0 : busy_entry->second;
}

Result<SecondsByKey> read_gpu_busy_times(std::string_view csv) {
  SecondsByKey busy_s;
  if (csv.empty()) return busy_s;
  const Result<CsvTable> table = read_table(csv, std::array<std::string_view, 2>{"setting", "busy_s"});
  if (!table) return table.error();
  for (const formats::CsvRecord& record : table->records)
    busy_s[table->columns.text(record, "setting")] = table->columns.number(record, "busy_s");
  return busy_s;
}

// An undisturbed host-bound step of a setting in a run; its time in multiples of a launch.
struct HostBoundStep {
  std::string setting_key;
  std::string run_id;
  double log_launch_multiples = 0;  // natural logarithm of step time / launch time
};

std::vector<HostBoundStep> find_host_bound_steps(const CsvTable& table, const SecondsByKey& quickest_s,
                                                 const SecondsByKey& busy_s) {
  std::vector<HostBoundStep> rows;
  for (const formats::CsvRecord& record : table.records) {
    const std::string key = network_setting_key(table, record);
    const std::string& slice = table.columns.text(record, "slice");
    const double time_s = table.columns.number(record, "time_s");
    if (classify_host_timing_evidence(table, record, run_value_or(quickest_s, slice, 0), gpu_busy_s(busy_s, key)) !=
        HostTimingEvidence::undisturbed_step)
      continue;
    if (table.columns.number(record, "issue_s") < kMinHostBoundIssueShare * time_s) continue;
    rows.push_back({key, slice, std::log(time_s / table.columns.number(record, "launch_s"))});
  }
  return rows;
}

// Launch times alone do not give the speed of a host. Settings that several runs measured give the rest: a median
// polish (Tukey) separates the effects of settings and runs.
SlowdownByRun estimate_step_slowdowns(const std::vector<HostBoundStep>& rows) {
  std::map<std::string, double> setting_effects;
  std::map<std::string, double> run_effects;
  for (int round = 0; round < kMedianPolishRounds; ++round) {
    std::map<std::string, std::vector<double>> residuals_by_setting;
    std::map<std::string, std::vector<double>> residuals_by_run;
    for (const HostBoundStep& row : rows)
      residuals_by_setting[row.setting_key].push_back(row.log_launch_multiples - run_effects[row.run_id]);
    for (const auto& [key, values] : residuals_by_setting) setting_effects[key] = quantile(values, 0.5);
    for (const HostBoundStep& row : rows) {
      if (residuals_by_setting[row.setting_key].size() > 1)
        residuals_by_run[row.run_id].push_back(row.log_launch_multiples - setting_effects[row.setting_key]);
    }
    for (const auto& [slice, values] : residuals_by_run) {
      if (values.size() >= kMinCommonSettings) run_effects[slice] = quantile(values, 0.5);
    }
  }
  SlowdownByRun factors;
  for (const auto& [slice, effect] : run_effects) factors[slice] = std::exp(effect);
  return factors;
}

HostSpeeds measure_host_speeds(const CsvTable& table, const SecondsByKey& busy_s, double fastest_launch_s) {
  HostSpeeds hosts{.fastest_launch_by_run_s = fastest_launches_by_run(table)};
  for (const auto& [slice, launch_s] : hosts.fastest_launch_by_run_s)
    hosts.fastest_launch_s = std::min(hosts.fastest_launch_s, launch_s);
  if (fastest_launch_s > 0) hosts.fastest_launch_s = fastest_launch_s;
  hosts.step_slowdown_by_run =
      estimate_step_slowdowns(find_host_bound_steps(table, hosts.fastest_launch_by_run_s, busy_s));
  return hosts;
}

std::map<std::string, SettingSums> sum_by_setting(const CsvTable& table, const HostSpeeds& hosts,
                                                  const SecondsByKey& busy_s) {
  std::map<std::string, SettingSums> measured;
  for (const formats::CsvRecord& record : table.records) {
    const std::string key = network_setting_key(table, record);
    add_row_to_setting_sums(measured[key], table, record, hosts, gpu_busy_s(busy_s, key));
  }
  return measured;
}

Result<std::vector<std::pair<std::size_t, double>>> parse_operation_counts(const std::string& text,
                                                                           std::size_t operations) {
  std::vector<std::pair<std::size_t, double>> counts;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    char* end = nullptr;
    const std::size_t index = std::strtoul(word.c_str(), &end, 10);
    if (*end != ':' || index >= operations)
      return Error{ErrorCode::malformed, fmt::format("\"{}\" is not an operation", word), ""};
    counts.emplace_back(index, std::strtod(end + 1, nullptr));
  }
  return counts;
}

}  // namespace

Result<NetworkTable> parse_measured_networks(const NetworkCsvTexts& texts, double fastest_launch_s) {
  const Result<SecondsByKey> busy_s = read_gpu_busy_times(texts.busy);
  if (!busy_s) return busy_s.error();
  const Result<CsvTable> rows = read_table(texts.networks, kNetworkColumns);
  if (!rows) return rows.error();
  const HostSpeeds hosts = measure_host_speeds(*rows, *busy_s, fastest_launch_s);
  const std::map<std::string, SettingSums> measured = sum_by_setting(*rows, hosts, *busy_s);
  const Result<CsvTable> operation_table = read_table(texts.operations, kListedOperationColumns);
  if (!operation_table) return operation_table.error();
  NetworkTable table;
  table.fastest_launch_s = hosts.fastest_launch_by_run_s.empty() ? 0 : hosts.fastest_launch_s;
  for (const formats::CsvRecord& record : operation_table->records) {
    Result<Operation> operation = parse_operation(operation_table->columns, record);
    if (!operation) return std::move(operation).error();
    table.operations.push_back(std::move(*operation));
  }
  const Result<CsvTable> lines = read_table(texts.settings, kSettingColumns);
  if (!lines) return lines.error();
  for (const formats::CsvRecord& record : lines->records) {
    const auto text = [&](std::string_view name) -> const std::string& { return lines->columns.text(record, name); };
    const std::string key = fmt::format("{}/{} {}x{} {} {}", text("package"), text("network"), text("batch"),
                                        text("size"), text("dtype"), text("pass"));
    const auto setting_entry = measured.find(key);
    if (setting_entry == measured.end()) continue;
    Result<std::vector<std::pair<std::size_t, double>>> counts =
        parse_operation_counts(text("operations"), table.operations.size());
    if (!counts) return std::move(counts).error();
    const auto is_unknown = [&](const auto& counted_operation) {
      return table.operations[counted_operation.first].kind == Kind::unknown;
    };
    if (std::any_of(counts->begin(), counts->end(), is_unknown)) {
      table.excluded_settings.push_back(key);
      continue;
    }
    const SettingSums& sums = setting_entry->second;
    const double repeats = sums.repeat_count;
    const std::string setting =
        fmt::format("{}|{}|{}|{}|{}", text("network"), text("batch"), text("size"), text("dtype"), text("pass"));
    const double gpu_s = gpu_busy_s(*busy_s, key);
    // A disturbed host that issues far ahead of the GPU does not limit the step.
    const bool was_host_ahead =
        gpu_s == 0 && sums.issue_s > 0 && sums.issue_s < kMaxIssueShareOfHostAhead * sums.time_s;
    const bool is_step_undisturbed = sums.evidence >= HostTimingEvidence::undisturbed_step;
    if (!is_step_undisturbed && !was_host_ahead && gpu_s < kMinGpuBoundBusyShare * sums.time_s / repeats) {
      table.disturbed_settings.push_back(setting);
      continue;
    }
    table.networks.push_back({text("network"),
                              text("family"),
                              setting,
                              text("pass") == "training",
                              sums.time_s / repeats,
                              sums.energy_j / repeats,
                              gpu_s,
                              is_step_undisturbed ? sums.issue_s / repeats : 0,
                              {sums.host_slowdown_sum / repeats, 0},
                              sums.idle_w / std::max(1, sums.idle_power_count),
                              lines->columns.number(record, "python_calls"),
                              std::move(*counts)});
  }
  return table;
}

Result<NoiseFloor> compute_network_noise_floor(std::string_view networks, std::string_view busy) {
  const Result<CsvTable> table = read_table(networks, kNetworkColumns);
  if (!table) return table.error();
  const Result<SecondsByKey> busy_s = read_gpu_busy_times(busy);
  if (!busy_s) return busy_s.error();
  const SecondsByKey quickest_s = fastest_launches_by_run(*table);
  RepeatedMeasurements repeats;
  for (const formats::CsvRecord& record : table->records) {
    const std::string key = network_setting_key(*table, record);
    const double fastest_launch_s = run_value_or(quickest_s, table->columns.text(record, "slice"), 0);
    if (classify_host_timing_evidence(*table, record, fastest_launch_s, gpu_busy_s(*busy_s, key)) !=
        HostTimingEvidence::undisturbed_step)
      continue;
    repeats[key].emplace_back(table->columns.number(record, "time_s"), table->columns.number(record, "energy_j"));
  }
  return compute_noise_floor(repeats);
}

}  // namespace joulemap::predict
