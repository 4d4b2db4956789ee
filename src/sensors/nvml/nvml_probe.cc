// SPDX-License-Identifier: Apache-2.0
//
// probe_nvml: loads the library, finds the GPUs, and returns the status and the open sensors.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/fork_gate.h"
#include "base/text.h"
#include "sensors/nvml/nvml_sensor.h"
#include "sensors/nvml/visible_devices.h"

namespace joulemap::sensors {
namespace nvml {
namespace {

constexpr std::string_view kContainerRemedy =
    "run the container with: --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"
    "(needs the NVIDIA Container Toolkit on the host; NVML comes with the capability \"utility\")";

// A GPU that cannot be read, and why.
struct LostDevice {
  unsigned index = 0;
  NvmlReturn status = NvmlReturn::unknown;
};

struct ListedGpus {
  std::vector<NvmlDevice> devices;
  std::vector<ListedDevice> device_descriptions;  // one for each of `devices`
  std::vector<LostDevice> lost_devices;
};

ListedGpus list_devices(const std::shared_ptr<const NvmlLibrary>& library, unsigned count) {
  ListedGpus devices;
  for (unsigned index = 0; index < count; ++index) {
    Device handle = nullptr;
    const NvmlReturn status = library->api().device_by_index(index, &handle);
    if (status != NvmlReturn::success) {
      devices.lost_devices.push_back({index, status});
      continue;
    }
    const NvmlDevice device(library, handle, index);
    devices.device_descriptions.push_back({device.uuid(), device.name(), device.pci_bus_id()});
    devices.devices.push_back(device);
  }
  return devices;
}

std::optional<std::size_t> find_mig_parent(const NvmlLibrary& library, const ListedGpus& devices,
                                           const std::string& mig_uuid) {
  const NvmlFunctions& api = library.api();
  if (api.device_by_uuid == nullptr || api.device_of_mig_device == nullptr) return std::nullopt;
  Device instance = nullptr;
  Device parent = nullptr;
  if (api.device_by_uuid(mig_uuid.c_str(), &instance) != NvmlReturn::success) return std::nullopt;
  if (api.device_of_mig_device(instance, &parent) != NvmlReturn::success) return std::nullopt;
  for (std::size_t i = 0; i < devices.devices.size(); ++i) {
    if (devices.devices[i].handle() == parent) return i;
  }
  return std::nullopt;
}

std::string remedy_for_read_status(NvmlReturn status) {
  switch (to_read_code(status)) {
    case ReadCode::vanished:
      return "sudo dmesg | grep -i xid\n(a GPU reset or a reboot restores it: sudo nvidia-smi --gpu-reset)";
    case ReadCode::denied:
      return "ls -l /dev/nvidia*\n(this user needs read and write access to the GPU's file; in a container, --gpus "
             "all)";
    default:
      return "nvidia-smi -q -d POWER";
  }
}

// Supported metrics of one GPU, and those that exist but are not readable.
struct ReadableMetrics {
  std::vector<GpuMetric> metrics;
  std::vector<UnreadableChannel> unreadable;
  NvmlReturn last_error_status = NvmlReturn::success;  // status of an existing metric that cannot be read
};

ReadableMetrics probe_metrics(const NvmlDevice& device) {
  ReadableMetrics readable_metrics;
  for (std::size_t i = 0; i < kGpuMetricCount; ++i) {
    const auto metric = static_cast<GpuMetric>(i);
    const bool has_average =
        !readable_metrics.metrics.empty() && readable_metrics.metrics.back() == GpuMetric::power_average;
    if (metric == GpuMetric::power_usage && has_average) continue;
    const NvmlReturn status = device.read(metric).status;
    if (status == NvmlReturn::success) {
      readable_metrics.metrics.push_back(metric);
    } else if (is_supported(status)) {
      readable_metrics.last_error_status = status;
      readable_metrics.unreadable.push_back(
          {device.make_metric_channel(metric), std::string(to_string(to_read_code(status)))});
    }
  }
  return readable_metrics;
}

// Whether the GPU has no energy counter. A counter that exists but is not readable counts as present.
bool has_no_energy_counter(const ReadableMetrics& readable_metrics) {
  const bool is_counter_unreadable =
      !readable_metrics.unreadable.empty() && readable_metrics.unreadable.front().channel.kind == ChannelKind::counter;
  return readable_metrics.metrics.front() != GpuMetric::energy && !is_counter_unreadable;
}

bool measures_energy_of_gpu(const std::vector<GpuMetric>& metrics) {
  return std::any_of(metrics.begin(), metrics.end(), [](GpuMetric metric) {
    return metric == GpuMetric::energy || (is_power_metric(metric) && metric != GpuMetric::memory_power);
  });
}

std::string make_gpu_label(const NvmlDevice& device, const ListedDevice& listed) {
  return fmt::format("gpu{} ({})", device.index(), listed.name.empty() ? listed.uuid : listed.name);
}

void insert_metric_in_order(std::vector<GpuMetric>& metrics, GpuMetric metric) {
  metrics.insert(std::upper_bound(metrics.begin(), metrics.end(), metric), metric);
}

class NvmlProber {
 public:
  NvmlProber(std::shared_ptr<const NvmlLibrary> library, const MeasuredProcessCriteria& measured, SensorStatus& status)
      : library_(std::move(library)), measured_process_criteria_(measured), status_(status) {}

  void probe_devices(std::vector<std::unique_ptr<Sensor>>& sensors);

 private:
  void diagnose_lost_devices(const ListedGpus& devices);
  void diagnose_device(const NvmlDevice& device, const std::string& label, const ReadableMetrics& readable_metrics);
  void open_device(const NvmlDevice& device, const ListedDevice& listed, std::vector<std::unique_ptr<Sensor>>& sensors);
  void set_status(const ListedGpus& devices, unsigned count, std::size_t visible);

  std::shared_ptr<const NvmlLibrary> library_;
  const MeasuredProcessCriteria& measured_process_criteria_;
  SensorStatus& status_;
  std::string opened_gpu_labels_;  // labels of the opened GPUs, for the reason of the status
  std::size_t opened_gpu_count_ = 0;
  std::string first_failure_reason_;  // why the first GPU that failed could not be opened
  std::string first_failure_remedy_;
  bool is_any_denied_ = false;
};

void NvmlProber::diagnose_lost_devices(const ListedGpus& devices) {
  for (const LostDevice& lost : devices.lost_devices) {
    const ReadCode code = to_read_code(lost.status);
    const std::string failure_reason = fmt::format("gpu{}: {}", lost.index, library_->describe_status(lost.status));
    status_.diagnostics.add({code == ReadCode::denied     ? "gpu_denied"
                             : code == ReadCode::vanished ? "gpu_lost"
                                                          : "gpu_failed",
                             1, failure_reason, remedy_for_read_status(lost.status)});
    if (first_failure_reason_.empty()) {
      first_failure_reason_ = failure_reason;
      first_failure_remedy_ = remedy_for_read_status(lost.status);
    }
    is_any_denied_ = is_any_denied_ || code == ReadCode::denied;
  }
}

void NvmlProber::diagnose_device(const NvmlDevice& device, const std::string& label,
                                 const ReadableMetrics& readable_metrics) {
  if (has_no_energy_counter(readable_metrics)) {
    status_.diagnostics.add(
        {"no_energy_counter", 1,
         fmt::format("{} has no energy counter: joulemap integrates its power, and misses changes between two readings",
                     label),
         ""});
  }
  if (device.is_mig_enabled()) {
    status_.diagnostics.add(
        {"mig_mode", 1, fmt::format("{} is split into instances (MIG): its energy includes all of them", label), ""});
  }
  if (readable_metrics.last_error_status != NvmlReturn::success) {
    const bool is_denied = to_read_code(readable_metrics.last_error_status) == ReadCode::denied;
    status_.diagnostics.add({is_denied ? "sensor_denied" : "sensor_unreadable", readable_metrics.unreadable.size(),
                             fmt::format("{}: {}: {}", label, readable_metrics.unreadable.front().channel.name,
                                         library_->describe_status(readable_metrics.last_error_status)),
                             remedy_for_read_status(readable_metrics.last_error_status)});
  }
}

void NvmlProber::open_device(const NvmlDevice& device, const ListedDevice& listed,
                             std::vector<std::unique_ptr<Sensor>>& sensors) {
  const std::string label = make_gpu_label(device, listed);
  ReadableMetrics readable_metrics = probe_metrics(device);
  for (UnreadableChannel& channel : readable_metrics.unreadable) {
    if (measures_energy_or_power(channel.channel)) status_.unreadable.push_back(channel);
  }
  if (measures_energy_of_gpu(readable_metrics.metrics)) {
    diagnose_device(device, label, readable_metrics);
    opened_gpu_labels_ +=
        fmt::format("{}{}{}", opened_gpu_labels_.empty() ? "" : ", ", label,
                    has_no_energy_counter(readable_metrics) ? " from its power, without an energy counter" : "");
    ++opened_gpu_count_;
    std::optional<OtherProcesses> others = find_other_processes(device, MeasuredProcessSet(measured_process_criteria_));
    if (others) {
      status_.diagnostics.add_all(describe_other_processes(*others, label, device));
      insert_metric_in_order(readable_metrics.metrics, GpuMetric::other_processes_utilization);
    }
    auto sensor = std::make_unique<NvmlSensor>(device, std::move(readable_metrics.metrics), std::move(others));
    status_.channels.insert(status_.channels.end(), sensor->channels().begin(), sensor->channels().end());
    sensors.push_back(std::move(sensor));
    return;
  }
  std::string failure_reason = fmt::format("{} reports neither energy nor power", label);
  std::string remedy;
  if (readable_metrics.last_error_status != NvmlReturn::success) {
    failure_reason = fmt::format("{}: {}", label, library_->describe_status(readable_metrics.last_error_status));
    remedy = remedy_for_read_status(readable_metrics.last_error_status);
    is_any_denied_ = is_any_denied_ || to_read_code(readable_metrics.last_error_status) == ReadCode::denied;
  } else if (device.is_vgpu()) {
    failure_reason = fmt::format("{} is a virtual GPU: its host does not expose energy to guests", label);
    remedy = "not possible in this VM; measure on the host, or use a machine that passes the whole GPU through";
  }
  status_.diagnostics.add({"gpu_without_energy", 1, failure_reason, remedy});
  if (first_failure_reason_.empty()) {
    first_failure_reason_ = failure_reason;
    first_failure_remedy_ = remedy;
  }
}

void NvmlProber::set_status(const ListedGpus& devices, unsigned count, std::size_t visible) {
  const std::size_t hidden_gpu_count = devices.devices.size() - visible;
  const std::string hidden_text = hidden_gpu_count == 0 ? ""
                                                        : fmt::format("; CUDA_VISIBLE_DEVICES hides {} of {}",
                                                                      hidden_gpu_count, devices.devices.size());
  if (opened_gpu_count_ > 0) {
    const std::string driver = library_->driver_version();
    status_.state = SensorState::measured;
    status_.reason = fmt::format("{}{}{}", opened_gpu_labels_, driver.empty() ? "" : ", driver " + driver, hidden_text);
    return;
  }
  if (count == 0) {
    status_.reason = "the driver reports no GPU";
    status_.remedy = kContainerRemedy;
    return;
  }
  status_.state = is_any_denied_ ? SensorState::denied : SensorState::absent;
  if (first_failure_reason_.empty()) {
    status_.reason = fmt::format("CUDA_VISIBLE_DEVICES hides all GPUs ({})", devices.devices.size());
    status_.remedy = "unset CUDA_VISIBLE_DEVICES";
    return;
  }
  status_.reason = first_failure_reason_ + hidden_text;
  status_.remedy = first_failure_remedy_;
}

void NvmlProber::probe_devices(std::vector<std::unique_ptr<Sensor>>& sensors) {
  unsigned count = 0;
  if (const NvmlReturn status = library_->api().device_count(&count); status != NvmlReturn::success) {
    status_.reason = fmt::format("nvmlDeviceGetCount: {}", library_->describe_status(status));
    status_.remedy = remedy_for_read_status(status);
    status_.diagnostics.add({"gpu_failed", 1, status_.reason, status_.remedy});
    return;
  }
  const ListedGpus devices = list_devices(library_, count);
  const VisibleDevices visible =
      select_visible_devices(devices.device_descriptions, read_cuda_environment(),
                             [&](const std::string& uuid) { return find_mig_parent(*library_, devices, uuid); });
  diagnose_lost_devices(devices);
  status_.diagnostics.add_all(visible.diagnostics);
  for (const std::size_t i : visible.device_indexes)
    open_device(devices.devices[i], devices.device_descriptions[i], sensors);
  set_status(devices, count, visible.device_indexes.size());
}

}  // namespace
}  // namespace nvml

ProbeResult probe_nvml(const ProbeContext& context) {
  ProbeResult probe;
  probe.status.name = "nvml";
  const nvml::NvmlLibraryChoice choice = nvml::choose_nvml_library(context.root().is_this_machine());
  if (choice.is_path_refused) {
    probe.status.diagnostics.add({"nvml_library_refused", 1,
                                  "JOULEMAP_NVML was ignored: this program has more privileges than its user and would "
                                  "run that library with them",
                                  "unset JOULEMAP_NVML, or use a copy of joulemap without capabilities"});
  }
  if (choice.path.empty()) {
    probe.status.reason = "off: --sysroot reads another machine (JOULEMAP_NVML can name a library to use with it)";
    return probe;
  }
  if (nvml_fork_gate.may_hold_inherited_locks()) {
    probe.status.reason = "off: this process was forked while another thread was inside NVML, and inherited its locks";
    probe.status.remedy = "open the first window before forking, or start workers by exec (spawn)";
    return probe;
  }
  const ForkGate::ScopedGateEntry inside(nvml_fork_gate);
  Result<std::shared_ptr<const nvml::NvmlLibrary>> library = nvml::NvmlLibrary::load(choice.path);
  if (!library) {
    const Error& error = library.error();
    if (error.code == ErrorCode::permission) probe.status.state = SensorState::denied;
    probe.status.reason = error.message;
    probe.status.remedy = error.remedy;
    if (error.remedy.empty() && !context.host().container.empty()) probe.status.remedy = nvml::kContainerRemedy;
    // Most machines have no NVIDIA driver. If a driver exists but fails, the energy of its GPU is missing.
    if (error.code != ErrorCode::not_found) {
      probe.status.diagnostics.add({"gpu_failed", 1, error.message, probe.status.remedy});
    }
    return probe;
  }
  nvml::NvmlProber(*library, context.measured_processes(), probe.status).probe_devices(probe.sensors);
  return probe;
}

}  // namespace joulemap::sensors
