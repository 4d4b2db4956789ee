// SPDX-License-Identifier: Apache-2.0
#include "report/text/record_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "model/run_rates.h"
#include "report/text/advice_text.h"
#include "report/text/energy_text.h"
#include "report/text/waiting_text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kShownLayers = 5;
constexpr double kMinShownShare = 0.05;  // of the run's energy
constexpr std::string_view kProbeMode = "probe";
constexpr std::string_view kOptimizerPhase = "optimizer";
constexpr std::string_view kBackground = "background";

struct LayerCost {
  std::string name;
  double amount = 0;        // in J, or in s if no energy is known
  double half_width_j = 0;  // sum of the half widths of the rows, whose errors may be correlated
  std::set<std::string> modules;
};

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char letter) { return letter >= '0' && letter <= '9'; });
}

// Name under which corresponding modules of repeated blocks are summed: "blocks.2.mlp.0" becomes "blocks.*.mlp".
// Trailing numbers, which are the elements of a Sequential, are dropped. A name of numbers alone does not change.
std::string place_of_module(std::string_view name) {
  std::vector<std::string_view> parts = split(name, '.');
  while (parts.size() > 1 && is_number(parts.back())) parts.pop_back();
  if (std::ranges::all_of(parts, is_number)) return std::string(name);
  std::string place;
  for (const std::string_view part : parts) {
    place += place.empty() ? "" : ".";
    place += is_number(part) ? "*" : part;
  }
  return place;
}

bool is_module_row(const ReportRow& row) {
  return row.path.size() >= 3 && row.path.front() != kProbeMode && row.path[1] != kOptimizerPhase;
}

std::string_view without_trailing_numbers(std::string_view name) {
  while (true) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || !is_number(name.substr(dot + 1))) return name;
    name = name.substr(0, dot);
  }
}

std::set<std::string> module_names(const ReportResult& by_layer) {
  std::set<std::string> modules;
  for (const ReportRow& row : by_layer.rows) {
    if (is_module_row(row)) modules.insert(row.path.back());
  }
  return modules;
}

// Rows by module contain all passes of a layer; rows by layer show which of them are modules.
std::vector<LayerCost> costliest_layers(const RecordAnswer& answer, bool by_energy) {
  const std::set<std::string> modules = module_names(answer.by_layer);
  std::map<std::string, LayerCost> sums;
  for (const ReportRow& row : answer.by_module.rows) {
    if (row.path.size() != 1 || !modules.contains(row.path.front()) || (by_energy && !row.energy_j)) continue;
    const std::string place = place_of_module(row.path.back());
    LayerCost& sum = sums[place];
    sum.name = place;
    sum.amount += by_energy ? *row.energy_j : row.time_s;
    if (row.low_j && row.high_j) sum.half_width_j += (*row.high_j - *row.low_j) / 2;
    sum.modules.emplace(without_trailing_numbers(row.path.back()));
  }
  std::vector<LayerCost> layers;
  for (auto& [name, sum] : sums) layers.push_back(std::move(sum));
  std::ranges::stable_sort(layers, std::greater(), &LayerCost::amount);
  return layers;
}

// Energy of other processes and of the rest of the machine.
double background_j(const ReportResult& result) {
  double joules = 0;
  for (const ReportRow& row : result.rows) {
    if (row.path.size() == 1 && row.path.front() == kBackground) joules += row.energy_j.value_or(0);
  }
  return joules;
}

// A line for the optimizer, if it uses at least kMinShownShare. Updates of a layer (Keras) count with their layer.
std::string optimizer_text(const ReportResult& result, double command_j) {
  const std::set<std::string> modules = module_names(result);
  double joules = 0;
  for (const ReportRow& row : result.rows) {
    const bool is_optimizer = row.path.size() > 1 && row.path.front() != kProbeMode && row.path[1] == kOptimizerPhase;
    if (is_optimizer && !(row.path.size() > 2 && modules.contains(row.path.back()))) joules += row.energy_j.value_or(0);
  }
  if (command_j <= 0 || joules < kMinShownShare * command_j) return {};
  return fmt::format("   {:>5} {:>9}           the optimizer\n", percent_text(joules / command_j), energy_text(joules));
}

std::string layers_text(const RecordAnswer& answer, const TextStyle& style) {
  const ReportResult& result = answer.by_layer;
  const bool by_energy = std::ranges::any_of(result.rows, [](const ReportRow& row) { return row.energy_j > 0; });
  const std::vector<LayerCost> layers = costliest_layers(answer, by_energy);
  if (layers.empty() || layers.front().amount <= 0) return {};
  const double sum = by_energy ? run_rates(result).energy_j.value_or(0) - background_j(result) : result.elapsed_s;
  std::string out = by_energy ? " costliest layers, all passes together\n"
                              : " slowest layers, all passes together (their energy is unknown)\n";
  for (std::size_t i = 0; i < std::min(kShownLayers, layers.size()); ++i) {
    const LayerCost& layer = layers[i];
    if (layer.amount <= 0) break;
    const std::string amount = by_energy ? energy_text(layer.amount) : duration_text(layer.amount);
    const std::string width =
        by_energy ? fmt::format("{} {:.0f} %", style.plus_minus(), 100 * layer.half_width_j / layer.amount) : "";
    const std::string count = layer.modules.size() > 1 ? fmt::format(" ({} of them)", layer.modules.size()) : "";
    out += fmt::format("   {:>5} {:>9} {}{}  {}\n", percent_text(sum > 0 ? layer.amount / sum : 0), amount,
                       std::string(8 - std::min<std::size_t>(8, display_columns(width)), ' '), width,
                       shortened(printable(layer.name), style.columns - 30 - count.size()) + count);
  }
  return by_energy ? out + optimizer_text(result, sum) : out;
}

// What the command itself used, if others used a noticeable part: shares of layers refer to it.
std::string command_text(const ReportResult& result, const TextStyle& style) {
  const RunRates rates = run_rates(result);
  const double others_j = background_j(result);
  if (!rates.energy_j || others_j <= 0 || others_j < kMinShownShare * *rates.energy_j) return {};
  const double command_j = std::max(*rates.energy_j - others_j, 0.0);
  std::string text = fmt::format("{} of it by the command", energy_text(command_j));
  if (rates.steps && *rates.steps > 0) text += fmt::format(" ({} per step)", energy_text(command_j / *rates.steps));
  return wrap_text(" ",
                   text + fmt::format(", {} by other processes and the rest of the machine", energy_text(others_j)),
                   style.columns);
}

std::string total_text(const ReportResult& result, const TextStyle& style) {
  const RunRates rates = run_rates(result);
  if (!rates.energy_j) return fmt::format(" {}: no sensor returned a value\n", duration_text(result.elapsed_s));
  std::string out = " " + style.bold(energy_text(*rates.energy_j));
  if (rates.half_width_j) out += fmt::format(" {} {}", style.plus_minus(), energy_text(*rates.half_width_j));
  out += fmt::format(" {} in {}", rates.is_estimated() ? "estimated" : "measured", duration_text(rates.time_s));
  if (const auto watts = rates.mean_w()) out += fmt::format(" ({:.0f} W)", *watts);
  if (const auto per_step = rates.energy_per_unit(rates.steps))
    out += fmt::format("; {:.0f} steps, {} each", *rates.steps, energy_text(*per_step));
  return out + "\n";
}

std::string to_try_text(const Advice& advice, const TextStyle& style) {
  if (advice.findings.empty()) return {};
  const Finding& top = advice.findings.front();
  return wrap_text(" to try: ", fmt::format("{} ({})", top.change, saving_text(top, advice)), style.columns);
}

}  // namespace

std::string record_answer_text(const RecordAnswer& answer, const TextStyle& style) {
  std::string out = "\n" + total_text(answer.by_layer, style) + command_text(answer.by_layer, style);
  if (const std::string waiting = waiting_headline(answer.by_layer); !waiting.empty()) out += waiting;
  out += layers_text(answer, style) + to_try_text(answer.advice, style);
  const std::string shown = printable(answer.file);
  return out + fmt::format(" next: joulemap report --by module {0}\n       joulemap {1} {0}\n", shown,
                           answer.advice.findings.empty() ? "open" : "advise");
}

std::string live_text(const LiveStatus& status) {
  std::string out = duration_text(status.elapsed_s);
  if (status.power_w) out += fmt::format("   {:.0f} W", *status.power_w);
  if (status.energy_j) out += fmt::format("   {}", energy_text(*status.energy_j));
  if (status.is_estimated) out += " (estimated)";
  if (status.steps > 0) out += fmt::format("   step {}", status.steps);
  if (status.step_j) out += fmt::format("   {}/step", energy_text(*status.step_j));
  return "joulemap: " + out;
}

}  // namespace joulemap::report
