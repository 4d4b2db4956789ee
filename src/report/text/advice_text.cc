// SPDX-License-Identifier: Apache-2.0
#include "report/text/advice_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "report/text/diagnostics_text.h"
#include "report/text/energy_text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

constexpr std::string_view kUnseenRepetition = "No rule sees work that is repeated with the same input.";

constexpr std::size_t kMaxCommandWidth = 60;

std::string advised_command_text(const Advice& advice) {
  std::string text;
  for (const std::string& word : advice.command) text += (text.empty() ? "" : " ") + printable(word);
  return shorten_to_columns(text, kMaxCommandWidth);
}

std::string saving_range_text(const Finding& finding, double total_j) {
  return fmt::format("{:.0f} to {:.0f} %", 100 * finding.low_j / total_j,
                     100 * std::min(finding.high_j / total_j, 1.0));
}

std::string examined_run_part_text(const Advice& advice) {
  const std::string_view energy =
      advice.processor == AdvisedProcessor::gpu ? "GPU energy" : "energy of phases and layers on the CPU";
  if (!advice.examined_run_part.is_steady)
    return fmt::format("Savings are shares of the {} of the run, {}.", energy, energy_text(*advice.energy_j));
  return fmt::format("Savings are shares of the {} of a steady-state step: {}, the mean of {:.0f} steps.", energy,
                     energy_text(*advice.energy_j / advice.examined_run_part.steps), advice.examined_run_part.steps);
}

std::string no_finding_text(const Advice& advice) {
  if (advice.processor == AdvisedProcessor::cpu)
    return fmt::format(
        "No rule found a waste that uses a noticeable part of the energy of the program. {} To save more, try fewer "
        "steps, "
        "a smaller model, or a GPU.",
        kUnseenRepetition);
  return fmt::format(
      "No rule found a waste that uses a noticeable part of the energy of the GPUs. {} To save more, try a lower power "
      "limit, another precision, or fewer steps.",
      kUnseenRepetition);
}

// What remains for layers if all findings are about other code; empty otherwise.
std::string layers_without_waste_text(const Advice& advice) {
  if (!advice.energy_j || advice.findings.empty() || !has_no_waste_in_layers(advice)) return {};
  return fmt::format(
      "No rule found a waste in the layers. {} `joulemap report --by module` lists the calls of each layer, forward "
      "and "
      "backward passes together.",
      kUnseenRepetition);
}

// Whether a shell reads the word as it is.
bool is_literal_word(std::string_view word) {
  const auto is_literal = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string_view("-_./=:,+@%").find(letter) != std::string_view::npos;
  };
  return !word.empty() && std::ranges::all_of(word, is_literal);
}

// The command if a shell would read it as it was run, otherwise a placeholder.
std::string repeatable_command_text(const Advice& advice) {
  if (!std::ranges::all_of(advice.command, is_literal_word)) return "COMMAND";
  const std::string text = fmt::format("{}", fmt::join(advice.command, " "));
  return text.empty() || text.size() > kMaxCommandWidth ? "COMMAND" : text;
}

// Commands that measure the saving of a change. Several inputs are parts of one run, which `diff` does not merge.
std::string measuring_commands_text(const Advice& advice) {
  if (advice.inputs.empty()) return {};
  const std::string& input = advice.inputs.front();
  const std::string_view changed_recording = input.ends_with("after.joule") ? "changed.joule" : "after.joule";
  const std::string record =
      fmt::format("   joulemap record -o {} -- {}\n", changed_recording, repeatable_command_text(advice));
  if (advice.inputs.size() > 1) return record;
  return record +
         fmt::format("   joulemap diff {} {}\n", is_literal_word(input) ? input : "RECORDING", changed_recording);
}

}  // namespace

bool has_no_waste_in_layers(const Advice& advice) {
  const auto is_about_layers = [](const Finding& finding) {
    return finding.rule == "unfused_attention" || finding.rule == "small_operations";
  };
  return advice.processor == AdvisedProcessor::cpu && std::ranges::none_of(advice.findings, is_about_layers);
}

std::string finding_saving_text(const Finding& finding, const Advice& advice) {
  const double total_j = *advice.energy_j;
  if (!(advice.examined_run_part.steps > 0))
    return fmt::format("saves about {:.0f} %, {}", 100 * finding.saved_energy_j / total_j,
                       energy_text(finding.saved_energy_j));
  std::string text = fmt::format("saves about {:.0f} % of a {}step: {} of {}", 100 * finding.saved_energy_j / total_j,
                                 advice.examined_run_part.is_steady ? "steady-state " : "",
                                 energy_text(finding.saved_energy_j / advice.examined_run_part.steps),
                                 energy_text(total_j / advice.examined_run_part.steps));
  if (finding.saved_time_s)
    text += fmt::format(" and {}", duration_text(*finding.saved_time_s / advice.examined_run_part.steps));
  return text;
}

std::string advice_text(const Advice& advice, const TextStyle& style) {
  std::string out = "\n " + style.bold(fmt::format("Findings in '{}'", advised_command_text(advice))) + "\n";
  if (advice.energy_j && advice.findings.empty()) out += wrap_text(" ", no_finding_text(advice), style.columns);
  for (std::size_t i = 0; i < advice.findings.size(); ++i) {
    const Finding& finding = advice.findings[i];
    const std::string number = fmt::format(" {}. ", i + 1);
    const std::string indent(number.size(), ' ');
    const std::string saving = fmt::format("{} (range {})", finding_saving_text(finding, advice),
                                           saving_range_text(finding, *advice.energy_j));
    out += "\n" + wrap_text(number, finding.title + ": " + saving, style.columns);
    for (const std::string& evidence : finding.evidence) out += wrap_text(indent, printable(evidence), style.columns);
    out += wrap_text(indent + "try: ", finding.change, style.columns);
  }
  if (!advice.findings.empty())
    out += "\n" +
           wrap_text(" ",
                     examined_run_part_text(advice) +
                         " They overlap: do not add them. To measure one, change the program and run:",
                     style.columns) +
           measuring_commands_text(advice);
  if (const std::string layers = layers_without_waste_text(advice); !layers.empty())
    out += "\n" + wrap_text(" ", layers, style.columns);
  const std::string notes = diagnostics_text(advice.diagnostics);
  return notes.empty() ? out + "\n" : out + "\n" + notes + "\n";
}

}  // namespace joulemap::report
