// SPDX-License-Identifier: Apache-2.0
#include "calibration/square_waves.h"

#include <cmath>
#include <utility>

#include "calibration/gpu_load.h"
#include "statistics/random.h"

namespace joulemap::calibration {
namespace {

// A load that is still running is waited for longer than this; a finished one is not.
constexpr std::int64_t kMinObservedWait_ns = 100'000;
constexpr int kMaxFullLoadAttempts = 5;

// Log-uniform durations: short ones identify the lag of a sensor, long ones its averaging.
class LogUniformDurations {
 public:
  explicit LogUniformDurations(const SquareWavePlan& plan)
      : random_(plan.seed),
        min_ns_(static_cast<double>(plan.min_duration_ns)),
        max_ns_(static_cast<double>(plan.max_duration_ns)) {}

  std::int64_t draw_duration_ns() {
    return static_cast<std::int64_t>(min_ns_ * std::pow(max_ns_ / min_ns_, random_.uniform()));
  }

 private:
  statistics::Random random_;
  double min_ns_;
  double max_ns_;
};

LoadSpan keep_gpu_idle(std::int64_t length_ns, const IdleUntilCallback& idle_until) {
  const std::int64_t begin_ns = monotonic_ns();
  idle_until(begin_ns + length_ns);
  return {begin_ns, monotonic_ns()};
}

Status run_load_waves(GpuLoad& load, const SquareWavePlan& plan, const IdleUntilCallback& idle_until,
                      LoadPhases& phases) {
  LogUniformDurations random_durations(plan);
  phases.square_waves.begin_ns = monotonic_ns();
  while (monotonic_ns() < phases.square_waves.begin_ns + plan.total_waves_ns) {
    Result<LoadSpan> load_span = load.run(random_durations.draw_duration_ns());
    if (!load_span) return std::move(load_span).error();
    phases.load_spans.push_back(*load_span);
    idle_until(monotonic_ns() + random_durations.draw_duration_ns());
  }
  phases.square_waves.end_ns = monotonic_ns();
  return Done{};
}

// The length of a load follows from the speed of the last one. On a busy host the end of that one is seen late, the GPU
// seems slow, and the load may be over before this waits for it: its end would be unknown. Then runs a longer one.
Result<LoadSpan> run_full_load(GpuLoad& load, const SquareWavePlan& plan, const IdleUntilCallback& idle_until) {
  std::int64_t requested_ns = plan.full_load_ns;
  for (int attempt = 0; attempt < kMaxFullLoadAttempts; ++attempt, requested_ns *= 2) {
    if (Status start_status = load.start(requested_ns); !start_status) return std::move(start_status).error();
    // For most of the load, idle_until fetches sensor values. wait_until_done() then spins, so that it detects the end at
    // once.
    idle_until(monotonic_ns() + plan.full_load_ns * 3 / 4);
    const std::int64_t wait_begin_ns = monotonic_ns();
    Result<LoadSpan> span = load.wait_until_done();
    if (!span || span->end_ns - wait_begin_ns >= kMinObservedWait_ns) return span;
  }
  return Error{ErrorCode::io, "the host was too busy to see when its load ended",
               "calibrate again while nothing else runs"};
}

}  // namespace

Result<LoadPhases> run_square_waves(const CudaDriver& driver, std::string_view uuid, const SquareWavePlan& plan,
                                    const IdleUntilCallback& idle_until) {
  Result<GpuLoad> load = GpuLoad::open(driver, uuid);
  if (!load) return std::move(load).error();
  LoadPhases phases;
  phases.idle_with_context = keep_gpu_idle(plan.active_idle_ns, idle_until);
  if (Status wave_status = run_load_waves(*load, plan, idle_until, phases); !wave_status)
    return std::move(wave_status).error();
  Result<LoadSpan> full_load = run_full_load(*load, plan, idle_until);
  if (!full_load) return std::move(full_load).error();
  phases.full_load = *full_load;
  phases.after_load = keep_gpu_idle(plan.idle_after_load_ns, idle_until);
  if (Status close_status = load->close(); !close_status) return std::move(close_status).error();
  phases.idle_after_context = keep_gpu_idle(plan.idle_after_release_ns, idle_until);
  return phases;
}

}  // namespace joulemap::calibration
