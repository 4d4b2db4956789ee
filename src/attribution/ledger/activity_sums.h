// SPDX-License-Identifier: Apache-2.0
//
// ActivitySums: what ran on one machine, summed in the second pass over the recording: captured CPU time over time,
// busy time of each GPU, names of scopes and kernels, counts of traced steps. The third pass attributes energy with
// these sums and the energy over time. Memory grows with the number of names, and by some 50 bytes for each recorded
// interval and queue. Times are CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/gpu/idle_gaps.h"
#include "attribution/gpu/traced_steps.h"
#include "attribution/ledger/scope_paths.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"

namespace joulemap::attribution {

// Largest number of kernel classes that get a row each; a program has some hundred. Further classes share one row,
// which bounds memory for a trace that names each of a million kernels differently.
inline constexpr std::size_t kMaxKernelClassRows = 20000;
inline constexpr std::string_view kOtherKernelsName = "other kernels";

// Steps of the whole run.
struct StepCounts {
  std::uint64_t traced_steps = 0;
  std::uint64_t all_steps = 0;
};

// Names and sums of one process.
struct ProcessActivity {
  ScopePaths scopes;
  std::unordered_map<std::uint32_t, KernelClass> kernel_classes;
  std::unordered_map<std::uint32_t, KernelQueue> kernel_queues;
  TracedSteps steps;
  StepCounts step_counts;
  std::string rank = {};                                                    // rank in a distributed run
  std::unordered_map<std::uint32_t, std::int64_t> kernel_ns_by_class = {};  // by class
  std::size_t grouped_class_count = 0;            // classes that share the name kOtherKernelsName
  std::optional<TimeSpan> steps_span = {};        // from the first step to the end of the last
  std::vector<TimeSpan> gaps_between_steps = {};  // gaps between steps, in order of time
  bool has_training = false;                      // has scopes of the mode "train"
  // By device: long gaps in which it ran no kernel of this process (idle_gaps.h), in order of time.
  std::map<std::string, std::vector<TimeSpan>> idle_gaps = {};

  // Whether kernels were recorded in some steps only. Also true for a part of the run, whose kernels are extrapolated
  // before they are added.
  bool is_partly_traced() const { return step_counts.traced_steps > 0 || steps.is_light_mode(); }
  // The interval and weight that kernel sums of the interval `span` extrapolate to in light mode; else `span` itself
  // and 1. Kernels that run once, such as those of probing, and lost kernels do not extrapolate.
  Extrapolation extrapolate(TimeSpan span, bool is_one_time, std::uint32_t class_id) const;
  // The GPU of a queue: its UUID, or "ordinal N" if the UUID is unknown; empty for an unknown queue.
  std::string device_of_queue(std::uint32_t queue) const;
  std::span<const TimeSpan> idle_gaps_of(const std::string& device) const;
  // Call after all activities were added. If there are more than kMaxKernelClassRows classes, renames those with the
  // least time to kOtherKernelsName.
  void group_rare_kernel_classes();
};

class ActivitySums {
 public:
  explicit ActivitySums(TimeSpan span) : span_(span), captured_cpu_s_(span, cell_count_for_span(span)) {}

  void add(std::uint32_t process, const Activity& activity);
  // For an activity that is not entirely inside the span: it shows that its GPUs are idle, not unknown, inside the span
  // where no kernels ran, and when their work began and ended.
  void add_activity_outside_span(std::uint32_t process, const Activity& activity);
  // Call after all activities were added.
  void finish();

  ProcessActivity& process_activity(std::uint32_t process) { return processes_[process]; }
  const std::map<std::uint32_t, ProcessActivity>& processes() const { return processes_; }
  bool has_activity() const { return has_activity_; }

  const TimeCurve& captured_cpu_s() const { return captured_cpu_s_; }
  // Kernel time of each GPU, by device.
  const std::map<std::string, TimeCurve>& gpu_busy_s() const { return gpu_busy_s_; }
  // Idle time of each GPU for which it is known what it waited for.
  const std::map<std::string, TimeCurve>& gpu_wait_s() const { return gpu_wait_s_; }
  // By device, sorted by begin: the intervals that kernel sums extrapolate to, without idle gaps. Kernel time is spread
  // evenly within each.
  const std::map<std::string, std::vector<TimeSpan>>& gpu_kernel_intervals() const { return gpu_kernel_intervals_; }
  // What a recorded wait of that device represents. A wait within an interval of kernels is spread over all of it, as its
  // kernels are: an idle gap too short to cut the interval (gpu/idle_gaps.h) must not find the device busy. Call after
  // finish().
  Extrapolation extrapolate_wait(const ProcessActivity& process, const std::string& device, TimeSpan wait,
                                 bool is_one_time) const;
  // From the first to the last kernel of each GPU in the whole run, also outside the span.
  const std::map<std::string, TimeSpan>& gpu_work_spans() const { return gpu_work_spans_; }

 private:
  struct DeviceInterval {
    std::uint32_t process;
    std::uint32_t queue;
    bool is_not_extrapolated;
    TimeSpan span;
    double time_s;         // busy or waiting
    bool is_lost = false;  // its kernels are not recorded (gpu/lost_kernels.h)
  };

  std::string device_of_interval(const DeviceInterval& interval);
  TimeCurve& find_or_add_device_curve(std::map<std::string, TimeCurve>& curves, const std::string& device) const;
  void add_busy_interval(const DeviceInterval& busy);
  void add_wait_interval(const DeviceInterval& wait);

  TimeSpan span_;
  std::map<std::uint32_t, ProcessActivity> processes_;
  TimeCurve captured_cpu_s_;
  // By process and queue: from the first to the last activity with kernels that are not all inside the span.
  std::map<std::pair<std::uint32_t, std::uint32_t>, TimeSpan> gpu_work_spans_outside_;
  std::vector<DeviceInterval> busy_intervals_;  // kept until the devices of the queues are known
  std::vector<DeviceInterval> wait_intervals_;  // likewise: waiting time
  std::vector<DeviceInterval> idle_gaps_;       // likewise: waits that are idle gaps
  std::map<std::string, TimeCurve> gpu_busy_s_;
  std::map<std::string, TimeCurve> gpu_wait_s_;
  std::map<std::string, std::vector<TimeSpan>> gpu_kernel_intervals_;
  std::map<std::string, TimeSpan> gpu_work_spans_;
  bool has_activity_ = false;
};

}  // namespace joulemap::attribution
