// SPDX-License-Identifier: Apache-2.0
//
// CauseEvidence: what a ledger knows of why its rows draw energy (model/cause_class.h), and RowCauses, which concludes.
//
// On a GPU the work itself tells: kernels compute; copies, fills and kernels that only move or fill memory are memory; those
// that exchange with other ranks are synchronisation. On CPUs: a thread that stood still waited (synchronisation). One that
// worked where GPU work was given out was launching. Where that work copies from the device, the host cannot go on before
// all is done that was queued there: what it took beyond the usual time of a launch is synchronisation, even if it spun.
// Where most of it are other copies, what is beyond is memory. One that gave out nothing computed, unless its name says
// that it spins or copies: no counter tells these apart. Of functions that the program was only seen in, names tell what
// CPUs did. Pure; seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/activity.h"
#include "model/cause_class.h"

namespace joulemap::attribution {

enum class GpuDoing : std::uint8_t { computes, moves, fills, copies, reads_back, exchanges };
GpuDoing doing_of(const KernelClass& kernel);

// Sums; they may be shared out.
struct CauseEvidence {
  double worked_s = 0;  // threads: on a CPU, or their helpers were
  double waited_s = 0;  // and standing still
  double untold_s = 0;  // one or the other
  ByCause gpu_s = {};
  double launches = 0;    // of GPU work, all of it; of these
  double copies = 0;      // to the device or within it, and
  double read_backs = 0;  // from it to the host

  void add(const CauseEvidence& other, double share = 1);
  // Of a function that the program was seen in now and then: what its threads did is told of the whole place only.
  CauseEvidence of_what_was_seen() const;
};

CauseEvidence evidence_of(const PlaceTally& tally);
CauseEvidence evidence_of(GpuDoing doing, double time_s, double count);

class RowCauses {
 public:
  using Path = std::vector<std::string>;

  // `tells_hosts`: it is known what CPUs launch, and when they stand still. `reads_names`: paths end in a function's name.
  RowCauses(bool tells_hosts, bool reads_names) : tells_hosts_(tells_hosts), reads_names_(reads_names) {}

  // Every row, then finish().
  void add(const Path& path, const CauseEvidence& evidence) { by_path_[path].add(evidence); }
  void finish();

  // Nothing where there is no evidence.
  std::optional<Cause> of_gpu(const CauseEvidence& evidence) const;
  std::optional<Cause> of_cpu(const Path& path, const CauseEvidence& evidence) const;

 private:
  bool tells_hosts_;
  bool reads_names_;
  std::map<Path, CauseEvidence> by_path_;  // of all devices
  double usual_launch_s_ = 0;              // of the host; 0: nothing was launched but copies
};

}  // namespace joulemap::attribution
