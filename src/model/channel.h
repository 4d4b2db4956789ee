// SPDX-License-Identifier: Apache-2.0
//
// Channel: one number that a sensor can read, and how to convert its raw integers to joules or watts. Plain data, fixed
// once a sensor is open. Several channels may measure the same domain and are then cross-checked.
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
  counter,  // energy since some moment; monotonic except for wraps
  gauge,    // instantaneous value
};

// What is measured. Energy and power yield joules; the other quantities are context.
enum class Quantity : std::uint8_t {
  energy,
  power,
  power_limit,
  temperature,
  clock,
  utilization,
  memory,
  throttle_reasons,  // bit set as defined by NVML
  cpu_time,          // of the whole machine, or of the recorded command
  power_history,  // power samples buffered by the device and read later: too late for totals, fine enough to attribute
};
inline constexpr std::size_t kQuantityCount = 10;

// Channels of CPU time in a recording: of all processes of the machine, and of the recorded command.
inline constexpr std::string_view kMachineCpuTime = "machine-cpu-time";
inline constexpr std::string_view kCommandCpuTime = "command-cpu-time";

// Suffix of the channel name for the GPU utilization of co-tenants (processes outside the recorded command).
inline constexpr std::string_view kCoTenantUtilization = "others-utilization";

// Origin of a number. A number that is unavailable has no provenance and a reason instead.
enum class Provenance { measured, estimated };

// What a domain covers as a whole, so that an estimate never appears beside a measurement of the same thing. Parts (the
// cores of a package) are `other`.
enum class DomainClass { cpu, memory, platform, gpu, other };

struct Channel {
  std::string name;    // unique within its sensor
  std::string sensor;  // name of the backend
  std::string source;  // the file or event it is read from

  std::string domain;   // what it measures: "package-0", "dram-0", "gpu0"
  std::string part_of;  // domain whose energy already contains this one; empty when there is none
  DomainClass domain_class = DomainClass::other;
  std::string device;  // UUID or PCI id of the measured device; empty for the machine itself
  std::string driver;  // versions of driver and firmware, where they matter: a calibration is valid for these
  std::string device_model = {};  // "NVIDIA H200"; empty when unknown
  bool is_countable = true;       // false: displayed, but never part of a total, because its coverage is unknown

  ChannelKind kind = ChannelKind::counter;
  Quantity quantity = Quantity::energy;
  double scale = 1;                         // units (unit_of) per raw unit
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

constexpr bool measures_energy(const Channel& channel) {
  return channel.quantity == Quantity::energy || channel.quantity == Quantity::power;
}

constexpr std::string_view to_string(ChannelKind kind) { return kind == ChannelKind::counter ? "counter" : "gauge"; }

constexpr std::string_view to_string(Provenance provenance) {
  return provenance == Provenance::measured ? "measured" : "estimated";
}

}  // namespace joulemap
