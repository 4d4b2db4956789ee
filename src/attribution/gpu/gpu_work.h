// SPDX-License-Identifier: Apache-2.0
//
// GpuWorkCollector: collects the kernels that ran on the GPUs of one machine until all names are known, then builds a
// timeline for each GPU. The classes with the most time get a column each; the rest get a column per KernelKind. The
// timeline uses single kernels where all of them were recorded, and sums elsewhere. Memory: 16 bytes for each kernel
// here, and 16 more in the timeline. Pure; ns of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attribution/gpu/co_tenant_use.h"
#include "attribution/gpu/kernel_slowdown.h"
#include "attribution/gpu/kernel_timeline.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

// Timeline column of each kernel class of each process.
using ClassColumns = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t>;  // process, class id

struct DeviceWork {
  KernelTimeline timeline;
  ClassColumns class_columns;
  // Kernel sums as recorded: busy time of each column in each time span.
  struct Slice {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint16_t column;
    double busy_s;
    double slowdown = 1;  // mean slowdown of these kernels
  };
  std::vector<Slice> slices;
  // By column: the classes in it. One class, except in columns that collect the rest of a kind; none for co-tenants.
  std::vector<std::vector<ObservedKernels>> kernels_by_column = {};
  // The column of co-tenants' work.
  std::optional<std::uint16_t> co_tenant_column = {};
  FullSpeedDurations full_speed_ns = {};
};

class GpuWorkCollector {
 public:
  explicit GpuWorkCollector(TimeSpan span) : span_(span) {}

  // `scopes`: scopes of that process recorded so far.
  void add(std::uint32_t process, const Activity& activity, const ScopePaths& scopes = {});
  // Co-tenants' busy time on that device, as a class of its own. Call before finish().
  void add_co_tenants(const std::string& device, std::vector<BusySlice> slices) {
    co_tenant_slices_.insert_or_assign(device, std::move(slices));
  }
  // Call once, after everything was added. `process_names`: names by process, complete. Returns timelines by the device
  // name that ProcessActivity::device_of_queue() returns, and empties this object.
  std::map<std::string, DeviceWork> finish(const std::map<std::uint32_t, ProcessActivity>& names);

 private:
  // Kernels of one class in one queue of one process, either of repeated steps or of work that runs once.
  struct KernelSeries {
    std::uint32_t process;
    std::uint32_t queue;
    std::uint32_t class_id;
    bool is_one_time;
    bool operator<(const KernelSeries& other_series) const {
      return std::tie(process, queue, class_id, is_one_time) <
             std::tie(other_series.process, other_series.queue, other_series.class_id, other_series.is_one_time);
    }
  };
  struct StoredKernel {
    std::int64_t start_ns;
    std::uint32_t length_ns;
    std::uint32_t series;
  };
  struct KernelTimeSum {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::int64_t time_ns;
    std::uint32_t series;
    float mean_ns;  // mean kernel duration
  };
  struct SeriesColumn {
    DeviceWork* device = nullptr;
    std::uint16_t column = 0;
    const ProcessActivity* process_names = nullptr;
    bool is_one_time = false;
    std::uint32_t class_id = 0;
    double full_speed_ns = 0;  // kernel duration at full speed; 0: unknown
    std::span<const TimeSpan> idle_gaps = {};

    Extrapolation compute_extrapolation(const KernelTimeSum& sum) const;
  };

  std::uint32_t find_or_add_series(std::uint32_t process, std::uint32_t queue, std::uint32_t class_id,
                                   bool is_one_time);
  std::vector<SeriesColumn> assign_series_columns(const std::map<std::uint32_t, ProcessActivity>& names,
                                                  std::map<std::string, DeviceWork>& devices) const;
  void add_co_tenant_slices(std::map<std::string, DeviceWork>& devices) const;
  void find_full_speed_durations(std::vector<SeriesColumn>& series_columns) const;
  std::vector<bool> find_sums_with_recorded_kernels(const std::vector<SeriesColumn>& series_columns) const;

  TimeSpan span_;
  std::map<KernelSeries, std::uint32_t> series_index_;
  std::vector<std::int64_t> series_time_ns_;        // time of each series, from sums
  std::vector<std::uint64_t> series_kernel_count_;  // kernel count of each series, from sums
  std::vector<StoredKernel> kernels_;
  std::vector<KernelTimeSum> sums_;
  std::map<std::string, std::vector<BusySlice>> co_tenant_slices_;  // by device
};

}  // namespace joulemap::attribution
