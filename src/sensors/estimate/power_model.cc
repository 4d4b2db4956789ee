// SPDX-License-Identifier: Apache-2.0
#include "sensors/estimate/power_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "energy/edge_rules.h"

namespace joulemap::sensors {
namespace {

constexpr double kRelativeUncertaintyWithPowerLimit = 0.4;
constexpr double kRelativeUncertaintyWithoutPowerLimit = 0.6;
constexpr double kIdleUncertaintyLimitFraction = 0.2;  // as a fraction of the limit
static_assert(kBusyPowerFraction == kEstimateBusyPowerRatio * kIdleUncertaintyLimitFraction);
constexpr double kWattsPerThread = 3.5;

constexpr double kFirstTierMemoryGib = 16;
constexpr double kWattsPerFirstTierGib = 0.2;
constexpr double kWattsPerFurtherGib = 0.1;
constexpr double kMemoryRelativeUncertainty = 0.67;

long round_to_percent(double share) { return std::lround(share * 100); }

}  // namespace

std::vector<PackageModel> make_package_models(const MachineDescription& machine) {
  std::vector<PackageModel> models;
  const int packages = std::max(machine.package_count, 1);
  for (int package = 0; package < packages; ++package) {
    const auto index = static_cast<std::size_t>(package);
    const std::optional<double> limit = index < machine.limit_w.size() ? machine.limit_w[index] : std::nullopt;
    PackageModel model;
    std::string origin;
    if (limit) {
      model.limit_w = *limit;
      model.relative_uncertainty = kRelativeUncertaintyWithPowerLimit;
      origin = "its power limit";
    } else {
      const double threads = static_cast<double>(machine.thread_count) / packages;
      model.limit_w = kWattsPerThread * threads;
      model.relative_uncertainty = kRelativeUncertaintyWithoutPowerLimit;
      origin = fmt::format("{} W x {:.4g} hardware threads", kWattsPerThread, threads);
    }
    model.uncertainty_w = kIdleUncertaintyLimitFraction * model.limit_w;
    model.formula = fmt::format("{:.4g} W ({}) x ({} + {} x busy share), +-{:.3g} W and +-{} %", model.limit_w, origin,
                                kIdlePowerFraction, kBusyPowerFraction, model.uncertainty_w,
                                round_to_percent(model.relative_uncertainty));
    models.push_back(std::move(model));
  }
  return models;
}

double BusyTime::busy_s(double ticks_s, std::int64_t time_ns) noexcept {
  const double elapsed_s = std::max(seconds(time_ns - last_time_ns_.value_or(time_ns)), 0.0);
  last_time_ns_ = time_ns;
  busy_s_ = std::clamp(ticks_s, busy_s_, busy_s_ + elapsed_s);
  return busy_s_;
}

std::optional<MemoryModel> make_memory_model(const MachineDescription& machine) {
  if (!machine.memory_gib) return std::nullopt;
  const double gib = *machine.memory_gib;
  const double total_memory_power_w = kWattsPerFirstTierGib * std::min(gib, kFirstTierMemoryGib) +
                                      kWattsPerFurtherGib * std::max(gib - kFirstTierMemoryGib, 0.0);
  const int packages = std::max(machine.package_count, 1);
  MemoryModel model;
  model.power_w = total_memory_power_w / packages;
  model.relative_uncertainty = kMemoryRelativeUncertainty;
  model.formula = fmt::format("{:.4g} W = ({} W/GiB up to {} GiB, {} W/GiB beyond) x {:.3g} GiB{}, +-{} %",
                              model.power_w, kWattsPerFirstTierGib, kFirstTierMemoryGib, kWattsPerFurtherGib, gib,
                              packages > 1 ? fmt::format(" / {} packages", packages) : "",
                              round_to_percent(model.relative_uncertainty));
  return model;
}

}  // namespace joulemap::sensors
