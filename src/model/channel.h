// SPDX-License-Identifier: Apache-2.0
//
// Channel: one number that a sensor can read, and how to turn its raw integers into joules or watts. Plain data,
// fixed once a sensor is open; several channels may watch the same domain and are then checked against each other.
//
//   powercap/package-0   counter   energy        J   1e-6 per unit   wraps at 262143328850
//   hwmon/amdgpu-0       gauge     power         W   1e-6 per unit
//   nvml/gpu0-sm-clock   gauge     clock       MHz   1 per unit
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace joulemap {

enum class ChannelKind {
  counter,  // energy since some moment, only ever growing (but for wraps)
  gauge,    // a value now
};

// What is measured. Energy and power make joules; the rest is shown beside them.
enum class Quantity : std::uint8_t {
  energy,
  power,
  power_limit,
  temperature,
  clock,
  utilization,
  memory,
  throttle_reasons,  // a set of bits, as NVML defines them
  cpu_time,          // of the whole machine, or of the recorded command
  power_history,  // power that the device has kept by itself and tells later: too late for totals, fine enough to attribute
};
inline constexpr std::size_t kQuantities = 10;

// Channels of CPU time in a recording: what all processes of the machine used, and what the command's did.
inline constexpr std::string_view kMachineCpuTime = "machine-cpu-time";
inline constexpr std::string_view kCommandCpuTime = "command-cpu-time";

// How the channel's name ends that tells how much of a GPU's time processes used that are not the command's.
inline constexpr std::string_view kOthersUtilization = "others-utilization";

// Where a number comes from. A number that could not be had has none, and a reason instead.
enum class Provenance { measured, estimated };

// What a domain covers as a whole, so that an estimate never stands beside a measurement of the same thing. Parts
// (the cores of a package) are `other`.
enum class DomainClass { cpu, memory, platform, gpu, other };

struct Channel {
  std::string name;    // unique within its sensor
  std::string sensor;  // name of the backend
  std::string source;  // the file or event it is read from

  std::string domain;   // what it watches: "package-0", "dram-0", "gpu0"
  std::string part_of;  // the domain whose energy already contains this one's; empty when there is none
  DomainClass domain_class = DomainClass::other;
  std::string device;  // UUID or PCI id of what is measured; empty for the machine's own
  std::string driver;  // versions of driver and firmware behind it, where they matter: a calibration holds for these
  std::string device_model = {};  // what kind of device: "NVIDIA H200"; empty where not known
  bool countable = true;          // false: shown, but never added to a total, because what it covers is not known

  ChannelKind kind = ChannelKind::counter;
  Quantity quantity = Quantity::energy;
  double scale = 1;                         // units (unit_of) per raw unit
  std::optional<std::uint64_t> wrap_range;  // raw value at which a counter starts again from zero, where known
  double refresh_s = 0.001;                 // how often the hardware is said to renew the value
  double averaged_s = 0;                    // of a gauge: the time its value is a mean of; 0 where not known

  Provenance provenance = Provenance::measured;
  std::string model;                // of an estimate: the formula
  double relative_uncertainty = 0;  // of an estimate: half width of its 95 % interval, as a share of its value,
  double uncertainty_w = 0;         // and a part that does not depend on the value
};

constexpr std::string_view unit_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::energy:
      return "J";
    case Quantity::power:
    case Quantity::power_limit:
    case Quantity::power_history:
      return "W";
    case Quantity::temperature:
      return "degC";
    case Quantity::clock:
      return "MHz";
    case Quantity::utilization:
      return "%";
    case Quantity::memory:
      return "B";
    case Quantity::throttle_reasons:
      return "bits";
    case Quantity::cpu_time:
      return "s";
  }
  return "";
}

constexpr bool tells_energy(const Channel& channel) {
  return channel.quantity == Quantity::energy || channel.quantity == Quantity::power;
}

constexpr std::string_view to_string(ChannelKind kind) { return kind == ChannelKind::counter ? "counter" : "gauge"; }

constexpr std::string_view to_string(Provenance provenance) {
  return provenance == Provenance::measured ? "measured" : "estimated";
}

}  // namespace joulemap
