// SPDX-License-Identifier: Apache-2.0
#include "calibration/square_waves.h"

#include <cmath>
#include <random>
#include <utility>

#include "calibration/gpu_load.h"

namespace joulemap::calibration {
namespace {

// Log-uniform durations: short ones identify the lag of a sensor, long ones its averaging.
class Lengths {
 public:
  explicit Lengths(const WavePlan& plan)
      : engine_(plan.seed),
        shortest_(static_cast<double>(plan.shortest_ns)),
        longest_(static_cast<double>(plan.longest_ns)) {}

  std::int64_t next_ns() {
    const double uniform = static_cast<double>(engine_() >> 11) * 0x1p-53;
    return static_cast<std::int64_t>(shortest_ * std::pow(longest_ / shortest_, uniform));
  }

 private:
  std::mt19937_64 engine_;
  double shortest_;
  double longest_;
};

LoadSpan rest_for(std::int64_t length_ns, const Rest& rest) {
  const std::int64_t begin_ns = monotonic_ns();
  rest(begin_ns + length_ns);
  return {begin_ns, monotonic_ns()};
}

Status make_waves(GpuLoad& load, const WavePlan& plan, const Rest& rest, LoadPhases& phases) {
  Lengths lengths(plan);
  phases.waves.begin_ns = monotonic_ns();
  while (monotonic_ns() < phases.waves.begin_ns + plan.waves_ns) {
    Result<LoadSpan> on = load.run(lengths.next_ns());
    if (!on) return std::move(on).error();
    phases.loads.push_back(*on);
    rest(monotonic_ns() + lengths.next_ns());
  }
  phases.waves.end_ns = monotonic_ns();
  return Done{};
}

}  // namespace

Result<LoadPhases> load_in_square_waves(const CudaDriver& driver, std::string_view uuid, const WavePlan& plan,
                                        const Rest& rest) {
  Result<GpuLoad> load = GpuLoad::open(driver, uuid);
  if (!load) return std::move(load).error();
  LoadPhases phases;
  phases.active_idle = rest_for(plan.active_idle_ns, rest);
  if (Status made = make_waves(*load, plan, rest, phases); !made) return std::move(made).error();
  if (Status started = load->start(plan.full_ns); !started) return std::move(started).error();
  // Sensor values must be fetched meanwhile; the end is awaited without pauses.
  rest(monotonic_ns() + plan.full_ns * 3 / 4);
  Result<LoadSpan> full = load->wait();
  if (!full) return std::move(full).error();
  phases.full = *full;
  phases.after = rest_for(plan.after_ns, rest);
  if (Status closed = load->close(); !closed) return std::move(closed).error();
  phases.released = rest_for(plan.released_ns, rest);
  return phases;
}

}  // namespace joulemap::calibration
