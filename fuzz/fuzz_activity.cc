// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes attribution: the input is the payload of an activity chunk. If it decodes, a given energy is attributed to it
// at every row level. Energies and times of rows must be finite and not negative, and the total energy is conserved.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "attribution/analysis/host_view.h"
#include "attribution/ledger/ledger.h"
#include "base/check.h"
#include "recording/activity_codec.h"

namespace {

using namespace joulemap;
using namespace joulemap::attribution;

constexpr std::int64_t kSecond_ns = 1'000'000'000;
constexpr TimeSpan kSpan{0, 3 * kSecond_ns};
constexpr double kTotalEnergy_j = 300;

TimeCurve make_constant_rate_curve(double amount) {
  TimeCurve curve(kSpan, cell_count_for_span(kSpan));
  curve.add(kSpan.begin_ns, kSpan.end_ns, amount);
  curve.finish();
  return curve;
}

// Counter updates every 100 ms. The energy between them varies (2 to 8 J), so that kernel classes can be separated.
std::vector<EnergyPoint> counter_updates() {
  std::vector<EnergyPoint> steps;
  for (int i = 0; i <= 30; ++i) steps.push_back({i * kSecond_ns / 10, 5.0 * i + i * i % 7});
  return steps;
}

void check_ledger(RowLevel level, const Activity& activity) {
  MachineEnergy energy{.cpu_energy_j = make_constant_rate_curve(kTotalEnergy_j)};
  energy.machine_cpu_s = make_constant_rate_curve(2);
  energy.gpus.emplace("ordinal 0", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(kTotalEnergy_j)});
  ActivitySums sums(kSpan);
  GpuWorkCollector work(kSpan);
  sums.add(0, activity);
  work.add(0, activity, sums.process_activity(0).scopes);
  sums.finish();
  std::map<std::string, DeviceWork> work_by_device = work.finish(sums.processes());
  if (const auto known = work_by_device.find("ordinal 0"); known != work_by_device.end()) {
    energy.gpus.at("ordinal 0").powers = find_kernel_powers(std::move(known->second), {counter_updates()}, kSpan);
  }
  Ledger ledger(level, energy, sums);
  ledger.add(0, activity);
  const LedgerResult result = ledger.finish();
  double rows_j = 0;
  for (const ReportRow& row : result.rows) {
    JOULEMAP_CHECK(!row.path.empty(), "a row without a path");
    JOULEMAP_CHECK(std::isfinite(row.time_s) && row.time_s >= 0, "a time that is none");
    JOULEMAP_CHECK(!row.energy_j || (std::isfinite(*row.energy_j) && *row.energy_j >= 0), "an energy that is none");
    rows_j += row.energy_j.value_or(0);
  }
  const double total_j = *result.attributed_j + *result.idle_j + *result.unattributed_j;
  JOULEMAP_CHECK(std::abs(rows_j - *result.attributed_j) <= 1e-6 * (1 + rows_j), "rows that do not add up");
  JOULEMAP_CHECK(std::abs(total_j - 2 * kTotalEnergy_j) <= 1e-6, "joules lost");
  JOULEMAP_CHECK(*result.unattributed_j >= -1e-6 && *result.idle_j >= -1e-6, "joules made up");
}

// Checks the timeline: phases do not overlap, and the energy quantiles of each layer are complete and sorted.
void check_timeline(const Activity& activity) {
  MachineEnergy energy{.cpu_energy_j = make_constant_rate_curve(kTotalEnergy_j)};
  energy.gpus.emplace("ordinal 0", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(kTotalEnergy_j)});
  ActivitySums sums(kSpan);
  sums.add(0, activity);
  sums.finish();
  MachineViewBuilder view(kSpan, energy, sums);
  view.add(0, activity);
  std::int64_t last_ns = kSpan.begin_ns;
  for (const NamedPhaseSpan& phase : view.phases()) {
    JOULEMAP_CHECK(phase.span.begin_ns >= last_ns && phase.span.end_ns >= phase.span.begin_ns, "bands that overlap");
    last_ns = phase.span.end_ns;
  }
  for (const LayerDistribution& spread : view.layer_distributions(ViewLimits{})) {
    JOULEMAP_CHECK(spread.quantiles_j.size() == kDistributionQuantileCount, "quantiles that are missing");
    JOULEMAP_CHECK(std::ranges::is_sorted(spread.quantiles_j), "quantiles that fall");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view payload(reinterpret_cast<const char*>(data), size);
  const auto decoded = recording::decode_activity(payload);
  if (!decoded) return 0;
  for (const RowLevel level : {RowLevel::phase, RowLevel::layer, RowLevel::op, RowLevel::tensor, RowLevel::function,
                               RowLevel::region, RowLevel::kernel}) {
    check_ledger(level, decoded->activity);
  }
  check_timeline(decoded->activity);
  const auto again = recording::decode_activity(recording::encode_activity(decoded->activity));
  JOULEMAP_CHECK(again.has_value(), "what was read cannot be written");
  return 0;
}
