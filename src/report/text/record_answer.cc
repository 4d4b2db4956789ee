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
#include "report/text/energy_text.h"
#include "report/text/waiting_text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kShownLayers = 5;
// A cause with less of a run's energy is not worth a change.
constexpr double kLeastShareToTry = 0.05;
constexpr std::string_view kProbeMode = "probe";
constexpr std::string_view kOptimizerPhase = "optimizer";
constexpr std::string_view kBackground = "background";

struct LayerCost {
  std::string name;
  double amount = 0;        // J, or s where no energy is known
  double half_width_j = 0;  // errors of rows may share one cause: half widths add
  std::set<std::string> modules;
};

// What to change first where a GPU waits, in the order of IdleCause. Start-up and shutdown end by themselves.
constexpr std::array<std::string_view, kIdleCauseNames.size()> kToTry = {
    "",
    "give the DataLoader more workers (num_workers, pin_memory, persistent_workers) or do less for each item",
    "launch fewer and larger kernels: torch.compile, CUDA graphs or a larger batch",
    "synchronize less often: no .item(), .cpu() or print of a tensor in every step",
    "keep compiled code between runs, or avoid inputs of ever new shapes",
    "evaluate less often or with larger batches",
    "save checkpoints less often, or in the background",
    "balance the ranks, or overlap communication with the backward pass",
    "see which code runs meanwhile: joulemap report --by function",
    "see what runs between steps: joulemap report --by function",
    "",
    "record every kernel to see what it waited for: joulemap record --trace full",
};

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char letter) { return letter >= '0' && letter <= '9'; });
}

// The place of a module in a network of equal blocks: "blocks.2.mlp.0" is part of "blocks.*.mlp". The parts of a
// Sequential count as one, so that it compares with its neighbours. A name of numbers alone stays.
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

std::vector<LayerCost> costliest_layers(const ReportResult& result, bool by_energy) {
  std::map<std::string, LayerCost> sums;
  for (const ReportRow& row : result.rows) {
    if (!is_module_row(row) || (by_energy && !row.energy_j)) continue;
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

// What is no layer but costs as much: the optimizer, other processes.
std::string other_rows_text(const ReportResult& result, double total_j) {
  double optimizer_j = 0;
  double background_j = 0;
  for (const ReportRow& row : result.rows) {
    if (row.path.size() > 1 && row.path.front() != kProbeMode && row.path[1] == kOptimizerPhase)
      optimizer_j += row.energy_j.value_or(0);
    if (row.path.size() == 1 && row.path.front() == kBackground) background_j += row.energy_j.value_or(0);
  }
  std::string out;
  const auto add = [&](double joules, std::string_view what) {
    if (total_j > 0 && joules >= kLeastShareToTry * total_j)
      out += fmt::format("   {:>5} {:>9}           {}\n", percent_text(joules / total_j), energy_text(joules), what);
  };
  add(optimizer_j, "the optimizer");
  add(background_j, "processes outside of the command, and the rest of the machine");
  return out;
}

std::string layers_text(const ReportResult& result, const TextStyle& style) {
  const bool by_energy = std::ranges::any_of(result.rows, [](const ReportRow& row) { return row.energy_j > 0; });
  const std::vector<LayerCost> layers = costliest_layers(result, by_energy);
  if (layers.empty() || layers.front().amount <= 0) return {};
  const double sum = by_energy ? run_rates(result).energy_j.value_or(0) : result.elapsed_s;
  std::string out = by_energy ? " costliest layers, forward and backward together\n"
                              : " slowest layers, forward and backward together (their energy is unknown)\n";
  for (std::size_t i = 0; i < std::min(kShownLayers, layers.size()); ++i) {
    const LayerCost& layer = layers[i];
    const std::string amount = by_energy ? energy_text(layer.amount) : duration_text(layer.amount);
    const std::string width =
        by_energy ? fmt::format("{} {:.0f} %", style.plus_minus(), 100 * layer.half_width_j / layer.amount) : "";
    const std::string count = layer.modules.size() > 1 ? fmt::format(" ({} of them)", layer.modules.size()) : "";
    out += fmt::format("   {:>5} {:>9} {}{}  {}\n", percent_text(sum > 0 ? layer.amount / sum : 0), amount,
                       std::string(8 - std::min<std::size_t>(8, display_columns(width)), ' '), width,
                       shortened(printable(layer.name), style.columns - 30 - count.size()) + count);
  }
  return by_energy ? out + other_rows_text(result, sum) : out;
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

// The cause with the most idle energy that a change can avoid.
std::string to_try_text(const ReportResult& result, const TextStyle& style) {
  const std::optional<double> measured_j = joules_of(result.totals.measured);
  std::map<IdleCause, double> causes;
  for (const IdleEntry& entry : result.idle) {
    if (entry.device != "cpu") causes[entry.cause] += entry.energy_j.value_or(0);
  }
  const auto largest = std::ranges::max_element(causes, {}, [](const auto& entry) {
    return kToTry.at(static_cast<std::size_t>(entry.first)).empty() ? 0 : entry.second;
  });
  if (largest == causes.end() || !measured_j || largest->second < kLeastShareToTry * *measured_j) return {};
  const std::string_view what = kToTry.at(static_cast<std::size_t>(largest->first));
  if (what.empty()) return {};
  return wrap_text(" to try: ", fmt::format("{} (at most {})", what, energy_text(largest->second)), style.columns);
}

}  // namespace

std::string record_answer_text(const ReportResult& result, const std::string& file, const TextStyle& style) {
  std::string out = "\n" + total_text(result, style);
  if (const std::string waiting = waiting_headline(result); !waiting.empty()) out += waiting;
  out += layers_text(result, style) + to_try_text(result, style);
  const std::string shown = printable(file);
  return out + fmt::format(" next: joulemap report {0}\n       joulemap open {0}\n", shown);
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
