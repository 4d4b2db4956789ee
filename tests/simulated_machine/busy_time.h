// SPDX-License-Identifier: Apache-2.0
//
// BusyTime: CPU time that the processes of this machine used since the last call, by process. Kernel threads do not
// count, because they have no readable clock. The simulator itself does not count by default, because it would measure
// its own load.
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

// Totals of one process during the simulation.
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
  // Existing processes count from now on; processes found later count from their start. `counts_self`: also counts the
  // simulator's own time, as /proc/stat does.
  static Result<BusyTime> start(bool counts_self = false);

  // Scans all processes for new ones and changed names.
  void refresh_processes();

  // Returns the CPU seconds to charge to a tick in which the CPUs could do at most capacity_s. Excess time was used
  // earlier (clocks are late, new processes are found late); it is carried over to the next ticks, never lost.
  double advance(double capacity_s);

  // The processes charged in the last advance().
  std::vector<ProcessCharge> list_charged_processes() const;

  // Attributes the energy of the last advance() in proportion to CPU time.
  void attribute_energy(double joules);

  double total_cpu_s() const { return total_cpu_s_; }

  // Every process that used CPU time, by pid.
  std::vector<ProcessShare> shares() const;

 private:
  struct Process {
    clockid_t clock = 0;
    std::int64_t last_cpu_ns = 0;  // its CPU clock when last read
    double pending_cpu_s = 0;      // seen, not yet charged
    double charged_cpu_s = 0;      // in the last advance()
    bool used_cpu_since_refresh =
        false;  // used CPU time since the last refresh_processes(): an exec may have changed its name
    bool gone = false;
    ProcessShare share;
  };
  using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

  BusyTime(Directory proc, FileDescriptor load) : proc_(std::move(proc)), loadavg_file_(std::move(load)) {}
  void add_new_processes();
  void add(pid_t pid, bool counts_from_birth);
  void update_pending_time(Process& process);
  void scan_processes(bool counts_from_birth);
  void drop_exited();

  Directory proc_;
  FileDescriptor loadavg_file_;  // /proc/loadavg, which ends with the newest pid
  pid_t newest_pid_ = 0;
  std::map<pid_t, Process> processes_;
  std::set<pid_t> ignored_pids_;               // kernel threads and this process
  std::vector<ProcessShare> ended_processes_;  // processes that have ended
  double total_cpu_s_ = 0;
};

}  // namespace joulemap::simulated
