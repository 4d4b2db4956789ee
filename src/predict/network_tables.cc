// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "predict/network_model.h"
#include "predict/table.h"

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, 6> kOfNetworks = {"parameters", "dtype", "pass", "source", "time_s", "energy_j"};
constexpr std::array<std::string_view, 5> kOfOperations = {"id", "kind", "parameters", "dtype", "pass"};
constexpr std::array<std::string_view, 8> kOfSettings = {"network", "family", "package", "batch",
                                                         "size",    "dtype",  "pass",    "operations"};

// "name=resnet50;package=torchvision;batch=8;size=224"
std::string part_of(std::string_view parameters, std::string_view name) {
  const std::string wanted = fmt::format("{}=", name);
  while (!parameters.empty()) {
    const std::string_view pair = parameters.substr(0, parameters.find(';'));
    if (pair.starts_with(wanted)) return std::string(pair.substr(wanted.size()));
    parameters.remove_prefix(std::min(parameters.size(), pair.size() + 1));
  }
  return "";
}

// A launch that takes so much longer than the fastest of its run found the host disturbed.
constexpr double kUndisturbed = 1.25;
// A step that takes so much longer than both the host to issue it and the GPU to compute it was disturbed meanwhile.
constexpr double kExplained = 1.3;
// A step in which the GPU is busy for more of the time tells nothing of the host.
constexpr double kBusy = 0.9;
// Of the time of a step, for a host that needs no more for launching it: none was ever slowed down by more than 2.
constexpr double kAhead = 0.5;

struct Sums {
  double time_s = 0;
  double energy_j = 0;
  double issue_s = 0;
  double host_factor = 0;
  int repeats = 0;
  bool tells = false;        // how fast the host was
  bool undisturbed = false;  // all of them; then what else was measured of the setting does not count
};

// Seconds of a launch: the quickest of a run, and of all runs.
struct HostSpeed {
  double quickest_s = 0;
  double fastest_s = 1;
};
using Seconds = std::map<std::string, double, std::less<>>;

Seconds quickest_launches(const Table& table) {
  Seconds quickest;
  for (const formats::CsvRecord& record : table.records) {
    const double launch_s = table.columns.number(record, "launch_s");
    if (!(launch_s > 0)) continue;
    const auto [at, is_new] = quickest.try_emplace(table.columns.text(record, "slice"), launch_s);
    if (!is_new) at->second = std::min(at->second, launch_s);
  }
  return quickest;
}

std::string key_of(const Table& table, const formats::CsvRecord& record) {
  const std::string& told = table.columns.text(record, "parameters");
  return fmt::format("{}/{} {}x{} {} {}", part_of(told, "package"), part_of(told, "name"), part_of(told, "batch"),
                     part_of(told, "size"), table.columns.text(record, "dtype"), table.columns.text(record, "pass"));
}

// `busy_s`: of the GPU, 0 where not known.
bool is_undisturbed(const Table& table, const formats::CsvRecord& record, double quickest_s, double busy_s) {
  const double launch_s = table.columns.number(record, "launch_s");
  const double issue_s = table.columns.number(record, "issue_s");
  if (!(launch_s > 0) || launch_s >= kUndisturbed * quickest_s) return false;
  const bool is_known = issue_s > 0 && busy_s > 0;
  return !is_known || table.columns.number(record, "time_s") < kExplained * std::max(issue_s, busy_s);
}

void add_row(Sums& sums, const Table& table, const formats::CsvRecord& record, const HostSpeed& host, double busy_s) {
  const double launch_s = table.columns.number(record, "launch_s");
  const bool undisturbed = is_undisturbed(table, record, host.quickest_s, busy_s);
  if (sums.undisturbed && !undisturbed) return;
  // What does not tell how long the host needed counts where nothing else was measured.
  const bool tells = launch_s > 0;
  if (sums.tells && !tells) return;
  if ((undisturbed && !sums.undisturbed) || (tells && !sums.tells)) sums = {.tells = tells, .undisturbed = undisturbed};
  sums.time_s += table.columns.number(record, "time_s");
  sums.energy_j += table.columns.number(record, "energy_j");
  sums.issue_s += table.columns.number(record, "issue_s");
  sums.host_factor += launch_s > 0 ? launch_s / host.fastest_s : 1;
  ++sums.repeats;
}

double busy_of(const Seconds& busy_s, std::string_view key) {
  const auto at = busy_s.find(key);
  return at == busy_s.end() ? 0 : at->second;
}

Result<Seconds> read_busy(std::string_view csv) {
  Seconds busy_s;
  if (csv.empty()) return busy_s;
  const Result<Table> told = read_table(csv, std::array<std::string_view, 2>{"setting", "busy_s"});
  if (!told) return told.error();
  for (const formats::CsvRecord& record : told->records)
    busy_s[told->columns.text(record, "setting")] = told->columns.number(record, "busy_s");
  return busy_s;
}

Result<std::map<std::string, Sums>> measured_settings(std::string_view csv, const Seconds& busy_s) {
  const Result<Table> table = read_table(csv, kOfNetworks);
  if (!table) return table.error();
  const Seconds quickest = quickest_launches(*table);
  HostSpeed host;
  for (const auto& [slice, launch_s] : quickest) host.fastest_s = std::min(host.fastest_s, launch_s);
  std::map<std::string, Sums> measured;
  for (const formats::CsvRecord& record : table->records) {
    const auto run = quickest.find(table->columns.text(record, "slice"));
    host.quickest_s = run == quickest.end() ? 0 : run->second;
    const std::string key = key_of(*table, record);
    add_row(measured[key], *table, record, host, busy_of(busy_s, key));
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
      return Error{ErrorCode::malformed, fmt::format("\"{}\" is no operation", word), ""};
    counts.emplace_back(index, std::strtod(end + 1, nullptr));
  }
  return counts;
}

}  // namespace

Result<NetworkTable> read_networks_tables(std::string_view networks, std::string_view busy, std::string_view operations,
                                          std::string_view settings) {
  const Result<Seconds> busy_s = read_busy(busy);
  if (!busy_s) return busy_s.error();
  const Result<std::map<std::string, Sums>> measured = measured_settings(networks, *busy_s);
  if (!measured) return measured.error();
  const Result<Table> listed = read_table(operations, kOfOperations);
  if (!listed) return listed.error();
  NetworkTable table;
  for (const formats::CsvRecord& record : listed->records) {
    Result<Operation> operation = operation_of(listed->columns, record);
    if (!operation) return std::move(operation).error();
    table.operations.push_back(std::move(*operation));
  }
  const Result<Table> lines = read_table(settings, kOfSettings);
  if (!lines) return lines.error();
  for (const formats::CsvRecord& record : lines->records) {
    const auto text = [&](std::string_view name) -> const std::string& { return lines->columns.text(record, name); };
    const std::string key = fmt::format("{}/{} {}x{} {} {}", text("package"), text("network"), text("batch"),
                                        text("size"), text("dtype"), text("pass"));
    const auto at = measured->find(key);
    if (at == measured->end()) continue;
    Result<std::vector<std::pair<std::size_t, double>>> counts = counts_of(text("operations"), table.operations.size());
    if (!counts) return std::move(counts).error();
    const Sums& sums = at->second;
    const double repeats = sums.repeats;
    const std::string setting =
        fmt::format("{}|{}|{}|{}|{}", text("network"), text("batch"), text("size"), text("dtype"), text("pass"));
    const double gpu_s = busy_of(*busy_s, key);
    // A host that was far ahead of the GPU even so did not set the time.
    const bool was_ahead = gpu_s == 0 && sums.issue_s > 0 && sums.issue_s < kAhead * sums.time_s;
    if (!sums.undisturbed && !was_ahead && gpu_s < kBusy * sums.time_s / repeats) {
      table.disturbed.push_back(setting);
      continue;
    }
    table.networks.push_back({text("network"), text("family"), setting, text("pass") == "training",
                              sums.time_s / repeats, sums.energy_j / repeats, gpu_s,
                              sums.undisturbed ? sums.issue_s / repeats : 0, sums.host_factor / repeats,
                              lines->columns.number(record, "python_calls"), std::move(*counts)});
  }
  return table;
}

Result<NoiseFloor> network_noise_floor(std::string_view networks) {
  const Result<Table> table = read_table(networks, kOfNetworks);
  if (!table) return table.error();
  const auto quickest = quickest_launches(*table);
  Repeats repeats;
  for (const formats::CsvRecord& record : table->records) {
    const auto run = quickest.find(table->columns.text(record, "slice"));
    if (run == quickest.end() || !is_undisturbed(*table, record, run->second, 0)) continue;
    repeats[key_of(*table, record)].emplace_back(table->columns.number(record, "time_s"),
                                                 table->columns.number(record, "energy_j"));
  }
  return noise_floor(repeats);
}

}  // namespace joulemap::predict
