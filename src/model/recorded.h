// SPDX-License-Identifier: Apache-2.0
//
// What a recording holds besides samples: who wrote it, when things happened, what the program reported. Plain data.
// Times are CLOCK_MONOTONIC nanoseconds of the host that wrote them; ClockPair ties them to Unix time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/channel.h"
#include "model/diagnostics.h"

namespace joulemap {

// Who wrote a part of a recording. Several sources make one recording when their recording_id is equal.
struct RecordingSource {
  std::string recording_id;  // 32 hex digits, made by `record`
  std::string host;          // name of the machine
  std::string boot_id;       // of the machine's present boot; with it monotonic times can be compared
  std::int64_t pid = 0;
  std::int64_t started_ns = 0;       // when that process opened the recording
  std::string role;                  // "recorder" or "process"
  std::vector<std::string> command;  // of the recorder: what it ran
  std::string version;               // of joulemap
};

// An import is of no boot of any machine: its parts share the recording's id, and their times are Unix times.
inline bool is_imported(const RecordingSource& source) { return source.boot_id == source.recording_id; }

// Two clocks at the same moment, once a second.
struct ClockPair {
  std::int64_t monotonic_ns = 0;
  std::int64_t unix_ns = 0;
};

enum class MarkKind : std::uint8_t {
  command_begin,  // just before the command was let go
  command_end,    // just after it had ended
  step,           // id: its number
  epoch,          // id: its number
  region_begin,   // jm.region: id ties begin and end together
  region_end,
  window_begin,  // jm.measure: id ties begin and end together
  window_end,
  kernels_lost,  // a stretch whose kernels nobody told: time_ns its begin, id how many nanoseconds it lasted
};
inline constexpr std::size_t kMarkKinds = 9;

struct Mark {
  std::int64_t time_ns = 0;
  MarkKind kind = MarkKind::step;
  std::uint64_t id = 0;
  std::uint64_t thread = 0;  // kernel's thread id
  std::string name;
};

// A number the program reported: loss, accuracy, samples.
struct Metric {
  std::int64_t time_ns = 0;
  std::optional<std::int64_t> step;
  std::string name;
  double value = 0;
};

// A fact about the setting: ("driver", "580.159"), ("governor", "performance").
struct EnvironmentFact {
  std::string name;
  std::string value;
};

// The one that says that `record` was asked to replay modules at the end.
inline constexpr std::string_view kProbeFact = "probe";

// And that it was to be held up now and then.
inline constexpr std::string_view kDitherFact = "dither";

// What is known about how a channel behaves on this device, driver and firmware.
struct ChannelCalibration {
  std::string channel;              // its name
  std::string device;               // UUID, PCI id, or empty
  std::string driver;               // version of driver and firmware it holds for
  std::optional<double> refresh_s;  // how often the value is renewed
  std::optional<double> refresh_spread_s;
  std::optional<double> phase_s;      // of its steps after those of phase_of, modulo the refresh
  std::string phase_of;               // another channel of the device
  std::optional<double> read_wall_s;  // median of one read
  std::optional<double> read_cpu_s;
  std::optional<double> idle_w;  // mean power while nothing ran
  std::int64_t made_unix_ns = 0;
  // Of a GPU that was loaded in square waves (model/load_phases.h).
  std::optional<double> lag_s;  // so long before a value is shown ends what it tells of; nothing where none fits best
  std::optional<double> lag_low_s;  // between these, 90 %
  std::optional<double> lag_high_s;
  std::optional<double> window_s;       // of a gauge: a mean of so much time,
  std::optional<double> memory_s;       // or one that forgets exponentially, with this time constant
  std::optional<double> active_idle_w;  // with a context, nothing running
  std::optional<double> loaded_w;       // while the load ran
  std::optional<double> settle_s;       // from the end of the load down to active idle, nine tenths of the way
  std::optional<double> settle_w;       // the mean meanwhile
  std::optional<double> sleep_s;        // from the end of the context down to idle, likewise
  std::optional<double> sleep_w;
  std::optional<double> gain;         // what it shows for each watt of gain_of
  std::optional<double> gain_spread;  // a standard deviation of that; of the counter: of its own gain
  std::string gain_of;
};

// How the recorded command ended and what recording it cost. Missing in a recording that was cut off.
struct RecordingEnd {
  std::optional<int> exit_code;
  std::optional<int> signal;
  double own_cpu_s = 0;
  std::uint64_t missed_ticks = 0;
  std::uint64_t lost_samples = 0;
  Diagnostics diagnostics;  // of the recorder: sensors that were denied, writes that failed
};

}  // namespace joulemap
