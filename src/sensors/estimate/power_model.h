// SPDX-License-Identifier: Apache-2.0
//
// The model of `estimate`: power of CPU and memory from properties that are readable on every machine. Pure.
//
//   package power = limit x (0.2 + 0.8 x busy fraction of the CPUs)
//     limit: the package's long-term power limit, which powercap shows to all users even where counters are root-only;
//     otherwise 3.5 W for each hardware thread. Interval: 40 % of the value (60 % without a limit) and, independently,
//     0.2 of the limit, because idle power is the least certain part.
//   memory power  = 0.2 W for each of the first 16 GiB, 0.1 W for each further one; interval: 67 % of the value
//
// Why linear in the busy fraction: the energy of a run then depends on its CPU time alone and not on how often it was
// sampled. Why 0.2: servers idle at 0.2-0.4 of their limit, desktops at 0.05-0.15. Why 3.5 W: the limits of server CPUs
// of 2017-2024 correspond to 2.0-5.9 W per thread (AMD EPYC 7002-9004 at the low end, Intel Xeon Scalable at the high
// end). Memory: a registered module of 32-64 GiB uses 3-8 W under load, a desktop module of 8 GiB 1-3 W.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace joulemap::sensors {

// Known properties of the machine.
struct MachineDescription {
  int package_count = 1;
  int thread_count = 1;                        // total of hardware threads
  std::vector<std::optional<double>> limit_w;  // for each package, where known
  std::optional<double> memory_gib;
};

inline constexpr double kIdlePowerFraction = 0.2;
inline constexpr double kBusyPowerFraction = 0.8;

struct PackageModel {
  double limit_w = 0;
  double relative_uncertainty = 0;
  double uncertainty_w = 0;
  std::string formula;  // for display
};
std::vector<PackageModel> make_package_models(const MachineDescription& machine);

// Busy time of the machine, between 0 and the elapsed time. The kernel counts CPU time in ticks: a tick may arrive long
// after most of its time, and a window of 1 ms may contain ticks of 10 ms. So busy time grows no faster than time, and
// what ticks add too early follows later.
class BusyTime {
 public:
  // `ticks_s`: busy time by ticks, in seconds of the whole machine. Times do not decrease.
  double busy_s(double ticks_s, std::int64_t time_ns) noexcept;

 private:
  std::optional<std::int64_t> last_time_ns_;
  double busy_s_ = 0;
};

struct MemoryModel {
  double power_w = 0;  // power of the memory that belongs to one package
  double relative_uncertainty = 0;
  std::string formula;
};
std::optional<MemoryModel> make_memory_model(const MachineDescription& machine);

}  // namespace joulemap::sensors
