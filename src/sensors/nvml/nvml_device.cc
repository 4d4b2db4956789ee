// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/nvml_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr double kUnitsPerMilliUnit = 1e-3;
// Update period of counter and powers, observed on an H200 with driver 580; other cards are reported to update every 20
// to 100 ms. The sensor's UpdateTimeEstimator finds the actual period.
constexpr double kNvmlUpdatePeriod_s = 0.1;
// The driver of an H200 stores a value every 20.000 ms, and 120 of them.
constexpr double kPowerHistoryPeriod_s = 0.02;
constexpr std::size_t kMaxHistorySamples = 1024;
// The instant power of an H200 fits best as the mean of the last 25 to 30 ms of each 100 ms.
constexpr double kInstantPowerWindow_s = 0.025;
// NVML API reference, NVML_FI_DEV_POWER_AVERAGE: "averaged over one second".
constexpr double kAveragePowerWindow_s = 1.0;

struct MetricTraits {
  std::string_view suffix;  // of the channel's name
  std::string_view source;
  ChannelKind kind;
  Quantity quantity;
  double scale;
  double averaging_time_s;
};

constexpr std::array<MetricTraits, kGpuMetricCount> kMetricTraits = {{
    {"energy", "nvmlDeviceGetTotalEnergyConsumption", ChannelKind::counter, Quantity::energy, kUnitsPerMilliUnit, 0},
    {"power-instant", "NVML field 186", ChannelKind::gauge, Quantity::power, kUnitsPerMilliUnit, kInstantPowerWindow_s},
    {"power-average", "NVML field 185", ChannelKind::gauge, Quantity::power, kUnitsPerMilliUnit, kAveragePowerWindow_s},
    {"power-average", "nvmlDeviceGetPowerUsage", ChannelKind::gauge, Quantity::power, kUnitsPerMilliUnit, 0},
    {"memory-power", "NVML field 185, memory scope", ChannelKind::gauge, Quantity::power, kUnitsPerMilliUnit,
     kAveragePowerWindow_s},
    {"power-limit", "nvmlDeviceGetEnforcedPowerLimit", ChannelKind::gauge, Quantity::power_limit, kUnitsPerMilliUnit,
     0},
    {"sm-clock", "nvmlDeviceGetClockInfo, SM", ChannelKind::gauge, Quantity::clock, 1, 0},
    {"memory-clock", "nvmlDeviceGetClockInfo, memory", ChannelKind::gauge, Quantity::clock, 1, 0},
    {"temperature", "nvmlDeviceGetTemperature", ChannelKind::gauge, Quantity::temperature, 1, 0},
    {"utilization", "nvmlDeviceGetUtilizationRates, GPU", ChannelKind::gauge, Quantity::utilization, 1, 0},
    {"memory-utilization", "nvmlDeviceGetUtilizationRates, memory", ChannelKind::gauge, Quantity::utilization, 1, 0},
    {"memory-used", "nvmlDeviceGetMemoryInfo", ChannelKind::gauge, Quantity::memory, 1, 0},
    {"throttle-reasons", "nvmlDeviceGetCurrentClocksEventReasons", ChannelKind::gauge, Quantity::throttle_reasons, 1,
     0},
    {kCoTenantUtilizationSuffix, "nvmlDeviceGetProcessUtilization, SM", ChannelKind::gauge, Quantity::utilization, 1,
     kAveragePowerWindow_s},
    {"power-history", "nvmlDeviceGetSamples, total power", ChannelKind::gauge, Quantity::power_history,
     kUnitsPerMilliUnit, 0},
}};

const MetricTraits& traits_of_metric(GpuMetric metric) { return kMetricTraits[static_cast<std::size_t>(metric)]; }

FieldValue nvml_field_of_metric(GpuMetric metric) {
  FieldValue field{};
  field.field_id = metric == GpuMetric::power_instant ? kFieldPowerInstant : kFieldPowerAverage;
  field.scope_id = metric == GpuMetric::memory_power ? kPowerScopeMemory : kPowerScopeGpu;
  field.status = NvmlReturn::unknown;
  return field;
}

RawReadResult convert_field_value(const FieldValue& field) {
  if (field.status != NvmlReturn::success) return {field.status, 0};
  switch (field.value_type) {
    case ValueType::unsigned_int:
      return {field.status, field.value.unsigned_int};
    case ValueType::unsigned_long:
      return {field.status, field.value.unsigned_long};
    case ValueType::unsigned_long_long:
      return {field.status, field.value.unsigned_long_long};
    default:  // power fields are unsigned; any other type is unexpected
      return {NvmlReturn::unknown, 0};
  }
}

// Calls a function that returns one number, if the library has it.
template <class Value>
RawReadResult call_nvml(NvmlReturn (*function)(Device, Value*), Device handle) {
  if (function == nullptr) return {};
  Value value{};
  const NvmlReturn status = function(handle, &value);
  return {status, value};
}

RawReadResult call_nvml(NvmlReturn (*function)(Device, unsigned, unsigned*), Device handle, unsigned type) {
  if (function == nullptr) return {};
  unsigned value = 0;
  const NvmlReturn status = function(handle, type, &value);
  return {status, value};
}

RawReadResult read_utilization(const NvmlFunctions& api, Device handle, GpuMetric metric) {
  if (api.utilization == nullptr) return {};
  Utilization rates{};
  const NvmlReturn status = api.utilization(handle, &rates);
  return {status, metric == GpuMetric::gpu_utilization ? rates.gpu : rates.memory};
}

RawReadResult read_memory_used(const NvmlFunctions& api, Device handle) {
  if (api.memory_info == nullptr) return {};
  Memory memory{};
  const NvmlReturn status = api.memory_info(handle, &memory);
  return {status, memory.used};
}

template <class Query>
std::string query_text(Query query) {
  std::array<char, kTextBufferSize> text{};
  if (query(text.data(), kTextBufferSize) != NvmlReturn::success) return {};
  text.back() = '\0';
  return text.data();
}

}  // namespace

ReadCode to_read_code(NvmlReturn status) {
  switch (status) {
    case NvmlReturn::success:
      return ReadCode::ok;
    case NvmlReturn::gpu_is_lost:
    case NvmlReturn::not_found:
    case NvmlReturn::gpu_not_found:
    case NvmlReturn::reset_required:
      return ReadCode::vanished;
    case NvmlReturn::no_permission:
      return ReadCode::denied;
    default:
      return ReadCode::failed;
  }
}

bool is_supported(NvmlReturn status) {
  return status != NvmlReturn::not_supported && status != NvmlReturn::function_not_found &&
         status != NvmlReturn::invalid_argument;
}

RawReadResult NvmlDevice::read(GpuMetric metric) const noexcept {
  const NvmlFunctions& api = library_->api();
  switch (metric) {
    case GpuMetric::energy:
      return call_nvml(api.total_energy_mj, handle_);
    case GpuMetric::power_usage:
      return call_nvml(api.power_usage_mw, handle_);
    case GpuMetric::power_instant:
    case GpuMetric::power_average:
    case GpuMetric::memory_power: {
      RawReadResult out;
      read_powers({&metric, 1}, {&out, 1});
      return out;
    }
    case GpuMetric::power_limit:
      return call_nvml(api.enforced_power_limit_mw, handle_);
    case GpuMetric::sm_clock:
      return call_nvml(api.clock_mhz, handle_, kClockSm);
    case GpuMetric::memory_clock:
      return call_nvml(api.clock_mhz, handle_, kClockMemory);
    case GpuMetric::temperature:
      return call_nvml(api.temperature_c, handle_, kTemperatureGpu);
    case GpuMetric::gpu_utilization:
    case GpuMetric::memory_utilization:
      return read_utilization(api, handle_, metric);
    case GpuMetric::memory_used:
      return read_memory_used(api, handle_);
    case GpuMetric::throttle_reasons:
      return call_nvml(api.throttle_reasons, handle_);
    case GpuMetric::other_processes_utilization:  // OtherProcesses reads it
      return {};
    case GpuMetric::power_history: {
      std::array<TimedValue, kMaxHistorySamples> values;
      const HistoryReadResult read = read_power_history(0, values);
      return {read.status, read.count > 0 ? values[read.count - 1].value.unsigned_int : 0};
    }
  }
  return {};
}

void NvmlDevice::read_powers(std::span<const GpuMetric> metrics, std::span<RawReadResult> out) const noexcept {
  constexpr std::size_t kMaxFields = 4;
  JOULEMAP_CHECK(metrics.size() <= kMaxFields && out.size() == metrics.size(), "more powers than there are");
  std::array<FieldValue, kMaxFields> fields{};
  int count = 0;
  for (const GpuMetric metric : metrics) {
    if (metric != GpuMetric::power_usage) fields[static_cast<std::size_t>(count++)] = nvml_field_of_metric(metric);
  }
  const NvmlFunctions& api = library_->api();
  NvmlReturn status = NvmlReturn::function_not_found;
  if (count > 0 && api.field_values != nullptr) status = api.field_values(handle_, count, fields.data());
  std::size_t field_index = 0;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i] == GpuMetric::power_usage) {
      out[i] = read(GpuMetric::power_usage);
    } else {
      const FieldValue& field = fields[field_index++];
      out[i] = status == NvmlReturn::success ? convert_field_value(field) : RawReadResult{status, 0};
    }
  }
}

NvmlDevice::HistoryReadResult NvmlDevice::read_power_history(unsigned long long since_us,
                                                             std::span<TimedValue> out) const noexcept {
  const NvmlFunctions& api = library_->api();
  if (api.samples == nullptr) return {};
  ValueType type = ValueType::unsigned_int;
  auto count = static_cast<unsigned>(out.size());
  const NvmlReturn status = api.samples(handle_, kTotalPowerSamples, since_us, &type, &count, out.data());
  if (status == NvmlReturn::not_found) return {NvmlReturn::success, 0};  // no values since then
  if (status != NvmlReturn::success) return {status, 0};
  const bool is_known_value_type = type == ValueType::unsigned_int || type == ValueType::unsigned_long_long;
  return {is_known_value_type ? NvmlReturn::success : NvmlReturn::unknown,
          is_known_value_type ? std::min(count, static_cast<unsigned>(out.size())) : 0};
}

NvmlDevice::ProcessReadResult NvmlDevice::read_processes(std::span<ProcessInfo> out) const noexcept {
  const NvmlFunctions& api = library_->api();
  if (api.compute_processes == nullptr) return {};
  auto count = static_cast<unsigned>(out.size());
  const NvmlReturn status = api.compute_processes(handle_, &count, out.data());
  if (status != NvmlReturn::success) return {status, 0};
  return {status, std::min(count, static_cast<unsigned>(out.size()))};
}

NvmlDevice::ProcessReadResult NvmlDevice::read_process_utilization(unsigned long long since_us,
                                                                   std::span<ProcessUtilization> out) const noexcept {
  const NvmlFunctions& api = library_->api();
  if (api.process_utilization == nullptr) return {};
  auto count = static_cast<unsigned>(out.size());
  const NvmlReturn status = api.process_utilization(handle_, out.data(), &count, since_us);
  if (status == NvmlReturn::not_found) return {NvmlReturn::success, 0};  // no process had a kernel running
  if (status != NvmlReturn::success) return {status, 0};
  return {status, std::min(count, static_cast<unsigned>(out.size()))};
}

std::string NvmlDevice::name() const {
  const NvmlFunctions& api = library_->api();
  if (api.device_name == nullptr) return {};
  return query_text([&](char* text, unsigned size) { return api.device_name(handle_, text, size); });
}

std::string NvmlDevice::uuid() const {
  return query_text([&](char* text, unsigned size) { return library_->api().device_uuid(handle_, text, size); });
}

std::string NvmlDevice::pci_bus_id() const {
  const NvmlFunctions& api = library_->api();
  PciInfo info{};
  if (api.device_pci_info == nullptr || api.device_pci_info(handle_, &info) != NvmlReturn::success) return {};
  info.bus_id[sizeof(info.bus_id) - 1] = '\0';
  return info.bus_id;
}

bool NvmlDevice::is_mig_enabled() const {
  const NvmlFunctions& api = library_->api();
  unsigned current = 0;
  unsigned pending = 0;
  return api.mig_mode != nullptr && api.mig_mode(handle_, &current, &pending) == NvmlReturn::success &&
         current == kMigEnabled;
}

bool NvmlDevice::is_vgpu() const {
  const RawReadResult mode = call_nvml(library_->api().virtualization_mode, handle_);
  return mode.status == NvmlReturn::success && mode.raw == kVirtualizationVgpu;
}

std::string NvmlDevice::driver() const {
  std::string versions = fmt::format("NVIDIA {}", library_->driver_version());
  if (library_->api().device_vbios == nullptr) return versions;
  const std::string vbios =
      query_text([&](char* text, unsigned size) { return library_->api().device_vbios(handle_, text, size); });
  return vbios.empty() ? versions : fmt::format("{}, VBIOS {}", versions, vbios);
}

Channel NvmlDevice::make_metric_channel(GpuMetric metric) const {
  const MetricTraits& traits = traits_of_metric(metric);
  Channel channel;
  channel.sensor = "nvml";
  channel.name = fmt::format("gpu{}-{}", index_, traits.suffix);
  channel.source = traits.source;
  channel.domain = fmt::format("gpu{}", index_);
  channel.domain_class = DomainClass::gpu;
  if (metric == GpuMetric::memory_power) {
    channel.part_of = channel.domain;
    channel.domain += "-memory";
    channel.domain_class = DomainClass::other;
  }
  channel.device = uuid();
  channel.device_model = name();
  channel.driver = driver();
  channel.kind = traits.kind;
  channel.quantity = traits.quantity;
  channel.scale = traits.scale;
  channel.refresh_s = metric == GpuMetric::power_history ? kPowerHistoryPeriod_s : kNvmlUpdatePeriod_s;
  channel.averaging_time_s = traits.averaging_time_s;
  return channel;
}

}  // namespace joulemap::sensors::nvml
