// SPDX-License-Identifier: Apache-2.0
//
// Script: the behaviour of the fake NVML, read from a small text file. One statement a line; "#" begins a comment:
//
//   origin 1234.5                     time 0 of the script, s of CLOCK_MONOTONIC; default: the initialization of NVML
//   driver 580.0
//   init_error 9                      nvmlInit fails with this code
//   device GPU-1234                   the following statements describe this GPU
//     name NVIDIA H200
//     pci 00000000:1B:00.0
//     power 0:100 0.5:400 repeat 1    100 W from second 0, 400 W from 0.5; repeats every second
//     counter_period_ms 100           update period of the counter
//     counter_phase_ms 30             time of its updates after the origin
//     power_phase_ms 50               the same for the power gauges, which have the same period
//     counter_spin_us 3000            cost of a counter read; its value is that of a moment in its first ms
//     unsupported instant average     any of: energy instant average usage memory_power limit clock temperature
//     denied energy                   utilization memory throttle history processes process_utilization
//     process 4242 60                 the process with this pid runs kernels 60 % of the time
//     process 4243 30 2.5             another one 30 % of the time, from second 2.5 on
//     unlisted 4244 20                20 %, but not in the list of processes: outside of a container
//     clients FOLDER                  processes that hold the lock of a file there, which contains "4245 40"; each read
//                                     of the list adds a byte to FOLDER/reads
//     throttle 4                      reasons for reduced clocks, as NVML's bits
//     lost_at 1.5                     the GPU is lost from this second on
//     lost_when PATH                  the GPU is lost once this file exists
//     fail_at 1.5                     every call fails with an unknown error from this second on
//     absent 15                       nvmlDeviceGetHandleByIndex fails with this code
//     load PATH 76 130 480            instead of `power`: W while idle, with a context, and loaded, by what the fake
//                                     CUDA driver runs (fake_cuda/load_log.h)
//     sleep 0.8 100                   with `load`: for 0.8 s after the end of a context, 100 W
//     counter_lag_ms 10               the counter's value is the energy until this long before its update
//     instant_window_ms 25            averaging window of the instant power
//     instant_gain 1.01               gain of the instant power
//     history_memory_ms 12            time constant of the power history
//     mig MIG-5678                    the GPU is partitioned, and this is one instance
//     virtualization 2                nvmlGpuVirtualizationMode_t
//
// Plain data and pure functions; tests/fake_nvml/truth.py computes the same energies.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace joulemap::fake_nvml {

// Power over time, piecewise constant. Exact.
struct PowerCurve {
  struct Point {
    double from_s = 0;
    double watts = 0;
  };
  std::vector<Point> points = {{0, 100}};
  std::optional<double> repeat_period_s;

  double compute_joules_until(double time_s) const;  // J since second 0; negative before it
  // Exponential average with time constant time_constant_s; only for curves that do not repeat.
  double exponential_average_w(double time_s, double time_constant_s) const;
  double mean_w(double from_s, double to_s) const {
    return (compute_joules_until(to_s) - compute_joules_until(from_s)) / (to_s - from_s);
  }
};

struct ScriptedDevice {
  std::string uuid;
  std::string name = "Fake GPU";
  std::string pci_bus_id = "00000000:01:00.0";
  PowerCurve power;
  struct ScriptedLoad {
    std::string log_path;
    double idle_w = 0;
    double context_w = 0;
    double loaded_w = 0;
    double sleep_s = 0;
    double sleep_w = 0;
  };
  std::optional<ScriptedLoad> load;
  struct Process {
    unsigned pid = 0;
    unsigned sm_percent = 0;
    double from_s = 0;
    bool is_listed = true;
  };
  std::vector<Process> processes;
  std::string clients_folder;
  double counter_lag_s = 0;
  double instant_window_s = 0.025;
  double instant_gain = 1;
  std::optional<double> history_time_constant_s;
  double counter_period_s = 0.1;
  double counter_phase_s = 0;
  double power_phase_s = 0.02;
  double counter_spin_s = 0;
  std::set<std::string> unsupported;
  std::set<std::string> denied;
  std::optional<double> lost_at_s;
  std::string lost_trigger_path;
  std::optional<double> fail_at_s;
  int absent = 0;
  std::string mig_uuid;
  unsigned virtualization_mode = 0;
  unsigned throttle_reasons = 0;

  // Time of the last update, for the period counter_period_s and this phase.
  double last_update_s(double time_s, double phase_s) const;
  std::uint64_t counter_mj(double time_s) const;
  std::uint64_t instant_mw(double time_s) const;
  std::uint64_t average_mw(double time_s) const;
  std::uint64_t history_mw(double time_s) const;
};

struct Script {
  std::optional<double> origin_s;
  std::string driver = "999.0";
  int init_error = 0;
  std::vector<ScriptedDevice> devices;
};

// Returns nullopt when a statement is invalid: a test with a typing error must not pass.
std::optional<Script> parse_script(const std::string& text);

}  // namespace joulemap::fake_nvml
