// SPDX-License-Identifier: Apache-2.0
//
// StepDetails: layers and idle time of single steps of one process, for the page. Collects evenly chosen steps and the
// longest ones, so memory and time do not grow with the number of steps. Steps are added in order of time. Pure;
// CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/activity.h"
#include "model/time_points.h"

namespace joulemap::attribution {

using LayerKey = std::pair<std::vector<std::string>, std::string>;  // path, domain of the device

// A kernel of a step. Pointers must outlive the StepDetails.
struct StepKernel {
  TimeSpan span;
  const std::string* device_name = nullptr;
  const LayerKey* layer = nullptr;  // null: outside of layers
  double energy_j = 0;
};

struct LayerInStep {
  const LayerKey* layer = nullptr;  // null: kernels outside of layers
  double time_s = 0;
  double energy_j = 0;
};

struct CollectedStep {
  std::int64_t number = 0;
  std::int64_t begin_ns = 0;
  TimeSpan gpu_span;  // from its first kernel to that of the next step, or to its last one if that step was not traced
  std::uint64_t kernels = 0;
  std::vector<LayerInStep> layers;       // largest first
  std::map<std::string, double> busy_s;  // by device
};

class StepDetails {
 public:
  // Adds a step with kernel records. `first_kernel_ns`: start of its first kernel. Returns whether to call
  // add_kernels().
  bool add_step(const StepRecord& step, std::int64_t first_kernel_ns);
  // `kernels`: all kernels of the step added last.
  void add_kernels(std::span<const StepKernel> kernels);

  std::uint64_t step_count() const { return step_count_; }
  std::vector<const CollectedStep*> steps() const;  // by time

 private:
  bool is_evenly_spaced(std::uint64_t index) const { return index % even_stride_ == 0; }
  bool keep_if_among_longest(std::int64_t duration_ns, std::uint64_t index);
  void remove_unless_kept(std::uint64_t index);
  void double_stride();

  std::map<std::uint64_t, CollectedStep> steps_;                    // by index among the steps added
  std::set<std::pair<std::int64_t, std::uint64_t>> longest_steps_;  // duration, index
  std::uint64_t even_stride_ = 1;
  std::uint64_t even_step_count_ = 0;
  std::uint64_t step_count_ = 0;
  std::int64_t last_step_number_ = 0;
};

}  // namespace joulemap::attribution
