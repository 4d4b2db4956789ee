// SPDX-License-Identifier: Apache-2.0
//
// ActivitySums: the second look at what ran: how much CPU time was captured when, how busy each GPU was, what the places and
// kernels are called, and how many steps were listened to. With these and the energy over time, the third look can give each
// row its part. Memory grows with names and cells, not with the length. One machine; times are its CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/gpu/followed_steps.h"
#include "attribution/ledger/place_paths.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"

namespace joulemap::attribution {

// A program has some hundred kernels. So many get a row each; what is beyond them is one row, so that a trace which names
// each of a million kernels differently is read in bounded memory.
inline constexpr std::size_t kMostKernelNames = 20000;
inline constexpr std::string_view kOtherKernels = "other kernels";

// Of the whole run.
struct StepCounts {
  std::uint64_t traced = 0;
  std::uint64_t all = 0;
};

// What is known of one process.
struct ProcessNames {
  PlacePaths places;
  std::unordered_map<std::uint32_t, KernelClass> classes;
  std::unordered_map<std::uint32_t, KernelQueue> queues;
  FollowedSteps steps;
  StepCounts traced;
  std::string rank = {};  // of a distributed run
  std::unordered_map<std::uint32_t, std::int64_t> kernel_ns = {};  // by class
  std::size_t grouped_kernels = 0;                                 // classes that share the name kOtherKernels

  // What sums of kernels of a stretch of time stand for. Those of probing, and lost ones, only for themselves.
  StandsFor stands_for(TimeSpan told, bool probes, std::uint32_t class_id) const;
  // Which GPU a queue is of: its UUID, or "ordinal N".
  std::string device_of(std::uint32_t queue) const;
  // After all were added: of too many classes of kernels, those of least time lose their names.
  void group_kernels();
};

class ActivitySums {
 public:
  explicit ActivitySums(TimeSpan span) : span_(span), captured_s_(span, cells_for(span)) {}

  void add(std::uint32_t process, const Activity& activity);
  // Of an activity outside of the span: a GPU that runs its kernels is idle inside, not unknown.
  void add_used_queues(std::uint32_t process, const Activity& activity);
  // After everything was added.
  void finish();

  ProcessNames& names(std::uint32_t process) { return processes_[process]; }
  const std::map<std::uint32_t, ProcessNames>& processes() const { return processes_; }
  bool has_activity() const { return has_activity_; }

  const TimeCurve& captured_cpu_s() const { return captured_s_; }
  // Kernel time of each GPU, by device.
  const std::map<std::string, TimeCurve>& gpu_busy_s() const { return gpu_busy_s_; }
  // The stretches of time that it was told in, within which it is spread evenly. By device, by their beginning.
  const std::map<std::string, std::vector<TimeSpan>>& gpu_stretches() const { return gpu_stretches_; }

 private:
  struct Busy {
    std::uint32_t process;
    std::uint32_t queue;
    bool stands_for_itself;
    TimeSpan told;
    double busy_s;
  };

  TimeSpan span_;
  std::map<std::uint32_t, ProcessNames> processes_;
  TimeCurve captured_s_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> used_;  // process and queue
  std::vector<Busy> busy_;  // until the queues' devices are known
  std::map<std::string, TimeCurve> gpu_busy_s_;
  std::map<std::string, std::vector<TimeSpan>> gpu_stretches_;
  bool has_activity_ = false;
};

}  // namespace joulemap::attribution
