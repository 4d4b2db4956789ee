// SPDX-License-Identifier: Apache-2.0
//
// Channel: one value that a sensor provides, and how to convert its raw integers to units such as joules or watts.
// Plain data; it does not change once the sensor is open. If several channels measure the same domain, one provides the
// energy and the others are cross-checks.
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
  counter,  // cumulative value; increases except for wraps
  gauge,    // momentary or averaged value
};

// What a channel measures. Only energy and power contribute to energies; power_history helps to attribute them.
enum class Quantity : std::uint8_t {
  energy,
  power,
  power_limit,
  temperature,
  clock,
  utilization,
  memory,
  throttle_reasons,  // bit set as defined by NVML
  cpu_time,          // CPU time of the whole machine, or of the recorded command
  power_history,     // power samples that the device buffers; read later, so used for attribution, not for totals
};
inline constexpr std::size_t kQuantityCount = 10;

// Names of the CPU-time channels in a recording: all processes of the machine, and the recorded command.
inline constexpr std::string_view kMachineCpuTimeChannel = "machine-cpu-time";
inline constexpr std::string_view kCommandCpuTimeChannel = "command-cpu-time";

// Suffix of the channel name for the GPU utilization of co-tenants (processes outside the recorded command).
inline constexpr std::string_view kCoTenantUtilizationSuffix = "others-utilization";

// Origin of a number. A number that is unavailable has no provenance and a reason instead.
enum class Provenance { measured, estimated };

// The kind of device that a domain covers as a whole; parts, such as the cores of a package, are `other`. Used to drop
// an estimate when a measurement of the same kind exists.
enum class DomainClass { cpu, memory, platform, gpu, other };

struct Channel {
  std::string name;    // unique within its sensor
  std::string sensor;  // name of the backend
  std::string source;  // the file or event it is read from

  std::string domain;   // what it measures: "package-0", "dram-0", "gpu0"
  std::string part_of;  // domain whose energy contains the energy of this one; empty when there is none
  DomainClass domain_class = DomainClass::other;
  std::string device;             // UUID or PCI id of the measured device; empty for the machine itself
  std::string driver;             // versions of driver and firmware, for which a calibration is valid; may be empty
  std::string device_model = {};  // "NVIDIA H200"; empty when unknown
  bool is_countable = true;       // false: never part of a total, because it is unknown what the channel covers

  ChannelKind kind = ChannelKind::counter;
  Quantity quantity = Quantity::energy;
  double scale = 1;                         // value in unit_of(quantity) = scale * raw value
  std::optional<std::uint64_t> wrap_range;  // raw value at which a counter wraps to zero, when known
  double refresh_s = 0.001;                 // nominal update period of the hardware
  double averaging_time_s = 0;              // averaging time of a gauge; 0 when unknown

  Provenance provenance = Provenance::measured;
  std::string model;                // formula of an estimate
  double relative_uncertainty = 0;  // of an estimate: half width of its 95 % interval, as a fraction of its value
  double uncertainty_w = 0;         // of an estimate: part of the half width that does not depend on the value
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

constexpr bool measures_energy_or_power(const Channel& channel) {
  return channel.quantity == Quantity::energy || channel.quantity == Quantity::power;
}

constexpr std::string_view to_string(ChannelKind kind) { return kind == ChannelKind::counter ? "counter" : "gauge"; }

constexpr std::string_view to_string(Provenance provenance) {
  return provenance == Provenance::measured ? "measured" : "estimated";
}

}  // namespace joulemap
