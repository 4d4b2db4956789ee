// SPDX-License-Identifier: Apache-2.0
#include "power_law.h"

#include <algorithm>
#include <cmath>

namespace joulemap::simulated {
namespace {

constexpr double kUncoreW = 9;
constexpr double kDramIdleW = 3;
constexpr double kDramBusyW = 6;
constexpr double kPsysFactor = 1.08;
constexpr double kBoardW = 5;
constexpr double kNoiseCorrelationS = 0.005;

}  // namespace

SocketPower compute_socket_power(const LawSettings& settings, double utilisation, double noise, LoadFactors load) {
  const double u = std::clamp(utilisation, 0.0, 1.0);
  const double noise_factor = std::max(0.0, 1 + noise);
  SocketPower power;
  power.dynamic_w = (settings.max_w - settings.idle_w) * std::pow(u, settings.gamma) * load.power * noise_factor;
  power.package_w = settings.idle_w * noise_factor + power.dynamic_w;
  power.core_w = std::max(0.0, power.package_w - kUncoreW);
  power.dram_dynamic_w = kDramBusyW * u * load.memory;
  power.dram_w = kDramIdleW + power.dram_dynamic_w;
  return power;
}

double compute_psys_power_w(const std::vector<SocketPower>& sockets) {
  double package_and_dram_w = 0;
  for (const SocketPower& socket : sockets) package_and_dram_w += socket.package_w + socket.dram_w;
  return kPsysFactor * package_and_dram_w + kBoardW;
}

CorrelatedNoise::CorrelatedNoise(double sigma, std::uint64_t seed)
    : sigma_(sigma), generator_(seed), value_(sigma * normal_(generator_)) {}

double CorrelatedNoise::next(double duration_s) {
  const double correlation_factor = std::exp(-duration_s / kNoiseCorrelationS);
  value_ = correlation_factor * value_ +
           std::sqrt(1 - correlation_factor * correlation_factor) * sigma_ * normal_(generator_);
  return value_;
}

PowerLaw::PowerLaw(const LawSettings& settings) : settings_(settings) {
  for (int socket = 0; socket < settings.sockets; ++socket) {
    socket_noises_.emplace_back(settings.noise, settings.seed + static_cast<std::uint64_t>(socket));
  }
  last_power_.sockets.resize(socket_noises_.size());
}

const MachinePower& PowerLaw::step(double utilisation, double duration_s, LoadFactors load) {
  last_power_.dynamic_w = 0;
  for (std::size_t socket = 0; socket < socket_noises_.size(); ++socket) {
    last_power_.sockets[socket] =
        compute_socket_power(settings_, utilisation, socket_noises_[socket].next(duration_s), load);
    last_power_.dynamic_w += last_power_.sockets[socket].dynamic_w;
  }
  last_power_.psys_w = compute_psys_power_w(last_power_.sockets);
  return last_power_;
}

}  // namespace joulemap::simulated
