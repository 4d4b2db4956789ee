// SPDX-License-Identifier: Apache-2.0
#include "report/text/record_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/evaluation_rows.h"
#include "model/run_rates.h"
#include "report/text/advice_text.h"
#include "report/text/command_energy.h"
#include "report/text/costliest_layers.h"
#include "report/text/energy_text.h"
#include "report/text/idle_gpu_text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxSummarizedLayers = 5;
constexpr double kMinNamedRestFraction = 0.005;
constexpr double kMinSecondToTopSavingRatio = 0.6;
constexpr std::string_view kProbeModeName = "probe";
constexpr std::string_view kOptimizerPhaseName = "optimizer";
constexpr std::string_view kTrainModeName = "train";
constexpr std::string_view kForwardPhaseName = "forward";
constexpr std::string_view kCpuDeviceName = "cpu";
// Less often, modules without weights (an activation of a residual block) are shared by habit.
constexpr double kMinRepeatedCalls = 4;
constexpr std::size_t kMaxRepeatedLayers = 2;

std::string relative_width_text(double relative_half_width, const TextStyle& style) {
  return fmt::format("{} {:.0f} %", style.plus_minus_sign(), 100 * relative_half_width);
}

// A line of the table of layers. `width`: of the interval, may be empty.
std::string cost_line(const std::string& share, const std::string& cost_text, const std::string& width,
                      const std::string& name) {
  const std::string indent(8 - std::min<std::size_t>(8, count_display_columns(width)), ' ');
  return fmt::format("   {:>5} {:>9} {}{}  {}\n", share, cost_text, indent, width, name);
}

// A line for the optimizer, if it uses at least kMinShownEnergyShare. Updates of a layer (Keras) count with their
// layer.
std::string optimizer_share_text(const ReportResult& result, double command_j, const TextStyle& style) {
  const std::set<std::string> modules = list_module_names(result.rows);
  double joules = 0;
  double half_width_j = 0;  // the errors of rows may be correlated: their half widths add up
  for (const ReportRow& row : result.rows) {
    const bool is_optimizer =
        row.path.size() > 1 && row.path.front() != kProbeModeName && row.path[1] == kOptimizerPhaseName;
    if (!is_optimizer || (row.path.size() > 2 && modules.contains(row.path.back()))) continue;
    joules += row.energy_j.value_or(0);
    if (row.low_j && row.high_j) half_width_j += (*row.high_j - *row.low_j) / 2;
  }
  if (command_j <= 0 || joules < kMinShownEnergyShare * command_j) return {};
  return cost_line(percent_text(joules / command_j), energy_text(joules),
                   relative_width_text(half_width_j / joules, style), "the optimizer");
}

bool has_energy_rows(const ReportResult& result) {
  return std::ranges::any_of(result.rows, [](const ReportRow& row) { return row.energy_j > 0; });
}

std::vector<LayerCost> find_costliest_layers(const RecordSummary& answer) {
  const LayerCostUnit unit = has_energy_rows(answer.layer_report) ? LayerCostUnit::joules : LayerCostUnit::seconds;
  return costliest_layers(answer.layer_report.rows, answer.module_report.rows, unit);
}

std::string costliest_layers_text(const RecordSummary& answer, const TextStyle& style) {
  const ReportResult& result = answer.layer_report;
  const bool by_energy = has_energy_rows(result);
  const std::vector<LayerCost> layers = find_costliest_layers(answer);
  if (layers.empty() || layers.front().cost_j_or_s <= 0) return {};
  const double sum = by_energy ? command_rates(result).energy_j.value_or(0) : result.elapsed_s;
  std::string out = by_energy ? " costliest layers, all passes together, in % of the energy of the command\n"
                              : " slowest layers, all passes together (their energy is unknown)\n";
  for (std::size_t i = 0; i < std::min(kMaxSummarizedLayers, layers.size()); ++i) {
    const LayerCost& layer = layers[i];
    if (layer.cost_j_or_s <= 0) break;
    const std::string cost_text = by_energy ? energy_text(layer.cost_j_or_s) : duration_text(layer.cost_j_or_s);
    const std::string width =
        by_energy ? relative_width_text(layer.half_width_j / layer.cost_j_or_s, style) : std::string();
    const std::string count = layer.modules.size() > 1 ? fmt::format(" ({} of them)", layer.modules.size()) : "";
    out += cost_line(percent_text(sum > 0 ? layer.cost_j_or_s / sum : 0), cost_text, width,
                     shorten_to_columns(printable(layer.name), style.columns - 30 - count.size()) + count);
  }
  if (!by_energy) return out;
  out += optimizer_share_text(result, sum, style);
  if (compute_run_rates(result).is_estimated() && layers.size() > 1)
    out += wrap_text(
        "   ",
        "Shares follow the time of each layer. Most of the error is the unknown power of this machine, common to all "
        "layers: shares are more certain than joules.",
        style.columns);
  return out;
}

std::string energy_with_interval_text(const RunRates& rates, const TextStyle& style) {
  std::string text = energy_text(*rates.energy_j);
  if (rates.half_width_j) text += fmt::format(" {} {}", style.plus_minus_sign(), energy_text(*rates.half_width_j));
  return text;
}

// The line on steps; empty if none is known.
std::string energy_per_step_text(const ReportResult& result, const RunRates& rates) {
  if (!(rates.steps.value_or(0) > 0)) return {};
  return fmt::format(" {:.0f} steps, {} each, {} included\n", *rates.steps, energy_text(*rates.energy_j / *rates.steps),
                     !rates.evaluation_steps                 ? "start-up"
                     : is_inference_part_of_training(result) ? "start-up and inference"
                                                             : "start-up and evaluation");
}

// First what the command itself used, if other processes used a noticeable part: shares of layers refer to it.
std::string total_energy_text(const ReportResult& result, const TextStyle& style) {
  const RunRates machine = compute_run_rates(result);
  if (!machine.energy_j) return fmt::format(" {}: no sensor returned a value\n", duration_text(result.elapsed_s));
  const std::string_view provenance = machine.is_estimated() ? "estimated" : "measured";
  const std::string watts = machine.mean_w() ? fmt::format(" ({:.0f} W)", *machine.mean_w()) : "";
  const RunRates command = command_rates(result);
  const std::string command_text = style.bold(energy_with_interval_text(command, style));
  const std::string time = duration_text(machine.time_s);
  if (noticeable_background_j(result) <= 0)
    return fmt::format(" {} {} in {}{}\n", command_text, provenance, time, watts) +
           energy_per_step_text(result, command);
  return fmt::format(" {} by this command in {}{}\n", command_text, time, machine.is_estimated() ? ", estimated" : "") +
         energy_per_step_text(result, command) +
         wrap_text(" ",
                   fmt::format("The whole machine: {} {}{}, with other processes and idle parts",
                               energy_with_interval_text(machine, style), provenance, watts),
                   style.columns);
}

std::string_view phase_description(std::string_view mode, std::string_view phase, bool has_evaluation) {
  if (mode == "worker" || phase == "dataloader") return "the DataLoader";
  if (phase == "compile") return "compilation";
  if (phase == "checkpoint_save") return "checkpoints";
  if (mode == "inference") return has_evaluation ? "evaluation" : "inference";
  return phase == "zero_grad" ? "zeroing gradients" : phase;
}

// Where a program without a GPU used its energy: phases with at least kMinShownEnergyShare, the costliest first.
std::string costliest_phases_text(const ReportResult& result, double command_j, const TextStyle& style) {
  const bool has_evaluation = is_inference_evaluation(result);
  std::map<std::string, double, std::less<>> energies_j;
  for (const ReportRow& row : result.rows) {
    if (row.device.find("gpu") != std::string::npos) return {};  // what the GPU waited for comes instead
    if (row.path.size() < 2 || row.path.front() == kProbeModeName) continue;
    energies_j[std::string(phase_description(row.path[0], row.path[1], has_evaluation))] += row.energy_j.value_or(0);
  }
  if (energies_j.empty() || command_j <= 0) return {};
  energies_j["start-up and code outside of phases"] +=
      energy_outside_rows_without_probing(result).unattributed_j.value_or(0);
  std::vector<std::pair<double, std::string_view>> sorted_phases;
  for (const auto& [words, joules] : energies_j) {
    if (joules >= kMinShownEnergyShare * command_j) sorted_phases.emplace_back(joules, words);
  }
  if (sorted_phases.empty()) return {};
  std::ranges::sort(sorted_phases, std::greater<>());
  std::vector<std::string> parts;
  double named_j = 0;
  for (const auto& [joules, words] : sorted_phases) {
    parts.push_back(fmt::format("{} {}", percent_text(joules / command_j), words));
    named_j += joules;
  }
  if (command_j - named_j >= kMinNamedRestFraction * command_j)
    parts.push_back(percent_text(1 - named_j / command_j) + " other");
  return wrap_text(" ", fmt::format("It went to: {}", fmt::join(parts, ", ")), style.columns);
}

// The recording of a command that did not end well covers only what it did.
std::string failed_command_text(const ReportResult& result) {
  std::string end;
  if (result.signal) {
    end = fmt::format("was killed by signal {}", *result.signal);
  } else if (result.exit_code.value_or(0) != 0) {
    end = fmt::format("failed with exit code {}", *result.exit_code);
  } else {
    return {};
  }
  return fmt::format(" The command {}: this is what it did until then.\n", end);
}

bool is_forward_call_row(const ReportRow& row) {
  return row.path.size() > 2 && row.path[0] == kTrainModeName && row.path[1] == kForwardPhaseName &&
         row.device == kCpuDeviceName && row.count.value_or(0) > 0;
}

// How often a forward pass of the training calls the module of a layer; 0 if unknown. A step may accumulate the gradients
// of several forward passes: the module that is called least often counts them.
double calls_in_each_forward_pass(const ReportResult& result, const LayerCost& layer) {
  double calls = 0;
  std::optional<double> forward_passes;
  for (const ReportRow& row : result.rows) {
    if (!is_forward_call_row(row)) continue;
    const auto row_calls = static_cast<double>(*row.count);
    forward_passes = std::min(forward_passes.value_or(row_calls), row_calls);
    if (layer.modules.contains(row.path.back())) calls = std::max(calls, row_calls);
  }
  return forward_passes ? calls / std::max(*forward_passes, static_cast<double>(result.steps)) : 0;
}

// A hint for layers that a forward pass calls repeatedly: what is the same in each call can be computed once. Nothing
// compares the inputs of calls, so no saving is stated.
std::string repeated_layers_text(const RecordSummary& answer, const std::vector<LayerCost>& layers,
                                 const TextStyle& style) {
  const double command_j = command_rates(answer.layer_report).energy_j.value_or(0);
  std::vector<std::string> parts;
  for (const LayerCost& layer : std::span(layers).first(std::min(kMaxSummarizedLayers, layers.size()))) {
    const double calls = calls_in_each_forward_pass(answer.layer_report, layer);
    if (calls < kMinRepeatedCalls || parts.size() == kMaxRepeatedLayers || command_j <= 0) continue;
    parts.push_back(fmt::format("{} ({:.0f} calls per forward pass use {} of the energy)", printable(layer.name), calls,
                                percent_text(layer.cost_j_or_s / command_j)));
  }
  if (parts.empty()) return {};
  return wrap_text(answer.advice.findings.empty() ? " to try: " : "     or: ",
                   fmt::format("compute once what is the same in each call of {}", fmt::join(parts, ", of ")),
                   style.columns);
}

// What remains for the layers where no rule found a waste in them.
std::string layer_suggestion_text(const RecordSummary& answer, const TextStyle& style) {
  if (!answer.advice.energy_j || !has_no_waste_in_layers(answer.advice)) return {};
  const std::vector<LayerCost> layers = find_costliest_layers(answer);
  if (layers.empty()) return {};
  if (std::string text = repeated_layers_text(answer, layers, style); !text.empty()) return text;
  return wrap_text(" layers: ",
                   fmt::format("no rule found a waste in {}: a smaller layer or fewer calls of it use less energy",
                               printable(layers.front().name)),
                   style.columns);
}

// The finding with the largest saving, and the next one if it saves nearly as much: their order may be chance.
std::string suggestion_text(const RecordSummary& answer, const TextStyle& style) {
  const Advice& advice = answer.advice;
  std::string text;
  for (const Finding& finding : advice.findings) {
    const bool is_top_finding = &finding == &advice.findings.front();
    if (!is_top_finding && finding.saved_energy_j < kMinSecondToTopSavingRatio * advice.findings.front().saved_energy_j)
      break;
    text += wrap_text(is_top_finding ? " to try: " : "     or: ",
                      fmt::format("{} ({})", finding.change, finding_saving_text(finding, advice)), style.columns);
    if (!is_top_finding) break;
  }
  return text + layer_suggestion_text(answer, style);
}

}  // namespace

std::string record_summary_text(const RecordSummary& answer, const TextStyle& style) {
  std::string out = "\n" + failed_command_text(answer.layer_report) + total_energy_text(answer.layer_report, style);
  out += costliest_phases_text(answer.layer_report, command_rates(answer.layer_report).energy_j.value_or(0), style);
  if (const std::string waiting = idle_gpu_headline(answer.layer_report); !waiting.empty()) out += waiting;
  out += costliest_layers_text(answer, style) + suggestion_text(answer, style);
  const std::string recording_name = printable(answer.recording_file);
  return out + fmt::format(" next: joulemap report --by module {0}\n       joulemap {1} {0}\n", recording_name,
                           answer.advice.findings.empty() ? "open" : "advise");
}

std::string live_status_text(const LiveStatus& status) {
  std::string out = duration_text(status.elapsed_s);
  if (status.power_w) out += fmt::format("   {:.0f} W", *status.power_w);
  if (status.energy_j) out += fmt::format("   {}", energy_text(*status.energy_j));
  if (status.is_estimated) out += " (estimated)";
  if (status.steps > 0) out += fmt::format("   step {}", status.steps);
  if (status.step_j) out += fmt::format("   {}/step", energy_text(*status.step_j));
  return "joulemap: " + out;
}

}  // namespace joulemap::report
