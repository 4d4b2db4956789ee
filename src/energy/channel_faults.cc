// SPDX-License-Identifier: Apache-2.0
#include "energy/channel_faults.h"

#include <fmt/format.h>

#include <string_view>

#include "base/amount_text.h"
#include "energy/edge_rules.h"

namespace joulemap {
namespace {

std::uint64_t failure_count(const EnergyTally& tally, ReadCode code) {
  return tally.failure_counts[static_cast<std::size_t>(code)];
}

struct ReadFault {
  ReadCode code;
  std::string_view diagnostic_code;
  std::string_view problem;
  std::string_view remedy;
};

constexpr ReadFault kReadFaults[] = {
    {ReadCode::torn, "torn_reading",
     "has readings that fit neither the one before nor the one after; they were dropped", ""},
    {ReadCode::garbage, "garbage_reading", "contained text that is not a number",
     "check the file and the driver that writes it"},
    {ReadCode::vanished, "sensor_vanished", "went away",
     "its driver was unloaded or the device was removed; see dmesg"},
    {ReadCode::denied, "sensor_denied", "is no longer readable (permission denied)",
     "run joulemap doctor to see the required permission"},
    {ReadCode::failed, "sensor_failed", "could not be read", "see dmesg"},
};

}  // namespace

Diagnostics describe_faults(const ChannelEnergy& energy) {
  Diagnostics diagnostics;
  const Channel& channel = energy.channel;
  if (!measures_energy_or_power(channel)) return diagnostics;
  const std::string subject = fmt::format("{} ({})", channel.domain, channel.source);
  for (const ReadFault& fault : kReadFaults) {
    if (const std::uint64_t count = failure_count(energy.tally, fault.code)) {
      diagnostics.add({std::string(fault.diagnostic_code), count, fmt::format("{} {}", subject, fault.problem),
                       std::string(fault.remedy)});
    }
  }
  if (energy.tally.reset_count > 0) {
    const std::string_view reason = channel.wrap_range ? "" : "; its range is unknown, so a wrap looks like a reset";
    diagnostics.add(
        {"counter_reset", energy.tally.reset_count,
         fmt::format("{} decreased, and not by a wrap{}; the energy of that moment is missing", subject, reason), ""});
  }
  if (energy.tally.possible_missed_wrap_count > 0) {
    diagnostics.add(
        {"wrap_missed", energy.tally.possible_missed_wrap_count,
         fmt::format(
             "{} was not read for so long that it may have wrapped unnoticed; the energy of that time is missing",
             subject),
         "joulemap was stopped or got no CPU time"});
  }
  if (energy.frozen_tail_s > 0) {
    diagnostics.add({"counter_frozen", 1,
                     fmt::format("{} did not change in the last {}; the energy of that time is missing", subject,
                                 amount_text(energy.frozen_tail_s, "s")),
                     ""});
  } else if (energy.missing_reason == "frozen") {
    diagnostics.add({"counter_frozen", 1, fmt::format("{} never increased: its energy is unknown", subject),
                     "firmware or a virtual machine freezes it, or it updates less often than this run lasted"});
  } else if (energy.missing_reason == "no-readings") {
    diagnostics.add(
        {"energy_missing", 1, fmt::format("{} has no usable readings: its energy is unknown", subject), ""});
  } else if (energy.missing_reason == "too-short" && (energy.missing_s > 0 || !has_counter_updates(channel))) {
    diagnostics.add({"energy_missing", 1,
                     fmt::format("{}: {} readings do not cover the command: its energy is unknown", subject,
                                 energy.tally.valid_reading_count),
                     ""});
  } else if (energy.missing_reason == "too-short") {
    diagnostics.add(
        {"window_too_short", 1,
         fmt::format("{} did not change while the command ran: the command is shorter than the sensor's update period",
                     subject),
         "repeat it: joulemap stat -r 20 -- sh -c 'for i in $(seq 1000); do CMD; done'"});
  }
  if (energy.too_short_window_s > 0) {
    diagnostics.add({"window_too_short", 1,
                     fmt::format("{}: {} is too short for an estimate, because CPU time is counted in ticks of {:g} ms",
                                 subject, amount_text(energy.too_short_window_s, "s"), 1e3 * channel.refresh_s),
                     "repeat it: joulemap stat -r 20 -- sh -c 'for i in $(seq 1000); do CMD; done'"});
  }
  if (energy.interpolated_s > 0) {
    diagnostics.add({"readings_missing", energy.pause_count,
                     fmt::format("{} was not read for {}; the energy of that time is estimated from the readings "
                                 "around it, and the interval accounts for the observed range of power",
                                 channel.domain, amount_text(energy.interpolated_s, "s")),
                     "joulemap was stopped or got no CPU time, or the sensor failed"});
  } else if (energy.total_pause_s > 0) {
    diagnostics.add(
        {"readings_paused", energy.pause_count,
         fmt::format("{} was not read for {}; its counter covers that time, but not when in it the energy was used",
                     channel.domain, amount_text(energy.total_pause_s, "s")),
         "joulemap was stopped or got no CPU time, or the sensor failed"});
  }
  const double other_missing_s = energy.missing_s - energy.frozen_tail_s - energy.interpolated_s;
  if (energy.joules && other_missing_s > 0.05) {
    diagnostics.add({"energy_missing", 1,
                     fmt::format("{}: the energy of {} is missing; the interval accounts for it", subject,
                                 amount_text(other_missing_s, "s")),
                     ""});
  }
  return diagnostics;
}

}  // namespace joulemap
