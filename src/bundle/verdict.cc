// SPDX-License-Identifier: Apache-2.0
#include "bundle/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "model/background_row.h"
#include "model/data_loss.h"

namespace joulemap::bundle {
namespace {

constexpr std::array<std::string_view, 3> kThrottlingCodes = {"power_limited", "clocks_slowed", "slowed_kernels"};
constexpr std::array<std::string_view, 5> kCoTenancyDiagnosticCodes = {
    "gpu_shared", "gpu_shared_untold", "gpu_owner_unknown", "mig_mode", "mig_whole_gpu"};
constexpr std::array<std::string_view, 1> kShortRunDiagnosticCodes = {"window_too_short"};
constexpr double kMinCoTenantEnergyShare = 0.05;
constexpr double kMinSensorUpdates = 10;  // with fewer, the edges of the run are more than 10 % of it
// NVML's energy counter updates about every 100 ms: for sensors whose period is unknown.
constexpr double kAssumedUpdatePeriod_s = 0.1;

// Messages of the diagnostics that `is_wanted`, in one sentence; empty without any.
std::string join_diagnostic_messages(const ReportResult& report,
                                     const std::function<bool(std::string_view)>& is_wanted) {
  std::vector<std::string> messages;
  for (const Diagnostic& note : report.diagnostics.list()) {
    if (is_wanted(note.code)) messages.push_back(fmt::format("{} ({})", note.message, note.code));
  }
  return fmt::format("{}", fmt::join(messages, "; "));
}

template <std::size_t kCount>
std::string join_diagnostic_messages(const ReportResult& report, const std::array<std::string_view, kCount>& codes) {
  return join_diagnostic_messages(report,
                                  [&codes](std::string_view code) { return std::ranges::count(codes, code) > 0; });
}

double measured_or_estimated_energy_j(const EnergyTotals& totals) {
  return joules_of(totals.measured).value_or(joules_of(totals.estimated).value_or(0));
}

// With several machines, "cpu" follows the name of its machine: "vm/cpu".
bool is_cpu_device(std::string_view device) { return device == "cpu" || device.ends_with("/cpu"); }

// Every machine has other processes. On a GPU they are co-tenants however little they use; on a CPU, from
// kMinCoTenantEnergyShare of the energy on.
std::string judge_co_tenancy(const ReportResult& report) {
  std::string text = join_diagnostic_messages(report, kCoTenancyDiagnosticCodes);
  double background_j = 0;
  bool uses_gpu = false;
  for (const ReportRow& row : report.rows) {
    if (!is_background_row(row) || row.energy_j.value_or(0) <= 0) continue;
    background_j += *row.energy_j;
    uses_gpu = uses_gpu || !is_cpu_device(row.device);
  }
  const double total_j = measured_or_estimated_energy_j(report.totals);
  const double share = total_j > 0 ? background_j / total_j : 1;
  if (background_j > 0 && (uses_gpu || share >= kMinCoTenantEnergyShare))
    text += fmt::format("{}other processes used {:.4g} J, {:.0f} % of the energy", text.empty() ? "" : "; ",
                        background_j, 100 * share);
  return text;
}

std::string judge_run_length(const ReportResult& report) {
  std::string text = join_diagnostic_messages(report, kShortRunDiagnosticCodes);
  if (!text.empty() || !report.totals.measured) return text;
  double period_s = 0;
  for (const CounterUpdateTiming& timing : report.counter_updates) period_s = std::max(period_s, timing.period_s);
  if (period_s == 0) period_s = kAssumedUpdatePeriod_s;
  if (report.elapsed_s >= kMinSensorUpdates * period_s) return {};
  return fmt::format("the run of {:.3g} s has fewer than {:.0f} updates of its slowest sensor, one per {:.3g} s",
                     report.elapsed_s, kMinSensorUpdates, period_s);
}

}  // namespace

MeasurementVerdict judge_measurement(const ReportResult& report, std::optional<double> clock_jump_s) {
  MeasurementVerdict verdict;
  const auto add = [&verdict](std::string_view reason, std::string sentence) {
    if (!sentence.empty()) verdict.reasons.push_back({std::string(reason), std::move(sentence)});
  };
  add("throttled", join_diagnostic_messages(report, kThrottlingCodes));
  add("co_tenant", judge_co_tenancy(report));
  std::string gaps = join_diagnostic_messages(report, [](std::string_view code) { return is_data_loss(code); });
  if (gaps.empty() && !report.complete) gaps = "the recording is incomplete";
  add("gaps", std::move(gaps));
  if (!report.totals.measured && report.totals.estimated)
    add("estimates_only", "no counted domain was measured: all energies are estimates");
  if (!report.totals.measured && !report.totals.estimated) add("no_energy", "no sensor returned a value");
  if (clock_jump_s)
    add("clock_jump", fmt::format("the wall clock moved by {:.3g} s against the monotonic clock", *clock_jump_s));
  add("too_short", judge_run_length(report));
  return verdict;
}

}  // namespace joulemap::bundle
