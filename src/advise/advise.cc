// SPDX-License-Identifier: Apache-2.0
#include "advise/advise.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "advise/rules.h"
#include "model/background_row.h"

namespace joulemap::advise {

void EnergyWithInterval::add(const std::optional<double>& joules, const std::optional<double>& low,
                             const std::optional<double>& high, double seconds) {
  if (!joules) return;
  energy_j += *joules;
  low_j += std::clamp(low.value_or(*joules), 0.0, *joules);
  high_j += std::max(high.value_or(*joules), *joules);
  time_s += seconds;
}

Finding make_finding(std::string_view rule, const EnergyWithInterval& affected_energy,
                     const SavedEnergyFraction& saved) {
  Finding finding;
  finding.rule = rule;
  finding.energy_j = affected_energy.energy_j;
  finding.saved_energy_j = saved.expected_fraction * affected_energy.energy_j;
  finding.low_j = saved.low * affected_energy.low_j;
  finding.high_j = saved.high * affected_energy.high_j;
  return finding;
}

bool is_measured_program_row(const ReportRow& row) { return !is_probe_row(row) && !is_background_row(row); }

namespace {

// "gpu0" of "node1/gpu0".
std::string_view strip_machine_prefix(std::string_view device) {
  const std::size_t slash = device.rfind('/');
  return device.substr(slash == std::string_view::npos ? 0 : slash + 1);
}

bool has_text_in_path(const ReportRow& row, std::string_view part) {
  return !row.path.empty() && row.path.back().find(part) != std::string::npos;
}

}  // namespace

bool is_gpu_device(std::string_view device) { return strip_machine_prefix(device).starts_with("gpu"); }
bool is_cpu_device(std::string_view device) { return strip_machine_prefix(device) == "cpu"; }

std::string enclosing_module_name(const ReportRow& row) { return row.path.size() > 2 ? row.path[2] : std::string(); }

std::set<std::string> find_attention_modules(const ReportResult& operator_report, bool (*is_device)(std::string_view)) {
  std::set<std::string> softmax_modules;
  std::set<std::string> modules;
  for (const ReportRow& row : operator_report.rows) {
    if (is_device(row.device) && has_text_in_path(row, "softmax") && !has_text_in_path(row, "log_softmax"))
      softmax_modules.insert(enclosing_module_name(row));
  }
  for (const ReportRow& row : operator_report.rows) {
    const bool is_matrix_product =
        has_text_in_path(row, "matmul") || has_text_in_path(row, "bmm") || has_text_in_path(row, "einsum");
    if (is_device(row.device) && is_matrix_product && softmax_modules.contains(enclosing_module_name(row)))
      modules.insert(enclosing_module_name(row));
  }
  modules.erase("");
  return modules;
}

namespace {

// Idle energy in reports to advise on is of the program, without probing.
double total_gpu_energy_j(const ReportResult& result) {
  double joules = 0;
  for (const ReportRow& row : result.rows) {
    if (is_gpu_device(row.device) && is_measured_program_row(row)) joules += row.energy_j.value_or(0);
  }
  for (const IdleEntry& entry : result.idle) {
    if (is_gpu_device(entry.device)) joules += entry.energy_j.value_or(0);
  }
  return joules;
}

// What a change saves around the waste, and the intervals of rows, may add up to more than the run used.
void cap_saving_at_run_energy(Finding& finding, double run_energy_j) {
  for (double* const joules : {&finding.saved_energy_j, &finding.low_j, &finding.high_j})
    *joules = std::min(*joules, run_energy_j);
}

}  // namespace

Advice advise(const AdviceInput& input) {
  Advice advice;
  advice.inputs = input.layer_report.inputs;
  advice.command = input.layer_report.command;
  advice.interval = input.layer_report.interval;
  advice.diagnostics = input.layer_report.diagnostics;
  advice.examined_run_part = input.examined_run_part;
  RuleContext run{input, total_gpu_energy_j(input.layer_report), input.examined_run_part.steps};
  if (!(run.energy_j > 0)) {
    advice.processor = AdvisedProcessor::cpu;
    run.energy_j = cpu_program_energy_j(input.layer_report);
  }
  if (!(run.energy_j > 0)) {
    advice.diagnostics.add({"advice_needs_gpu", 1,
                            "the rules of advise need energy of a GPU, or of layers and phases on the CPU",
                            "joulemap report --by function lists the costliest functions of a Python program"});
    return advice;
  }
  advice.energy_j = run.energy_j;
  const bool is_gpu = advice.processor == AdvisedProcessor::gpu;
  std::vector<Finding> candidate_findings = is_gpu ? collect_waiting_findings(run) : collect_cpu_findings(run);
  if (is_gpu) std::ranges::move(collect_kernel_findings(run), std::back_inserter(candidate_findings));
  for (Finding& finding : candidate_findings) {
    cap_saving_at_run_energy(finding, run.energy_j);
    if (run.fraction_of_run_energy(finding.saved_energy_j) >= kMinSavedEnergyShare)
      advice.findings.push_back(std::move(finding));
  }
  std::ranges::stable_sort(advice.findings, std::greater<>(), &Finding::saved_energy_j);
  return advice;
}

}  // namespace joulemap::advise
