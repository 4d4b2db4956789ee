// SPDX-License-Identifier: Apache-2.0
#include "sensors/measured_process_set.h"

#include <unistd.h>

#include <algorithm>

namespace joulemap::sensors {

MeasuredProcessSet::MeasuredProcessSet(MeasuredProcessCriteria measured, const char* proc)
    : criteria_(std::move(measured)), proc_path_(proc) {
  criteria_.root_pids.push_back(own_pid(proc).value_or(::getpid()));
  if (!criteria_.recording_folder.empty()) criteria_.recording_folder += '/';
}

bool MeasuredProcessSet::matches_criteria(pid_t pid) const noexcept {
  const auto is_descendant_of = [&](pid_t root) { return descends_from(pid, root, proc_path_); };
  return std::any_of(criteria_.root_pids.begin(), criteria_.root_pids.end(), is_descendant_of) ||
         was_started_with_variable(pid, criteria_.environment_assignment, proc_path_) ||
         (!criteria_.recording_folder.empty() &&
          has_open_file(pid, criteria_.recording_folder, "", proc_path_).value_or(false));
}

bool MeasuredProcessSet::contains(pid_t pid) noexcept {
  const std::optional<std::uint64_t> start_ticks = read_start_ticks(pid, proc_path_);
  // A process that has ended has no start time; it stays in the set if it was.
  const auto is_same_process = [&](const ProcessIdentity& recent_member) {
    return recent_member.pid == pid && pid > 0 && (!start_ticks || recent_member.start_ticks == *start_ticks);
  };
  if (std::any_of(recent_members_.begin(), recent_members_.end(), is_same_process)) return true;
  if (!start_ticks || !matches_criteria(pid)) return false;
  recent_members_[next_ring_index_] = {pid, *start_ticks};
  next_ring_index_ = (next_ring_index_ + 1) % recent_members_.size();
  return true;
}

}  // namespace joulemap::sensors
