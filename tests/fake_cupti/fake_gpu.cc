// SPDX-License-Identifier: Apache-2.0
#include "fake_cupti/fake_gpu.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/clock.h"

namespace joulemap::fake_cupti {
namespace {

// Indexed by callback id. The real library has 800.
constexpr const char* kDriverFunctions[] = {
    "INVALID",           "cuInit",         "cuLaunchKernel",       "cuLaunchKernelEx_ptsz",
    "cuLaunchHostFunc",  "cuMemSetAccess", "cuMemcpyHtoDAsync_v2", "cuMemsetD8Async",
    "cuMemcpyPeerAsync", "cuGraphLaunch"};

constexpr std::uint32_t kUnknownRecordKind = 900;

std::uint32_t callback_id_of(std::string_view function) {
  for (std::uint32_t id = 1; id < std::size(kDriverFunctions); ++id) {
    if (function == kDriverFunctions[id]) return id;
  }
  return 0;
}

RecordKind find_record_kind(Work work) {
  switch (work) {
    case Work::kernel:
      return RecordKind::concurrent_kernel;
    case Work::copy:
      return RecordKind::copy;
    case Work::fill:
      return RecordKind::fill;
    case Work::peer_copy:
      return RecordKind::peer_copy;
    case Work::graph:
      return RecordKind::graph;
  }
  return RecordKind::kernel;
}

const char* find_launch_function(Work work) {
  switch (work) {
    case Work::copy:
      return "cuMemcpyHtoDAsync_v2";
    case Work::fill:
      return "cuMemsetD8Async";
    case Work::peer_copy:
      return "cuMemcpyPeerAsync";
    case Work::graph:
      return "cuGraphLaunch";
    case Work::kernel:
      break;
  }
  return "cuLaunchKernel";
}

template <class Value>
void write_value_at(std::vector<std::uint8_t>& bytes, std::size_t offset, const Value& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

void write_record_times(std::uint8_t* record, std::uint64_t start, std::uint64_t end) {
  std::uint32_t kind = 0;
  std::memcpy(&kind, record, sizeof kind);
  const std::size_t offset = kind == static_cast<std::uint32_t>(RecordKind::graph) ? 8 : 16;
  std::memcpy(record + offset, &start, sizeof start);
  std::memcpy(record + offset + 8, &end, sizeof end);
}

}  // namespace

void FakeGpu::reset(std::uint32_t version) {
  finalize();
  const std::lock_guard hold(lock_);
  version_ = version;
  other_subscriber_ = false;
  clock_offset_ns_ = 0;
  are_times_damaged_ = false;
  held_records_.clear();
  are_records_held_ = false;
  dropped_records_ = 0;
  next_correlation_ = 1;
  next_graph_node_ = 1;
  refusal_results_.clear();
  call_count_.store(0);
}

CuptiResult FakeGpu::begin_call(const char* function) {
  call_count_.fetch_add(1);
  const std::lock_guard hold(lock_);
  const auto refusal = refusal_results_.find(function);
  return refusal == refusal_results_.end() ? CuptiResult::success : static_cast<CuptiResult>(refusal->second);
}

void FakeGpu::set_function_result(const char* function, int outcome) {
  const std::lock_guard hold(lock_);
  refusal_results_.erase(function);
  if (outcome != 0) refusal_results_[function] = outcome;
}

std::uint64_t FakeGpu::now() {
  const std::lock_guard hold(lock_);
  if (clock_ != nullptr) return clock_();
  return static_cast<std::uint64_t>(unix_ns() + clock_offset_ns_);
}

// ---- the program

std::uint32_t FakeGpu::launch(const Launch& launch) {
  std::uint32_t correlation = launch.correlation;
  {
    const std::lock_guard hold(lock_);
    if (correlation == 0) correlation = next_correlation_++;
  }
  if (launch.graph_node == 0) report_driver_call(find_launch_function(launch.work), correlation);
  const std::lock_guard hold(lock_);
  if (enabled_kinds_.count(find_record_kind(launch.work)) != 0)
    add({make_record(launch, correlation), launch.keeps_running});
  return correlation;
}

std::uint32_t FakeGpu::launch_graph() {
  std::uint32_t correlation = 0;
  {
    const std::lock_guard hold(lock_);
    correlation = next_correlation_++;
  }
  report_driver_call("cuGraphLaunch", correlation);
  return correlation;
}

void FakeGpu::report_driver_call(const char* function, std::uint32_t correlation) {
  ApiCall call{};
  call.function_name = function;
  call.correlation = correlation;
  for (const std::uint32_t site : {kApiEnter, 1U}) {
    call.enter_or_exit = site;
    invoke_callback(CallbackDomain::driver, callback_id_of(function), &call);
  }
}

void FakeGpu::invoke_callback(CallbackDomain domain, std::uint32_t id, const void* data) {
  Callback callback = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard hold(lock_);
    if (!subscribed_ || enabled_callbacks_.count({domain, id}) == 0) return;
    callback = callback_;
    user = callback_user_data_;
  }
  callback(user, domain, id, data);
}

std::uint64_t FakeGpu::capture_graph_node() {
  std::uint64_t node = 0;
  {
    const std::lock_guard hold(lock_);
    node = next_graph_node_++;
  }
  const GraphChange graph{nullptr, nullptr, reinterpret_cast<GraphNode>(node), nullptr};
  const ResourceData change{nullptr, nullptr, &graph};
  invoke_callback(CallbackDomain::resource, kGraphNodeCreated, &change);
  return node;
}

std::uint64_t FakeGpu::clone_graph_node(std::uint64_t original_node) {
  std::uint64_t node = 0;
  {
    const std::lock_guard hold(lock_);
    node = next_graph_node_++;
  }
  const GraphChange graph{nullptr, nullptr, reinterpret_cast<GraphNode>(node),
                          reinterpret_cast<GraphNode>(original_node)};
  const ResourceData change{nullptr, nullptr, &graph};
  invoke_callback(CallbackDomain::resource, kGraphNodeCloned, &change);
  return node;
}

// ---- records

std::size_t FakeGpu::record_kind(RecordKind kind) const {
  const bool has_newest_layout = version_ >= 130'000;  // records have grown since CUDA 11.0
  switch (kind) {
    case RecordKind::copy:
      return has_newest_layout ? 96 : 72;
    case RecordKind::fill:
      return has_newest_layout ? 88 : 72;
    case RecordKind::peer_copy:
      return has_newest_layout ? 96 : 80;
    case RecordKind::graph:
      return has_newest_layout ? 56 : 48;
    case RecordKind::kernel:
    case RecordKind::concurrent_kernel:
      break;
  }
  return static_cast<std::uint32_t>(kind) == kUnknownRecordKind ? 24 : has_newest_layout ? 216 : 160;
}

std::vector<std::uint8_t> FakeGpu::make_record(const Launch& launch, std::uint32_t correlation) {
  const RecordKind kind = find_record_kind(launch.work);
  std::vector<std::uint8_t> bytes(record_kind(kind), 0);
  write_value_at(bytes, 0, kind);
  const std::uint32_t context = 1;
  if (kind == RecordKind::concurrent_kernel) {
    write_value_at(bytes, 40, launch.device);
    write_value_at(bytes, 44, context);
    write_value_at(bytes, 48, launch.stream);
    write_value_at(bytes, 52, launch.grid);
    write_value_at(bytes, 64, launch.block);
    write_value_at(bytes, 92, correlation);
    write_value_at(bytes, 104, launch.name);
    write_value_at(bytes, 144, launch.graph_node);
  } else if (kind == RecordKind::graph) {
    write_value_at(bytes, 4, correlation);
    write_value_at(bytes, 24, launch.device);
    write_value_at(bytes, 32, context);
    write_value_at(bytes, 36, launch.stream);
  } else {
    write_value_at(bytes, 4, launch.copy_kind);
    write_value_at(bytes, 8, launch.bytes);
    write_value_at(bytes, 32, launch.device);
    write_value_at(bytes, 36, context);
    write_value_at(bytes, 40, launch.stream);
    write_value_at(bytes, kind == RecordKind::peer_copy ? 60 : 44, correlation);
    write_value_at(bytes, kind == RecordKind::peer_copy ? 72 : 64, launch.graph_node);
  }
  if (launch.keeps_running) return bytes;  // its times are set when it ends
  const std::uint64_t end = are_times_damaged_ ? 42 : now();
  write_record_times(bytes.data(), are_times_damaged_ ? 7 : end - static_cast<std::uint64_t>(launch.duration_ns), end);
  return bytes;
}

void FakeGpu::add(PendingRecord pending) {
  if (are_records_held_) {
    held_records_.push_back(std::move(pending));
  } else {
    put(pending);
  }
}

void FakeGpu::put(const PendingRecord& pending) {
  if (!open_buffers_.empty() && open_buffers_.front().used + pending.bytes.size() > open_buffers_.front().size) {
    full_buffers_.push_back(open_buffers_.front());
    open_buffers_.clear();
    deliver_buffers(false, false);
  }
  if (open_buffers_.empty() && buffer_requested_ != nullptr) {
    Buffer new_buffer{nullptr, 0, 0};
    std::size_t max_records = 0;
    buffer_requested_(&new_buffer.memory, &new_buffer.size, &max_records);
    if (new_buffer.memory != nullptr && new_buffer.size >= pending.bytes.size()) open_buffers_.push_back(new_buffer);
  }
  if (open_buffers_.empty()) {
    ++dropped_records_;
    return;
  }
  Buffer& buffer = open_buffers_.front();
  std::uint8_t* record = buffer.memory + buffer.used;
  std::memcpy(record, pending.bytes.data(), pending.bytes.size());
  buffer.used += pending.bytes.size();
  if (pending.running) running_records_.push_back({record, now()});
}

void FakeGpu::end_running_records() {
  const std::lock_guard hold(lock_);
  const std::uint64_t end = now();
  for (const auto& [record, start] : running_records_) write_record_times(record, start, end);
  running_records_.clear();
}

bool FakeGpu::Buffer::holds(const std::uint8_t* record) const { return record >= memory && record < memory + used; }

void FakeGpu::deliver_buffers(bool includes_open_buffers, bool is_forced) {
  std::vector<Buffer> candidates = std::exchange(full_buffers_, {});
  if (includes_open_buffers) candidates.insert(candidates.end(), open_buffers_.begin(), open_buffers_.end());
  if (includes_open_buffers) open_buffers_.clear();
  for (const Buffer& buffer : candidates) {
    const auto in_buffer = [&](const RunningRecord& running) { return buffer.holds(running.record); };
    if (!is_forced && std::any_of(running_records_.begin(), running_records_.end(), in_buffer)) {
      full_buffers_.push_back(buffer);  // a real open buffer could still get records; here it counts as full
      continue;
    }
    running_records_.erase(std::remove_if(running_records_.begin(), running_records_.end(), in_buffer),
                           running_records_.end());
    read_offsets_.erase(buffer.memory);
    if (buffer_completed_ != nullptr) buffer_completed_(nullptr, 0, buffer.memory, buffer.size, buffer.used);
  }
}

void FakeGpu::flush(bool is_forced) {
  {
    std::unique_lock hold(hang_lock_);
    hang_end_condition_.wait(hold, [this] { return !is_flush_hanging_; });
  }
  const std::lock_guard hold(lock_);
  deliver_buffers(true, is_forced);
}

CuptiResult FakeGpu::next_record(std::uint8_t* buffer, std::size_t valid_size, Record** record) {
  const std::lock_guard hold(lock_);
  std::size_t& position = read_offsets_[buffer];
  if (position >= valid_size) {
    read_offsets_.erase(buffer);
    return CuptiResult::max_limit_reached;
  }
  RecordKind kind{};
  std::memcpy(&kind, buffer + position, sizeof kind);
  *record = reinterpret_cast<Record*>(buffer + position);
  position += record_kind(kind);
  return CuptiResult::success;
}

void FakeGpu::add_unknown_record() {
  const std::lock_guard hold(lock_);
  std::vector<std::uint8_t> bytes(24, 0);
  write_value_at(bytes, 0, kUnknownRecordKind);
  add({std::move(bytes), false});
}

CuptiResult FakeGpu::callback_name(std::uint32_t id, const char** name) {
  if (id >= std::size(kDriverFunctions)) return CuptiResult::invalid_parameter;
  *name = kDriverFunctions[id];
  return CuptiResult::success;
}

bool FakeGpu::is_callback_enabled(const char* driver_function) {
  const std::lock_guard hold(lock_);
  return subscribed_ && enabled_callbacks_.count({CallbackDomain::driver, callback_id_of(driver_function)}) != 0;
}

}  // namespace joulemap::fake_cupti
