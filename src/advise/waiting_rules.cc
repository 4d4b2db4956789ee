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

struct WaitingAdvice {
  IdleCause cause;
  std::string_view rule;
  std::string_view waits_for;  // completes "The GPU waits for ..."
  std::string_view change;
  SavedFraction saved;
};

// Start-up and shutdown are missing: a short run cannot avoid them. So is "unknown": without a cause there is no change.
constexpr std::array<WaitingAdvice, 6> kWaitingAdvice = {{
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

constexpr WaitingAdvice kHostAdvice = {
    IdleCause::host,
    "host_code",
    "other code of the step on the host",
    "see which code runs meanwhile (joulemap report --by function) and move it out of the step or to a worker",
    {0.6, 0.1, 1.2}};
// Of the waiting after a synchronization and for other host code. Above 1, because reading a value also costs the
// kernels that compute it, and launches that are late afterwards.
constexpr WaitingAdvice kSynchronizationAdvice = {
    IdleCause::synchronization,
    "synchronization",
    "the host after it synchronized",
    "no .item(), .cpu(), .tolist() or print of a GPU tensor in every step; collect values and read them every N steps",
    {1.2, 0.4, 2.2}};

Amount waiting_amount(const ReportResult& result, IdleCause cause) {
  Amount amount;
  for (const IdleEntry& entry : result.idle) {
    if (entry.cause == cause && is_gpu(entry.device))
      amount.add(entry.energy_j, entry.low_j, entry.high_j, entry.time_s);
  }
  return amount;
}

// "most in layers.0 (12 %), layers.1 (11 %)": the rows that the GPU waited for, with their share of such waiting.
std::string costliest_waits(const ReportResult& result, IdleCause cause) {
  constexpr std::size_t kShown = 3;
  std::map<std::string, double> waits_j;
  double sum_j = 0;
  for (const IdleEntry& entry : result.idle) {
    if (entry.cause != cause || !is_gpu(entry.device) || entry.energy_j.value_or(0) <= 0) continue;
    sum_j += *entry.energy_j;
    if (!entry.path.empty()) waits_j[entry.path.back()] += *entry.energy_j;
  }
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, joules] : waits_j) sorted.emplace_back(joules, name);
  std::ranges::sort(sorted, std::greater<>());
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, sorted.size()); ++i)
    text += fmt::format("{}{} ({:.0f} %)", i == 0 ? "most in " : ", ", sorted[i].second, 100 * sorted[i].first / sum_j);
  return text;
}

std::optional<Finding> waiting_finding(const Run& run, const WaitingAdvice& advice, const Amount& amount) {
  if (amount.energy_j <= 0) return std::nullopt;
  Finding finding = finding_of(advice.rule, amount, advice.saved);
  finding.saves_s = advice.saved.expected * amount.time_s;
  finding.title = fmt::format("The GPU waits for {}", advice.waits_for);
  finding.change = advice.change;
  std::string evidence = fmt::format("idle for {:.1f} s of {:.1f} s", amount.time_s, run.input.by_layer.elapsed_s);
  if (run.steps > 0) evidence += fmt::format(", {:.2f} ms in each step", 1e3 * amount.time_s / run.steps);
  finding.evidence.push_back(std::move(evidence));
  if (advice.cause == IdleCause::launch) {
    if (std::string waits = costliest_waits(run.input.by_layer, advice.cause); !waits.empty())
      finding.evidence.push_back(std::move(waits));
  }
  return finding;
}

// Values of GPU tensors that the program reads in each step: .item() and the like copy them to the host.
double values_read_per_step(const Run& run) {
  double copies = 0;
  for (const ReportRow& row : run.input.by_kernel.rows) {
    if (is_gpu(row.device) && is_program_row(row) && row.name.find("DtoH") != std::string::npos)
      copies += static_cast<double>(row.count.value_or(0));
  }
  return run.steps > 0 ? copies / run.steps : 0;
}

// Waiting for host code in a step is due to the synchronizations if the program reads values in every step: without
// them the host would run ahead of the GPU.
std::optional<Finding> host_finding(const Run& run) {
  constexpr double kReadsInMostSteps = 0.8;
  const ReportResult& result = run.input.by_layer;
  const Amount host = waiting_amount(result, IdleCause::host);
  Amount amount = waiting_amount(result, IdleCause::synchronization);
  const double reads = values_read_per_step(run);
  if (reads < kReadsInMostSteps) return waiting_finding(run, kHostAdvice, host);
  amount.add(host.energy_j, host.low_j, host.high_j, host.time_s);
  std::optional<Finding> finding = waiting_finding(run, kSynchronizationAdvice, amount);
  if (finding) finding->evidence.push_back(fmt::format("{:.1f} copies from the GPU in each step", reads));
  return finding;
}

}  // namespace

std::vector<Finding> waiting_findings(const Run& run) {
  std::vector<Finding> findings;
  for (const WaitingAdvice& advice : kWaitingAdvice) {
    const Amount amount = waiting_amount(run.input.by_layer, advice.cause);
    if (std::optional<Finding> finding = waiting_finding(run, advice, amount)) findings.push_back(*std::move(finding));
  }
  if (std::optional<Finding> finding = host_finding(run)) findings.push_back(*std::move(finding));
  return findings;
}

}  // namespace joulemap::advise
