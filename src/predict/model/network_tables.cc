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

constexpr std::array<std::string_view, 6> kOfNetworks = {"parameters", "dtype", "pass", "source", "time_s", "energy_j"};
constexpr std::array<std::string_view, 5> kOfOperations = {"id", "kind", "parameters", "dtype", "pass"};
constexpr std::array<std::string_view, 8> kOfSettings = {"network", "family", "package", "batch",
                                                         "size",    "dtype",  "pass",    "operations"};

// Value of `name` in "name=resnet50;package=torchvision;batch=8;size=224"; empty if absent.
std::string part_of(std::string_view parameters, std::string_view name) {
  const std::string wanted = fmt::format("{}=", name);
  while (!parameters.empty()) {
    const std::string_view pair = parameters.substr(0, parameters.find(';'));
    if (pair.starts_with(wanted)) return std::string(pair.substr(wanted.size()));
    parameters.remove_prefix(std::min(parameters.size(), pair.size() + 1));
  }
  return "";
}

// If a launch takes this factor longer than the fastest launch of its run, the host was disturbed.
constexpr double kUndisturbed = 1.25;
// If a step takes this factor longer than both its issue time and its GPU time, it was disturbed.
constexpr double kExplained = 1.3;
// A step in which the GPU is busy for more than this fraction does not show the host's speed.
constexpr double kBusy = 0.9;
// If the host issues a step in less than this fraction of the step's time, it does not limit the step even if
// disturbed: no measured disturbance exceeded a factor of 2.
constexpr double kAhead = 0.5;
// A step whose issue time exceeds this fraction of its time is host-bound.
constexpr double kWaits = 0.8;
// kMinCommon: least number of rows of a run that share settings with other runs, to estimate the run's factor.
// kPolishes: rounds of the median polish.
constexpr std::size_t kMinCommon = 5;
constexpr int kPolishes = 8;

// What a row of networks.csv shows about its host. Of the rows of a setting only those with the highest value count.
enum class HostEvidence { nothing, speed, undisturbed };

struct Sums {
  double time_s = 0;
  double energy_j = 0;
  double issue_s = 0;
  double host_factor = 0;
  double idle_w = 0;
  int idle_count = 0;
  int repeats = 0;
  HostEvidence evidence = HostEvidence::nothing;
};

using Seconds = std::map<std::string, double, std::less<>>;
using Factors = std::map<std::string, double, std::less<>>;
// Speed of hosts, by run (column slice).
struct Hosts {
  Seconds quickest_s;    // fastest launch of each run, s
  Factors step_factors;  // slowdown of a run's steps beyond that of its launches
  double fastest_s = 1;  // fastest launch of all runs, s
};

Seconds quickest_launches(const CsvTable& table) {
  Seconds quickest;
  for (const formats::CsvRecord& record : table.records) {
    const double launch_s = table.columns.number(record, "launch_s");
    if (!(launch_s > 0)) continue;
    const auto [at, is_new] = quickest.try_emplace(table.columns.text(record, "slice"), launch_s);
    if (!is_new) at->second = std::min(at->second, launch_s);
  }
  return quickest;
}

std::string key_of(const CsvTable& table, const formats::CsvRecord& record) {
  const std::string& parameters = table.columns.text(record, "parameters");
  return fmt::format("{}/{} {}x{} {} {}", part_of(parameters, "package"), part_of(parameters, "name"),
                     part_of(parameters, "batch"), part_of(parameters, "size"), table.columns.text(record, "dtype"),
                     table.columns.text(record, "pass"));
}

// `busy_s`: GPU busy time, 0 if unknown.
HostEvidence host_evidence_of(const CsvTable& table, const formats::CsvRecord& record, double quickest_s,
                              double busy_s) {
  const double launch_s = table.columns.number(record, "launch_s");
  const double issue_s = table.columns.number(record, "issue_s");
  if (!(launch_s > 0)) return HostEvidence::nothing;
  // The collector searched for idle-host windows and found none.
  if (table.columns.text(record, "quiet_windows") == "0") return HostEvidence::speed;
  const bool is_known = issue_s > 0 && busy_s > 0;
  const bool is_explained =
      !is_known || table.columns.number(record, "time_s") < kExplained * std::max(issue_s, busy_s);
  return launch_s < kUndisturbed * quickest_s && is_explained ? HostEvidence::undisturbed : HostEvidence::speed;
}

double of_run(const Seconds& by_run, std::string_view slice, double otherwise) {
  const auto at = by_run.find(slice);
  return at == by_run.end() ? otherwise : at->second;
}

void add_row(Sums& sums, const CsvTable& table, const formats::CsvRecord& record, const Hosts& hosts, double busy_s) {
  const std::string& slice = table.columns.text(record, "slice");
  const HostEvidence evidence = host_evidence_of(table, record, of_run(hosts.quickest_s, slice, 0), busy_s);
  if (evidence < sums.evidence) return;
  if (evidence > sums.evidence) sums = {.evidence = evidence};
  const double launch_s = table.columns.number(record, "launch_s");
  sums.time_s += table.columns.number(record, "time_s");
  sums.energy_j += table.columns.number(record, "energy_j");
  sums.issue_s += table.columns.number(record, "issue_s");
  sums.host_factor += launch_s > 0 ? launch_s / hosts.fastest_s * of_run(hosts.step_factors, slice, 1) : 1;
  if (const double idle_w = table.columns.number(record, "idle_w"); idle_w > 0) {
    sums.idle_w += idle_w;
    ++sums.idle_count;
  }
  ++sums.repeats;
}

double busy_of(const Seconds& busy_s, std::string_view key) {
  const auto at = busy_s.find(key);
  return at == busy_s.end() ? 0 : at->second;
}

Result<Seconds> read_busy(std::string_view csv) {
  Seconds busy_s;
  if (csv.empty()) return busy_s;
  const Result<CsvTable> table = read_table(csv, std::array<std::string_view, 2>{"setting", "busy_s"});
  if (!table) return table.error();
  for (const formats::CsvRecord& record : table->records)
    busy_s[table->columns.text(record, "setting")] = table->columns.number(record, "busy_s");
  return busy_s;
}

// An undisturbed host-bound step of a setting in a run; its time in multiples of a launch.
struct Waited {
  std::string key;
  std::string slice;
  double launches = 0;  // natural logarithm of step time / launch time
};

std::vector<Waited> all_waited(const CsvTable& table, const Seconds& quickest_s, const Seconds& busy_s) {
  std::vector<Waited> rows;
  for (const formats::CsvRecord& record : table.records) {
    const std::string key = key_of(table, record);
    const std::string& slice = table.columns.text(record, "slice");
    const double time_s = table.columns.number(record, "time_s");
    if (host_evidence_of(table, record, of_run(quickest_s, slice, 0), busy_of(busy_s, key)) !=
        HostEvidence::undisturbed)
      continue;
    if (table.columns.number(record, "issue_s") < kWaits * time_s) continue;
    rows.push_back({key, slice, std::log(time_s / table.columns.number(record, "launch_s"))});
  }
  return rows;
}

// Launch times alone do not give the speed of a host. Settings that several runs measured give the rest: a median
// polish (Tukey) separates the effects of settings and runs.
Factors step_factors(const std::vector<Waited>& rows) {
  std::map<std::string, double> of_setting;
  std::map<std::string, double> of_slice;
  for (int round = 0; round < kPolishes; ++round) {
    std::map<std::string, std::vector<double>> by_setting;
    std::map<std::string, std::vector<double>> by_slice;
    for (const Waited& row : rows) by_setting[row.key].push_back(row.launches - of_slice[row.slice]);
    for (const auto& [key, values] : by_setting) of_setting[key] = quantile(values, 0.5);
    for (const Waited& row : rows) {
      if (by_setting[row.key].size() > 1) by_slice[row.slice].push_back(row.launches - of_setting[row.key]);
    }
    for (const auto& [slice, values] : by_slice) {
      if (values.size() >= kMinCommon) of_slice[slice] = quantile(values, 0.5);
    }
  }
  Factors factors;
  for (const auto& [slice, effect] : of_slice) factors[slice] = std::exp(effect);
  return factors;
}

Hosts hosts_of(const CsvTable& table, const Seconds& busy_s, double fastest_launch_s) {
  Hosts hosts{.quickest_s = quickest_launches(table)};
  for (const auto& [slice, launch_s] : hosts.quickest_s) hosts.fastest_s = std::min(hosts.fastest_s, launch_s);
  if (fastest_launch_s > 0) hosts.fastest_s = fastest_launch_s;
  hosts.step_factors = step_factors(all_waited(table, hosts.quickest_s, busy_s));
  return hosts;
}

std::map<std::string, Sums> measured_settings(const CsvTable& table, const Hosts& hosts, const Seconds& busy_s) {
  std::map<std::string, Sums> measured;
  for (const formats::CsvRecord& record : table.records) {
    const std::string key = key_of(table, record);
    add_row(measured[key], table, record, hosts, busy_of(busy_s, key));
  }
  return measured;
}

Result<std::vector<std::pair<std::size_t, double>>> counts_of(const std::string& text, std::size_t operations) {
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

Result<NetworkTable> parse_network_tables(const NetworkCsvTexts& texts, double fastest_launch_s) {
  const Result<Seconds> busy_s = read_busy(texts.busy);
  if (!busy_s) return busy_s.error();
  const Result<CsvTable> rows = read_table(texts.networks, kOfNetworks);
  if (!rows) return rows.error();
  const Hosts hosts = hosts_of(*rows, *busy_s, fastest_launch_s);
  const std::map<std::string, Sums> measured = measured_settings(*rows, hosts, *busy_s);
  const Result<CsvTable> listed = read_table(texts.operations, kOfOperations);
  if (!listed) return listed.error();
  NetworkTable table;
  table.fastest_launch_s = hosts.quickest_s.empty() ? 0 : hosts.fastest_s;
  for (const formats::CsvRecord& record : listed->records) {
    Result<Operation> operation = parse_operation(listed->columns, record);
    if (!operation) return std::move(operation).error();
    table.operations.push_back(std::move(*operation));
  }
  const Result<CsvTable> lines = read_table(texts.settings, kOfSettings);
  if (!lines) return lines.error();
  for (const formats::CsvRecord& record : lines->records) {
    const auto text = [&](std::string_view name) -> const std::string& { return lines->columns.text(record, name); };
    const std::string key = fmt::format("{}/{} {}x{} {} {}", text("package"), text("network"), text("batch"),
                                        text("size"), text("dtype"), text("pass"));
    const auto at = measured.find(key);
    if (at == measured.end()) continue;
    Result<std::vector<std::pair<std::size_t, double>>> counts = counts_of(text("operations"), table.operations.size());
    if (!counts) return std::move(counts).error();
    const auto is_unknown = [&](const auto& counted) { return table.operations[counted.first].kind == Kind::unknown; };
    if (std::any_of(counts->begin(), counts->end(), is_unknown)) {
      table.unknown.push_back(key);
      continue;
    }
    const Sums& sums = at->second;
    const double repeats = sums.repeats;
    const std::string setting =
        fmt::format("{}|{}|{}|{}|{}", text("network"), text("batch"), text("size"), text("dtype"), text("pass"));
    const double gpu_s = busy_of(*busy_s, key);
    // A disturbed host that issues far ahead of the GPU does not limit the step.
    const bool was_ahead = gpu_s == 0 && sums.issue_s > 0 && sums.issue_s < kAhead * sums.time_s;
    const bool undisturbed = sums.evidence >= HostEvidence::undisturbed;
    if (!undisturbed && !was_ahead && gpu_s < kBusy * sums.time_s / repeats) {
      table.disturbed.push_back(setting);
      continue;
    }
    table.networks.push_back({text("network"),
                              text("family"),
                              setting,
                              text("pass") == "training",
                              sums.time_s / repeats,
                              sums.energy_j / repeats,
                              gpu_s,
                              undisturbed ? sums.issue_s / repeats : 0,
                              {sums.host_factor / repeats, 0},
                              sums.idle_w / std::max(1, sums.idle_count),
                              lines->columns.number(record, "python_calls"),
                              std::move(*counts)});
  }
  return table;
}

Result<NoiseFloor> network_noise_floor(std::string_view networks, std::string_view busy) {
  const Result<CsvTable> table = read_table(networks, kOfNetworks);
  if (!table) return table.error();
  const Result<Seconds> busy_s = read_busy(busy);
  if (!busy_s) return busy_s.error();
  const Seconds quickest_s = quickest_launches(*table);
  RepeatedMeasurements repeats;
  for (const formats::CsvRecord& record : table->records) {
    const std::string key = key_of(*table, record);
    const double own_s = of_run(quickest_s, table->columns.text(record, "slice"), 0);
    if (host_evidence_of(*table, record, own_s, busy_of(*busy_s, key)) != HostEvidence::undisturbed) continue;
    repeats[key].emplace_back(table->columns.number(record, "time_s"), table->columns.number(record, "energy_j"));
  }
  return noise_floor(repeats);
}

}  // namespace joulemap::predict
