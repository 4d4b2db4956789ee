// SPDX-License-Identifier: Apache-2.0
//
// CauseEvidence: evidence for why the rows of a ledger use energy (model/cause_class.h). RowCauses draws the
// conclusion.
//
// GPU: kernels count as compute; copies, fills and kernels that only move or fill memory as memory; exchanges with
// other ranks as synchronization. CPU: a blocked thread counts as synchronization, a thread that works in a scope that
// launches GPU work as launch. A copy from the device blocks the host until all queued work is done: time beyond the
// median launch time is then synchronization, even if the thread spins. Where most launches are other copies, that time
// is memory. A thread that launches nothing computes, unless the name of its scope shows that it spins or copies: no
// counter distinguishes these. For functions known from stack samples only, names determine the class. Pure; seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/activity.h"
#include "model/cause_class.h"

namespace joulemap::attribution {

enum class GpuActivityKind : std::uint8_t {
  compute,
  on_device_copy,
  fill,
  memcpy_except_to_host,
  device_to_host_copy,
  collective_communication
};
GpuActivityKind classify_gpu_activity(const KernelClass& kernel);

// Sums over the work of a row; they may be split proportionally.
struct CauseEvidence {
  double cpu_work_s = 0;      // threads or their helpers on a CPU
  double cpu_wait_s = 0;      // threads blocked
  double unclassified_s = 0;  // worked or blocked: unknown which
  AmountByCause gpu_s = {};
  double launch_count = 0;     // of GPU work; includes copies and read_back_count
  double copy_count = 0;       // to the device or within it
  double read_back_count = 0;  // from the device to the host

  void add(const CauseEvidence& other_evidence, double share = 1);
  // The same without the distinction of working and blocked time and without launches. For a function known from stack
  // samples only: its shares of these are unknown.
  CauseEvidence with_unclassified_cpu_time() const;
};

CauseEvidence make_cause_evidence(const ScopeTally& tally);
CauseEvidence make_cause_evidence(GpuActivityKind kind, double time_s, double count);

class RowCauses {
 public:
  using RowPath = std::vector<std::string>;

  // `has_host_evidence`: the launches and the blocked time of CPU threads are recorded. `has_function_names`: paths end
  // in a function name.
  RowCauses(bool has_host_evidence, bool has_function_names)
      : has_host_evidence_(has_host_evidence), has_function_names_(has_function_names) {}

  // Add every row, then call finish().
  void add(const RowPath& path, const CauseEvidence& evidence) { evidence_by_path_[path].add(evidence); }
  void finish();

  // Empty without evidence.
  std::optional<EnergyCause> gpu_cause(const CauseEvidence& evidence) const;
  std::optional<EnergyCause> cpu_cause(const RowPath& path, const CauseEvidence& evidence) const;

 private:
  bool has_host_evidence_;
  bool has_function_names_;
  std::map<RowPath, CauseEvidence> evidence_by_path_;  // CPU and GPU together
  double median_launch_s_ = 0;  // median CPU time of a launch; 0: unknown, only copies were launched
};

}  // namespace joulemap::attribution
