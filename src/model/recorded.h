// SPDX-License-Identifier: Apache-2.0
//
// Contents of a recording besides samples: its writers, marks, metrics, environment and calibration. Plain data. Times
// are CLOCK_MONOTONIC nanoseconds of the host that wrote them; ClockPair maps them to Unix time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/channel.h"
#include "model/diagnostics.h"

namespace joulemap {

// The process that wrote a part of a recording. Parts with equal recording_id form one recording.
struct RecordingSource {
  std::string recording_id;  // 32 hex digits: random, or derived from the name of --run
  std::string host;          // host name
  std::string boot_id;       // of the kernel's boot; monotonic times of equal boot_id are comparable
  std::int64_t pid = 0;
  std::int64_t started_ns = 0;       // when the process opened the recording
  std::string role;                  // "recorder" (joulemap record) or "process" (a measured process)
  std::vector<std::string> command;  // only of the recorder: the command that it ran
  std::string version;               // version of joulemap that wrote the part
};

// An imported recording has no boot: its boot_id equals the recording id, and its times are Unix times.
inline bool is_imported(const RecordingSource& source) { return source.boot_id == source.recording_id; }

// CLOCK_MONOTONIC and Unix time at the same moment; written about once a second.
struct ClockPair {
  std::int64_t monotonic_ns = 0;
  std::int64_t unix_ns = 0;
};

enum class MarkKind : std::uint8_t {
  command_begin,  // just before the command was started
  command_end,    // just after the command ended
  step,           // id: step number
  epoch,          // id: epoch number
  region_begin,   // jm.region: begin and end have the same id
  region_end,
  window_begin,  // jm.measure: begin and end have the same id
  window_end,
  kernels_lost,      // interval whose kernels were lost: time_ns is its begin, id its length in ns
  evaluation,        // the last `id` steps that began before time_ns were evaluation steps (capture/step_detector.h)
  step_retraction,   // the last `id` steps of this process so far were none: they belong to the step before, if any
  epoch_retraction,  // the same for epochs
};
inline constexpr std::size_t kMarkKindCount = 12;

struct Mark {
  std::int64_t time_ns = 0;
  MarkKind kind = MarkKind::step;
  std::uint64_t id = 0;
  std::uint64_t thread = 0;  // thread id of the operating system
  std::string name;
};

// A number that the measured program reported: loss, accuracy, samples.
struct Metric {
  std::int64_t time_ns = 0;
  std::optional<std::int64_t> step;
  std::string name;
  double value = 0;
};

// A property of the environment: ("driver", "580.159"), ("governor", "performance").
struct EnvironmentFact {
  std::string name;
  std::string value;
};

// Name of the fact that `record` was asked to replay modules at the end (--probe).
inline constexpr std::string_view kProbeFactName = "probe";

// Name of the fact that `record` was asked to delay the measured program at random moments (--dither).
inline constexpr std::string_view kDitherFactName = "dither";

// How a channel behaves on one device with one version of driver and firmware, as `calibrate` found. Unknown: none.
struct ChannelCalibration {
  std::string channel;              // channel name
  std::string device;               // UUID, PCI id, or empty
  std::string driver;               // versions of driver and firmware for which this is valid
  std::optional<double> refresh_s;  // update period of the value
  std::optional<double> refresh_spread_s;
  std::optional<double> phase_s;  // time from an update of phase_reference_channel to the next update of this channel
  std::string phase_reference_channel;  // name of another channel of the device
  std::optional<double> read_wall_s;    // median duration of one read
  std::optional<double> read_cpu_s;
  std::optional<double> idle_w;  // mean idle power
  std::int64_t created_unix_ns = 0;
  // The following are known only for a GPU that was loaded with square waves (model/load_phases.h).
  std::optional<double> lag_s;      // a value published at t covers time up to t - lag_s; none when not identified
  std::optional<double> lag_low_s;  // 90 % interval of lag_s
  std::optional<double> lag_high_s;
  std::optional<double> window_s;         // length, if a gauge shows a moving average
  std::optional<double> time_constant_s;  // time constant, if a gauge shows an exponential average
  std::optional<double> active_idle_w;    // mean power with a CUDA context and nothing running
  std::optional<double> loaded_w;         // mean power under load
  std::optional<double> settle_s;         // from the end of the load to 90 % of the fall to active_idle_w
  std::optional<double> settle_w;         // mean power during settle_s
  std::optional<double> sleep_s;          // from the end of the context to 90 % of the fall to idle_w
  std::optional<double> sleep_w;          // mean power during sleep_s
  std::optional<double> gain;             // power by this channel / power by the channel gain_reference_channel
  std::optional<double>
      gain_spread;  // standard deviation of `gain`; for gain_reference_channel itself, of its relative error
  std::string gain_reference_channel;
};

// Exit status of the recorded command and cost of recording it. A truncated recording has none.
struct RecordingEnd {
  std::optional<int> exit_code;
  std::optional<int> signal;
  double overhead_cpu_s = 0;
  std::uint64_t missed_ticks = 0;
  std::uint64_t lost_samples = 0;
  Diagnostics diagnostics;  // of the recorder: denied sensors, failed writes
};

}  // namespace joulemap
