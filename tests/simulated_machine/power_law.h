// SPDX-License-Identifier: Apache-2.0
//
// PowerLaw: the power of each zone of the simulated machine in watts, from the utilisation of its CPUs (0 to 1). Pure:
// the same settings, seed and calls give the same watts.
//
//   package = (idle + (max - idle) * u^gamma) * (1 + noise)     per socket
//   core    = package - 9 W, at least 0                         the rest is the uncore's
//   dram    = 3 W + 6 W * u
//   the terms after idle and after 3 W are multiplied by the power of the load relative to the law (LoadFactors)
//   psys    = 1.08 * (all packages + all drams) + 5 W           conversion losses and the board
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace joulemap::simulated {

struct LawSettings {
  double idle_w = 18;
  double max_w = 95;
  double gamma = 0.8;
  double noise = 0.03;  // standard deviation, as a fraction of the power
  int sockets = 1;
  std::uint64_t seed = 1;
};

struct SocketPower {
  double package_w = 0;
  double core_w = 0;
  double dram_w = 0;
  double dynamic_w = 0;  // part of package_w caused by running processes
  double dram_dynamic_w = 0;
};

// Power above idle of a CPU second of the current load, relative to the law: instructions differ.
struct LoadFactors {
  double power = 1;
  double memory = 1;
};

struct MachinePower {
  std::vector<SocketPower> sockets;
  double psys_w = 0;
  double dynamic_w = 0;  // all sockets
};

// Power of one socket at a utilisation and a value of the noise.
SocketPower compute_socket_power(const LawSettings& settings, double utilisation, double noise, LoadFactors load = {});

// Power at the input of the board's regulators.
double compute_psys_power_w(const std::vector<SocketPower>& sockets);

// Gaussian noise with a correlation time of about 5 ms (AR(1)), independent of the step length.
class CorrelatedNoise {
 public:
  CorrelatedNoise(double sigma, std::uint64_t seed);
  double next(double duration_s);

 private:
  double sigma_;
  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
  double value_;
};

class PowerLaw {
 public:
  explicit PowerLaw(const LawSettings& settings);

  // Returns the mean power over the next duration_s at this utilisation. Busy time is spread evenly over the sockets;
  // their noises are independent.
  const MachinePower& step(double utilisation, double duration_s, LoadFactors load = {});

 private:
  LawSettings settings_;
  std::vector<CorrelatedNoise> socket_noises_;
  MachinePower last_power_;
};

}  // namespace joulemap::simulated
