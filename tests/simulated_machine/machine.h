// SPDX-License-Identifier: Apache-2.0
//
// Machine: the running simulated machine. A thread ticks every millisecond: it reads the utilisation of the real CPUs,
// computes the power from the law, integrates the energy, publishes the counters and logs the ground truth.
//
// The ground truth matches the counters however late a tick is: time without publishing uses no energy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "busy_time.h"
#include "clock_nudger.h"
#include "counter_file.h"
#include "operations.h"
#include "power_law.h"
#include "powercap_tree.h"
#include "tick_schedule.h"
#include "truth_log.h"

namespace joulemap::simulated {

struct MachineSettings {
  std::string root;  // absolute path; created if missing
  LawSettings law;
  bool has_psys = false;
  std::uint64_t start_uj = 187'654'321'098;
  std::uint64_t wrap_uj = 262'143'328'850;
  double period_us = 1000;
  double jitter_us = 50;
  FaultPlan faults;
  std::string fault_zone;       // "intel-rapl:0"; empty for all
  std::string fault_trigger;    // file whose creation starts the time of faults; empty: the start of the command does
  std::string operation_kinds;  // files of Operations; empty: all operations have the same power
  std::string operation_page;
  bool counts_self = false;
};

// How well the simulator kept its schedule.
struct MachineReport {
  std::int64_t ticks = 0;
  std::int64_t missed_ticks = 0;  // overslept: the next tick covers their time
  double cpu_share = 0;           // of one CPU, all threads
};

class Machine {
 public:
  // Builds the tree and the initial counters; starts nothing.
  static Result<std::unique_ptr<Machine>> build(const MachineSettings& settings);

  void start();

  // Starts the time of faults, unless they have a trigger.
  void command_started();

  // Does a last tick and writes the ground truth to the file.
  Result<MachineReport> stop();

  const std::string& truth_path() const { return truth_path_; }

 private:
  struct MachineLogs {
    TruthLog truth;
    std::optional<TruthLog> operations;
  };
  Machine(const MachineSettings& settings, BusyTime busy, Operations operations, MachineLogs logs,
          std::vector<CounterFile> counters);
  static Result<MachineLogs> create_logs(const MachineSettings& settings, const Operations& operations);
  Status log_operations(std::int64_t now_ns);
  void run(const std::stop_token& stop);
  Status tick(std::int64_t now_ns);
  // Adds the energy of the last running_s of the time since the last tick; before that the machine stood still at 0 W.
  void add_tick_energy(double since_last_tick_s, double running_s);
  Status publish(std::int64_t now_ns);

  MachineSettings settings_;
  std::string truth_path_;
  PowerLaw power_law_;
  BusyTime busy_;
  Operations operations_;
  MachineLogs logs_;
  std::int64_t last_operation_log_ns_ = 0;
  std::vector<CounterFile> counters_;  // in the order of list_zones()
  std::vector<double> energies_j_;     // in the order of list_zones()
  TickSchedule schedule_;
  double cpus_;
  std::int64_t last_tick_ns_ = 0;
  std::int64_t last_refresh_ns_ = 0;
  std::int64_t start_ns_ = 0;
  std::int64_t cpu_at_start_ns_ = 0;
  std::atomic<std::int64_t> command_start_ns_;
  MachineReport report_;
  Status state_ = Done{};  // the first failed tick stops the thread
  std::optional<ClockNudger> clock_nudger_;
  std::jthread thread_;
};

}  // namespace joulemap::simulated
