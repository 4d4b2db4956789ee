// SPDX-License-Identifier: Apache-2.0
#include "sensors/measured_process_set.h"

#include <unistd.h>

#include <algorithm>

namespace joulemap::sensors {

MeasuredProcessSet::MeasuredProcessSet(MeasuredProcessCriteria measured, const char* proc)
    : measured_(std::move(measured)), proc_(proc) {
  measured_.roots.push_back(own_pid(proc).value_or(::getpid()));
  if (!measured_.recording_folder.empty()) measured_.recording_folder += '/';
}

bool MeasuredProcessSet::matches_criteria(pid_t pid) const noexcept {
  const auto is_below = [&](pid_t root) { return descends_from(pid, root, proc_); };
  return std::any_of(measured_.roots.begin(), measured_.roots.end(), is_below) ||
         was_started_with_variable(pid, measured_.variable, proc_) ||
         (!measured_.recording_folder.empty() &&
          has_open_file(pid, measured_.recording_folder, "", proc_).value_or(false));
}

bool MeasuredProcessSet::contains(pid_t pid) noexcept {
  const std::optional<std::uint64_t> start_ticks = start_ticks_of(pid, proc_);
  // A process that has ended has no start time; it stays in the set if it was.
  const auto is_it = [&](const Identity& known) {
    return known.pid == pid && pid > 0 && (!start_ticks || known.start_ticks == *start_ticks);
  };
  if (std::any_of(known_.begin(), known_.end(), is_it)) return true;
  if (!start_ticks || !matches_criteria(pid)) return false;
  known_[next_] = {pid, *start_ticks};
  next_ = (next_ + 1) % known_.size();
  return true;
}

}  // namespace joulemap::sensors
