// SPDX-License-Identifier: Apache-2.0
//
// The law by which the simulated machine draws power: from how busy its CPUs are (0 to 1) to watts per zone.
// Pure: the same settings, seed and calls give the same watts.
//
//   package = (idle + (max - idle) * u^gamma) * (1 + noise)     per socket
//   core    = package - 9 W, at least 0                         the rest is the uncore's
//   dram    = 3 W + 6 W * u
//   what stands after idle and after 3 W, times what the load draws against the usual (LoadFactors)
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
  double noise = 0.03;  // standard deviation, as a share of the power
  int sockets = 1;
  std::uint64_t seed = 1;
};

struct SocketPower {
  double package_w = 0;
  double core_w = 0;
  double dram_w = 0;
  double dynamic_w = 0;  // the part of package_w that running processes cause
  double dram_dynamic_w = 0;
};

// What a CPU second of the present load draws above idle, against that of the law's: instructions differ.
struct LoadFactors {
  double power = 1;
  double memory = 1;
};

struct MachinePower {
  std::vector<SocketPower> sockets;
  double psys_w = 0;
  double dynamic_w = 0;  // all sockets
};

// One socket at a utilisation and at a value of the noise.
SocketPower socket_power(const LawSettings& settings, double utilisation, double noise, LoadFactors load = {});

// What a meter at the wall side of the board's regulators would see.
double psys_power_w(const std::vector<SocketPower>& sockets);

// Gaussian noise that remembers itself for about 5 ms (AR(1)), whatever the steps it is asked in.
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

  // The mean power over the next duration_s, during which the CPUs were busy for this share of the time. Busy
  // time is spread evenly over the sockets; their noises are independent.
  const MachinePower& step(double utilisation, double duration_s, LoadFactors load = {});

 private:
  LawSettings settings_;
  std::vector<CorrelatedNoise> noises_;
  MachinePower power_;
};

}  // namespace joulemap::simulated
