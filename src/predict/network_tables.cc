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

struct Sums {
  double time_s = 0;
  double energy_j = 0;
  int repeats = 0;
  std::string slice;
};

Result<std::map<std::string, Sums>> measured_settings(std::string_view csv) {
  const Result<Table> table = read_table(csv, kOfNetworks);
  if (!table) return table.error();
  std::map<std::string, Sums> measured;
  for (const formats::CsvRecord& record : table->records) {
    const std::string& told = table->columns.text(record, "parameters");
    const std::string key =
        fmt::format("{}/{} {}x{} {} {}", part_of(told, "package"), part_of(told, "name"), part_of(told, "batch"),
                    part_of(told, "size"), table->columns.text(record, "dtype"), table->columns.text(record, "pass"));
    Sums& sums = measured[key];
    sums.time_s += table->columns.number(record, "time_s");
    sums.energy_j += table->columns.number(record, "energy_j");
    sums.slice = table->columns.text(record, "slice");
    ++sums.repeats;
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
  const Result<std::map<std::string, Sums>> measured = measured_settings(networks);
  if (!measured) return measured.error();
  std::map<std::string, double> busy_s;
  if (!busy.empty()) {
    const Result<Table> told = read_table(busy, std::array<std::string_view, 2>{"setting", "busy_s"});
    if (!told) return told.error();
    for (const formats::CsvRecord& record : told->records) {
      busy_s[told->columns.text(record, "setting")] = told->columns.number(record, "busy_s");
    }
  }
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
    table.networks.push_back(
        {text("network"), text("family"),
         fmt::format("{}|{}|{}|{}|{}", text("network"), text("batch"), text("size"), text("dtype"), text("pass")),
         sums.slice, text("pass") == "training", sums.time_s / sums.repeats, sums.energy_j / sums.repeats, busy_s[key],
         std::move(*counts)});
  }
  return table;
}

std::map<std::string, double, std::less<>> fit_launches(std::string_view layers_csv) {
  std::map<std::string, std::pair<double, double>, std::less<>> sums;
  const Result<Table> table =
      read_table(layers_csv, std::array<std::string_view, 5>{"kind", "parameters", "dtype", "pass", "launches"});
  std::map<std::string, double, std::less<>> means;
  if (!table) return means;
  for (const formats::CsvRecord& record : table->records) {
    const Result<Operation> operation = operation_of(table->columns, record);
    if (!operation) continue;
    for (const std::string& group : groups_of(*operation)) {
      auto& [launches, count] = sums[group];
      launches += table->columns.number(record, "launches");
      count += 1;
    }
  }
  for (const auto& [group, sum] : sums) means[group] = sum.first / sum.second;
  return means;
}

}  // namespace joulemap::predict
