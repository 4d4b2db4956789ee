// SPDX-License-Identifier: Apache-2.0
#include "report/text/advice_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/text/diagnostics_text.h"
#include "report/text/energy_text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxCommand = 60;

std::string command_text(const Advice& advice) {
  std::string text;
  for (const std::string& word : advice.command) text += (text.empty() ? "" : " ") + printable(word);
  return shortened(text, kMaxCommand);
}

std::string savings_text(const Finding& finding, double total_j) {
  std::string text =
      fmt::format("saves about {} ({:.0f} %), {} to {}", energy_text(finding.saves_j), 100 * finding.saves_j / total_j,
                  energy_text(finding.low_j), energy_text(std::min(finding.high_j, total_j)));
  if (finding.saves_s) text += fmt::format("; {}", duration_text(*finding.saves_s));
  return text;
}

}  // namespace

std::string advice_text(const Advice& advice, const TextStyle& style) {
  std::string out = "\n " + style.bold(fmt::format("Findings in '{}'", command_text(advice))) + "\n";
  if (advice.energy_j && advice.findings.empty()) {
    out += wrap_text(" ",
                     "No known waste uses a noticeable part of the energy of the GPUs. To save more, try a lower power "
                     "limit, another "
                     "precision, or fewer steps.",
                     style.columns);
  }
  for (std::size_t i = 0; i < advice.findings.size(); ++i) {
    const Finding& finding = advice.findings[i];
    const std::string number = fmt::format(" {}. ", i + 1);
    const std::string indent(number.size(), ' ');
    out += "\n" + wrap_text(number, finding.title + ": " + savings_text(finding, *advice.energy_j), style.columns);
    for (const std::string& evidence : finding.evidence) out += wrap_text(indent, printable(evidence), style.columns);
    out += wrap_text(indent + "try: ", finding.change, style.columns);
  }
  if (!advice.findings.empty())
    out += "\n" +
           wrap_text(
               " ",
               "Savings of the whole run. They follow from assumed fractions that were not measured, and overlap. To "
               "measure one: change the program, record again, and compare with joulemap diff.",
               style.columns);
  const std::string notes = diagnostics_text(advice.diagnostics);
  return notes.empty() ? out + "\n" : out + "\n" + notes + "\n";
}

}  // namespace joulemap::report
