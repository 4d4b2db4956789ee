// SPDX-License-Identifier: Apache-2.0
//
// Script: what the fake NVML pretends, read from a small text file, one statement a line, "#" begins a comment:
//
//   origin 1234.5                     moment 0 of the script on CLOCK_MONOTONIC, seconds; else when NVML is initialised
//   driver 580.0
//   init_error 9                      nvmlInit fails with it
//   device GPU-1234                   from here on statements are about this GPU
//     name NVIDIA H200
//     pci 00000000:1B:00.0
//     power 0:100 0.5:400 repeat 1    from second 0 on 100 W, from 0.5 on 400 W; and again every second
//     counter_period_ms 100           the counter is renewed so often,
//     counter_phase_ms 30             at these moments after the origin
//     power_phase_ms 50               the powers are renewed as often, at these
//     counter_spin_us 3000            what a read of the counter costs; it gives the value of some moment of its first ms
//     unsupported instant average     of: energy instant average usage memory_power limit clock temperature utilization
//     denied energy                   memory throttle history processes process_utilization
//     process 4242 60                 a process of that number has kernels running in 60 % of the time,
//     process 4243 30 2.5             and one of this number in 30 %, from this second on
//     unlisted 4244 20                and one in 20 % that is not in the list of processes: outside of a container
//     clients FOLDER                  and those that hold the lock of a file there, which contains "4245 40"; each list that
//                                     is read adds a byte to FOLDER/reads
//     throttle 4                      the reasons for which its clocks are held back, as NVML's bits
//     lost_at 1.5                     from this second on the GPU is gone
//     lost_when PATH                  once this file exists the GPU is gone
//     fail_at 1.5                     from this second on every call fails for no known reason
//     absent 15                       nvmlDeviceGetHandleByIndex fails with it
//     load PATH 76 130 480            draws what the fake CUDA driver has it do (fake_cuda/load_log.h): idle, with a
//                                     context, loaded; instead of `power`
//     sleep 0.8 100                   with it: for so many seconds after a context is gone so many watts
//     counter_lag_ms 10               the counter shows what was drawn until so long before its step
//     instant_window_ms 25            of what the instant power is the mean,
//     instant_gain 1.01               and what it shows for each watt
//     history_memory_ms 12            what is kept of the power fades with this time constant
//     mig MIG-5678                    it is split, and this is one instance
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

// Watts over time, in steps. Exact.
struct PowerCurve {
  struct Point {
    double from_s = 0;
    double watts = 0;
  };
  std::vector<Point> points = {{0, 100}};
  std::optional<double> repeat_s;

  double joules_until(double time_s) const;  // since second 0; negative before it
  // With an exponential memory; of a curve that does not repeat.
  double faded_w(double time_s, double memory_s) const;
  double mean_w(double from_s, double to_s) const {
    return (joules_until(to_s) - joules_until(from_s)) / (to_s - from_s);
  }
};

struct ScriptedDevice {
  std::string uuid;
  std::string name = "Fake GPU";
  std::string pci = "00000000:01:00.0";
  PowerCurve power;
  struct Load {
    std::string log_path;
    double idle_w = 0;
    double context_w = 0;
    double loaded_w = 0;
    double sleep_s = 0;
    double sleep_w = 0;
  };
  std::optional<Load> load;
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
  std::optional<double> history_memory_s;
  double counter_period_s = 0.1;
  double counter_phase_s = 0;
  double power_phase_s = 0.02;
  double counter_spin_s = 0;
  std::set<std::string> unsupported;
  std::set<std::string> denied;
  std::optional<double> lost_at_s;
  std::string lost_when;
  std::optional<double> fail_at_s;
  int absent = 0;
  std::string mig_uuid;
  unsigned virtualization = 0;
  unsigned throttle = 0;

  // The last step of something renewed at counter_period_s with this phase.
  double last_step_s(double time_s, double phase_s) const;
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

// Nothing when a statement is not understood: a test with a typing error must not pass.
std::optional<Script> parse_script(const std::string& text);

}  // namespace joulemap::fake_nvml
