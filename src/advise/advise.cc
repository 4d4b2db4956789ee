// SPDX-License-Identifier: Apache-2.0
#include "advise/advise.h"

#include <algorithm>
#include <functional>

#include "advise/rules.h"

namespace joulemap::advise {

void Amount::add(const std::optional<double>& joules, const std::optional<double>& low,
                 const std::optional<double>& high, double seconds) {
  if (!joules) return;
  energy_j += *joules;
  low_j += std::clamp(low.value_or(*joules), 0.0, *joules);
  high_j += std::max(high.value_or(*joules), *joules);
  time_s += seconds;
}

Finding finding_of(std::string_view rule, const Amount& amount, const SavedFraction& saved) {
  Finding finding;
  finding.rule = rule;
  finding.energy_j = amount.energy_j;
  finding.saves_j = saved.expected * amount.energy_j;
  finding.low_j = saved.low * amount.low_j;
  finding.high_j = saved.high * amount.high_j;
  return finding;
}

bool is_program_row(const ReportRow& row) {
  return row.path.empty() || (row.path.front() != "probe" && row.path.front() != "background");
}

bool is_gpu(std::string_view device) {
  const std::size_t slash = device.rfind('/');  // "node1/gpu0"
  return device.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("gpu");
}

namespace {

double gpu_energy_j(const ReportResult& result) {
  double program_j = 0;
  double probed_j = 0;
  for (const ReportRow& row : result.rows) {
    if (!is_gpu(row.device)) continue;
    if (is_program_row(row)) program_j += row.energy_j.value_or(0);
    if (!row.path.empty() && row.path.front() == "probe") probed_j += row.energy_j.value_or(0);
  }
  double idle_j = 0;
  for (const IdleEntry& entry : result.idle) {
    if (is_gpu(entry.device)) idle_j += entry.energy_j.value_or(0);
  }
  // Idle energy between the replayed modules is not the program's.
  const double idle_of_probing_j = result.probe ? result.probe->energy_j.value_or(0) - probed_j : 0;
  return program_j + std::max(idle_j - std::max(idle_of_probing_j, 0.0), 0.0);
}

}  // namespace

Advice advise(const AdviceInput& input) {
  Advice advice;
  advice.inputs = input.by_layer.inputs;
  advice.command = input.by_layer.command;
  advice.interval = input.by_layer.interval;
  advice.diagnostics = input.by_layer.diagnostics;
  advice.part = input.part;
  const Run run{input, gpu_energy_j(input.by_layer), input.part.steps};
  if (!(run.energy_j > 0)) {
    advice.diagnostics.add({"advice_needs_gpu", 1, "the rules of advise need a GPU whose energy was recorded",
                            "joulemap report --by module lists the costliest layers of any run"});
    return advice;
  }
  advice.energy_j = run.energy_j;
  for (const std::vector<Finding>& found : {waiting_findings(run), kernel_findings(run)}) {
    for (const Finding& finding : found) {
      if (run.share(finding.saves_j) >= kMinSavedShare) advice.findings.push_back(finding);
    }
  }
  std::ranges::stable_sort(advice.findings, std::greater<>(), &Finding::saves_j);
  return advice;
}

}  // namespace joulemap::advise
