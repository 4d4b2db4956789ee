// SPDX-License-Identifier: Apache-2.0
//
// GpuWork: what ran on the GPUs of one machine, kept until names and counters are known, and then turned into a timeline for
// each GPU: the classes that took the most time one by one, the rest by kind. Single kernels where all of them were kept,
// sums elsewhere. 16 bytes a kernel here, as many in the timeline. Pure; CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attribution/gpu/kernel_pace.h"
#include "attribution/gpu/kernel_timeline.h"
#include "attribution/gpu/others_use.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

// The class that kernels of a process are of, as columns of a timeline.
using ColumnOf = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t>;  // process, class id

struct DeviceWork {
  KernelTimeline timeline;
  ColumnOf column_of;
  // Sums as they were told: how long each column was busy in which stretch of time.
  struct Stretch {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint16_t column;
    double busy_s;
    double slowness = 1;  // of these kernels, on average
  };
  std::vector<Stretch> stretches;
  // By column: the classes that it stands for, one but for the rest of a kind.
  std::vector<std::vector<SeenKernels>> kernels = {};
  // The column of what ran there that is not the command's.
  std::optional<std::uint16_t> others = {};
  UsualLengths usual_ns = {};
};

class GpuWork {
 public:
  explicit GpuWork(TimeSpan span) : span_(span) {}

  // `places`: of that process, as far as they were told.
  void add(std::uint32_t process, const Activity& activity, const PlacePaths& places = {});
  // What others ran on that device, as one class of its own. Before finish().
  void add_others(const std::string& device, std::vector<BusyStretch> stretches) {
    others_.insert_or_assign(device, std::move(stretches));
  }
  // Once everything was added; `names` of its processes, finished. By device, as ProcessNames calls it. Empties this.
  std::map<std::string, DeviceWork> finish(const std::map<std::uint32_t, ProcessNames>& names);

 private:
  // Kernels of one class in one queue of one process, of the run or of probing.
  struct Line {
    std::uint32_t process;
    std::uint32_t queue;
    std::uint32_t class_id;
    bool probes;
    bool operator<(const Line& other) const {
      return std::tie(process, queue, class_id, probes) <
             std::tie(other.process, other.queue, other.class_id, other.probes);
    }
  };
  struct Kept {
    std::int64_t start_ns;
    std::uint32_t length_ns;
    std::uint32_t line;
  };
  struct Sum {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::int64_t time_ns;
    std::uint32_t line;
    float mean_ns;  // of one kernel
  };
  struct Where {
    DeviceWork* device = nullptr;
    std::uint16_t column = 0;
    const ProcessNames* names = nullptr;
    bool probes = false;
    std::uint32_t class_id = 0;
    double usual_ns = 0;  // of a kernel; 0: not known

    StandsFor stands_for(const Sum& sum) const;
  };

  std::uint32_t line_of(std::uint32_t process, std::uint32_t queue, std::uint32_t class_id, bool probes);
  std::vector<Where> place_lines(const std::map<std::uint32_t, ProcessNames>& names,
                                 std::map<std::string, DeviceWork>& devices) const;
  void place_others(std::map<std::string, DeviceWork>& devices) const;
  void find_usual_lengths(std::vector<Where>& where) const;
  std::vector<bool> detailed_stretches(const std::vector<Where>& where) const;

  TimeSpan span_;
  std::map<Line, std::uint32_t> lines_;
  std::vector<std::int64_t> line_ns_;      // time of each, from sums
  std::vector<std::uint64_t> line_count_;  // likewise
  std::vector<Kept> kernels_;
  std::vector<Sum> sums_;
  std::map<std::string, std::vector<BusyStretch>> others_;  // by device
};

}  // namespace joulemap::attribution
