// SPDX-License-Identifier: Apache-2.0
//
// Machine: the simulated machine at work. A thread ticks every millisecond: it looks how busy the real CPUs
// were, asks the law for the power, adds up the energy, publishes the counters and writes down the truth.
//
// The truth is that of the counters, however late a tick is: while nobody could publish, no energy was used.
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
  std::string root;  // absolute; made where missing
  LawSettings law;
  bool psys = false;
  std::uint64_t start_uj = 187'654'321'098;
  std::uint64_t wrap_uj = 262'143'328'850;
  double period_us = 1000;
  double jitter_us = 50;
  FaultPlan faults;
  std::string fault_zone;       // "intel-rapl:0"; empty for all
  std::string fault_trigger;    // faults count their time from when this file exists; empty: from the command's start
  std::string operation_kinds;  // files of Operations; empty: all draw alike
  std::string operation_page;
  bool count_self = false;
};

// How well it kept up.
struct MachineReport {
  std::int64_t ticks = 0;
  std::int64_t missed_ticks = 0;  // slept through: the next one covered their time
  double cpu_share = 0;           // of one CPU, all threads
};

class Machine {
 public:
  // Builds the tree and the first texts of the counters; nothing moves yet.
  static Result<std::unique_ptr<Machine>> build(const MachineSettings& settings);

  void start();

  // Faults count their time from here, unless they have a trigger.
  void command_started();

  // A last tick, and the truth is on file.
  Result<MachineReport> stop();

  const std::string& truth_path() const { return truth_path_; }

 private:
  struct Logs {
    TruthLog truth;
    std::optional<TruthLog> operations;
  };
  Machine(const MachineSettings& settings, BusyTime busy, Operations operations, Logs logs,
          std::vector<CounterFile> counters);
  static Result<Logs> create_logs(const MachineSettings& settings, const Operations& operations);
  Status log_operations(std::int64_t now_ns);
  void run(const std::stop_token& stop);
  Status tick(std::int64_t now_ns);
  // Of the time since the last tick, in which the CPUs worked, the machine ran for the last running_s.
  void add_up(double since_last_s, double running_s);
  Status publish(std::int64_t now_ns);

  MachineSettings settings_;
  std::string truth_path_;
  PowerLaw law_;
  BusyTime busy_;
  Operations operations_;
  Logs logs_;
  std::int64_t operations_told_ns_ = 0;
  std::vector<CounterFile> counters_;  // as zones_of()
  std::vector<double> energies_j_;     // as zones_of()
  TickSchedule schedule_;
  double cpus_;
  std::int64_t last_ns_ = 0;
  std::int64_t refreshed_ns_ = 0;
  std::int64_t started_ns_ = 0;
  std::int64_t cpu_at_start_ns_ = 0;
  std::atomic<std::int64_t> command_ns_;
  MachineReport report_;
  Status state_ = Done{};  // the first failure of a tick ends the ticking
  std::optional<ClockNudger> nudger_;
  std::jthread thread_;
};

}  // namespace joulemap::simulated
