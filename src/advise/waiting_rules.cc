// SPDX-License-Identifier: Apache-2.0
//
// Rules about energy that GPUs use while they wait for the host.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <vector>

#include "advise/rules.h"

namespace joulemap::advise {
namespace {

struct WaitingRule {
  IdleCause idle_cause;
  std::string_view rule_name;
  std::string_view waited_for_text;  // completes "The GPU waits for ..."
  std::string_view suggested_change;
  SavedEnergyFraction saved_fraction;
};

// Start-up and shutdown are missing: a short run cannot avoid them. So is "unknown": without a cause there is no
// change.
constexpr std::array<WaitingRule, 6> kWaitingRules = {{
    {IdleCause::data,
     "data_loading",
     "the DataLoader",
     "DataLoader(..., num_workers=N, pin_memory=True, persistent_workers=True); do less for each item, or do it once",
     {0.9, 0.4, 1.1}},
    {IdleCause::launch,
     "launch_bound",
     "kernels that the host launches too slowly",
     "torch.compile(model, mode=\"reduce-overhead\") or CUDA graphs; or a larger batch",
     {0.7, 0.2, 1.2}},
    {IdleCause::compilation,
     "compilation",
     "the compiler",
     "keep compiled code between runs (TORCHINDUCTOR_CACHE_DIR) and avoid inputs of ever new shapes (dynamic=True)",
     {0.7, 0.2, 1}},
    {IdleCause::evaluation,
     "evaluation",
     "evaluation code on the host",
     "evaluate less often or with larger batches, and compute metrics on the GPU",
     {0.5, 0.2, 1}},
    {IdleCause::checkpoint,
     "checkpoint",
     "checkpoints",
     "save checkpoints less often, or from a copy in another thread",
     {0.9, 0.4, 1.3}},
    {IdleCause::communication,
     "communication",
     "other ranks",
     "balance the ranks, and overlap communication with the backward pass (DistributedDataParallel buckets)",
     {0.4, 0.0, 1}},
}};

constexpr WaitingRule kSlowHostRule = {
    IdleCause::host,
    "host_code",
    "other code of the step on the host",
    "see which code runs meanwhile (joulemap report --by function) and move it out of the step or to a worker",
    {0.6, 0.1, 1.2}};
// Of the waiting after a synchronization and for other host code. Above 1, because reading a value also costs the
// kernels that compute it, and launches that are late afterwards.
constexpr WaitingRule kSynchronizationRule = {
    IdleCause::synchronization,
    "synchronization",
    "the host after it synchronized",
    "no .item(), .cpu(), .tolist() or print of a GPU tensor in every step; collect values and read them every N steps",
    {1.2, 0.4, 2.2}};

EnergyWithInterval sum_waiting_energy(const ReportResult& result, IdleCause cause) {
  EnergyWithInterval waiting_energy;
  for (const IdleEntry& entry : result.idle) {
    if (entry.cause == cause && is_gpu_device(entry.device))
      waiting_energy.add(entry.energy_j, entry.low_j, entry.high_j, entry.time_s);
  }
  return waiting_energy;
}

// "most in layers.0 (12 %), layers.1 (11 %)": the rows that the GPU waited for, with their share of such waiting.
std::string format_costliest_waits(const ReportResult& result, IdleCause cause) {
  constexpr std::size_t kMaxNamedWaits = 3;
  std::map<std::string, double> wait_energies_j;
  double sum_j = 0;
  for (const IdleEntry& entry : result.idle) {
    if (entry.cause != cause || !is_gpu_device(entry.device) || entry.energy_j.value_or(0) <= 0) continue;
    sum_j += *entry.energy_j;
    if (!entry.path.empty()) wait_energies_j[entry.path.back()] += *entry.energy_j;
  }
  std::vector<std::pair<double, std::string>> sorted_waits;
  for (const auto& [name, joules] : wait_energies_j) sorted_waits.emplace_back(joules, name);
  std::ranges::sort(sorted_waits, std::greater<>());
  std::string text;
  for (std::size_t i = 0; i < std::min(kMaxNamedWaits, sorted_waits.size()); ++i)
    text += fmt::format("{}{} ({:.0f} %)", i == 0 ? "most in " : ", ", sorted_waits[i].second,
                        100 * sorted_waits[i].first / sum_j);
  return text;
}

std::optional<Finding> make_waiting_finding(const RuleContext& run, const WaitingRule& advice,
                                            const EnergyWithInterval& waiting_energy) {
  if (waiting_energy.energy_j <= 0) return std::nullopt;
  Finding finding = make_finding(advice.rule_name, waiting_energy, advice.saved_fraction);
  finding.saved_time_s = advice.saved_fraction.expected_fraction * waiting_energy.time_s;
  finding.title = fmt::format("The GPU waits for {}", advice.waited_for_text);
  finding.change = advice.suggested_change;
  std::string evidence =
      fmt::format("idle for {:.1f} s of {:.1f} s", waiting_energy.time_s, run.reports.layer_report.elapsed_s);
  if (run.step_count > 0)
    evidence += fmt::format(", {:.2f} ms in each step", 1e3 * waiting_energy.time_s / run.step_count);
  finding.evidence.push_back(std::move(evidence));
  if (advice.idle_cause == IdleCause::launch) {
    if (std::string waits = format_costliest_waits(run.reports.layer_report, advice.idle_cause); !waits.empty())
      finding.evidence.push_back(std::move(waits));
  }
  return finding;
}

// Values of GPU tensors that the program reads in each step: .item() and the like copy them to the host.
double tensor_values_read_per_step(const RuleContext& run) {
  double copies = 0;
  for (const ReportRow& row : run.reports.kernel_report.rows) {
    if (is_gpu_device(row.device) && is_measured_program_row(row) && row.name.find("DtoH") != std::string::npos)
      copies += static_cast<double>(row.count.value_or(0));
  }
  return run.step_count > 0 ? copies / run.step_count : 0;
}

// Waiting for host code in a step is due to the synchronizations if the program reads values in every step: without
// them the host would run ahead of the GPU.
std::optional<Finding> make_slow_host_finding(const RuleContext& run) {
  constexpr double kMinTensorReadsPerStep = 0.8;
  const ReportResult& result = run.reports.layer_report;
  const EnergyWithInterval host = sum_waiting_energy(result, IdleCause::host);
  EnergyWithInterval waiting_energy = sum_waiting_energy(result, IdleCause::synchronization);
  const double reads_per_step = tensor_values_read_per_step(run);
  if (reads_per_step < kMinTensorReadsPerStep) return make_waiting_finding(run, kSlowHostRule, host);
  waiting_energy.add(host.energy_j, host.low_j, host.high_j, host.time_s);
  std::optional<Finding> finding = make_waiting_finding(run, kSynchronizationRule, waiting_energy);
  if (finding) finding->evidence.push_back(fmt::format("{:.1f} copies from the GPU in each step", reads_per_step));
  return finding;
}

}  // namespace

std::vector<Finding> collect_waiting_findings(const RuleContext& run) {
  std::vector<Finding> findings;
  for (const WaitingRule& advice : kWaitingRules) {
    const EnergyWithInterval waiting_energy = sum_waiting_energy(run.reports.layer_report, advice.idle_cause);
    if (std::optional<Finding> finding = make_waiting_finding(run, advice, waiting_energy))
      findings.push_back(*std::move(finding));
  }
  if (std::optional<Finding> finding = make_slow_host_finding(run)) findings.push_back(*std::move(finding));
  return findings;
}

}  // namespace joulemap::advise
