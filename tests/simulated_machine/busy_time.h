// SPDX-License-Identifier: Apache-2.0
//
// BusyTime: how much CPU time the processes of this machine used since the last look, and which of them. Kernel
// threads and, unless it is asked for, the simulator itself do not count: the first have no readable clock, the
// second would be measuring its own fever.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::simulated {

// What one process did while the machine was simulated.
struct ProcessShare {
  pid_t pid = 0;
  std::string comm;
  double cpu_s = 0;
  double joules_package = 0;  // above idle
};

// CPU seconds of one process in a tick.
struct ProcessCharge {
  pid_t pid = 0;
  double cpu_s = 0;
};

class BusyTime {
 public:
  // Processes that exist now count from now on; those found later, from their birth.
  // `with_self`: the simulator's own time counts, too, as it does in /proc/stat.
  static Result<BusyTime> start(bool with_self = false);

  // Goes through all processes: who is new, who has another name.
  void refresh();

  // CPU seconds to charge to a tick in which the CPUs could do capacity_s. What was seen beyond that was done
  // before (clocks are late, new processes are found late) and is kept for the next ticks, never lost.
  double advance(double capacity_s);

  // Who was charged in the last advance().
  std::vector<ProcessCharge> charges() const;

  // Shares out the energy of the last advance() in proportion to CPU time.
  void share_out(double joules);

  double total_cpu_s() const { return total_cpu_s_; }

  // Every process that used CPU time, by pid.
  std::vector<ProcessShare> shares() const;

 private:
  struct Process {
    clockid_t clock = 0;
    std::int64_t seen_ns = 0;  // its clock at the last look
    double pending_s = 0;      // seen, not charged yet
    double charged_s = 0;      // in the last advance()
    bool moved = false;        // used CPU time since the last refresh(): it may have changed its name by exec
    bool gone = false;
    ProcessShare share;
  };
  using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

  BusyTime(Directory proc, FileDescriptor load) : proc_(std::move(proc)), load_(std::move(load)) {}
  void add_newborn();
  void add(pid_t pid, bool from_birth);
  void look_at(Process& process);
  void scan(bool from_birth);
  void drop_the_gone();

  Directory proc_;
  FileDescriptor load_;  // /proc/loadavg, which ends in the number given to the newest process
  pid_t newest_ = 0;
  std::map<pid_t, Process> processes_;
  std::set<pid_t> ignored_;             // kernel threads, ourselves
  std::vector<ProcessShare> finished_;  // processes that are no more
  double total_cpu_s_ = 0;
};

}  // namespace joulemap::simulated
