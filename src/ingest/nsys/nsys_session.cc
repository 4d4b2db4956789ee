// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/nsys_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace joulemap::ingest {
namespace {

using formats::SqliteRows;

constexpr std::int64_t kGlobalIdFieldSize = 0x1000000;
// The year 2001. Later times are Unix times (nsys export --ts-normalize); earlier ones count from the session's start.
constexpr std::int64_t kEarliestUnix_ns = 1'000'000'000 * std::int64_t{1'000'000'000};

// NVML writes GPU-8f0c...; some versions of nsys omit the prefix.
std::string normalize_gpu_uuid(std::string_view text) {
  const bool is_bare_uuid = text.size() == 36 && std::count(text.begin(), text.end(), '-') == 4;
  return (is_bare_uuid ? "GPU-" : "") + to_valid_utf8(text);
}

}  // namespace

std::int64_t process_id_of(std::int64_t global_id) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(global_id) / kGlobalIdFieldSize % kGlobalIdFieldSize);
}
std::int64_t thread_id_of(std::int64_t global_id) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(global_id) % kGlobalIdFieldSize);
}

void NsysSession::read_session_tables() {
  SqliteRows texts = database_.rows("StringIds", {"id", "value"});
  while (texts.next()) {
    if (const auto id = texts.integer(0)) texts_.insert_or_assign(*id, texts.text(1));
  }
  report_damage("StringIds", texts);
  SqliteRows start = database_.rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
  if (start.next()) session_start_ns_ = start.integer(0);
  SqliteRows environment_rows = database_.rows("TARGET_INFO_SYSTEM_ENV", {"name", "value"});
  while (environment_rows.next()) {
    if (environment_rows.text(0) == "Hostname") builder_.trace().host = to_valid_utf8(environment_rows.text(1));
  }
  SqliteRows versions = database_.rows("META_DATA_EXPORT", {"name", "value"});
  while (versions.next()) {
    if (versions.text(0) == "EXPORT_PRODUCT_VERSION" || versions.text(0) == "EXPORT_SCHEMA_VERSION") {
      builder_.trace().environment.push_back(
          {"nsys_" + std::string(versions.text(0)), to_valid_utf8(versions.text(1))});
    }
  }
  SqliteRows names = database_.rows("ThreadNames", {"globalTid", "nameId"});
  while (names.next()) {
    if (const auto id = names.integer(0)) thread_names_.insert_or_assign(*id, to_valid_utf8(text(names, 1)));
  }
  read_gpus();
}

void NsysSession::read_gpus() {
  SqliteRows gpus = database_.rows("TARGET_INFO_GPU", {"id", "name", "uuid"});
  while (gpus.next()) {
    const auto id = gpus.integer(0);
    if (!id) continue;
    gpus_[*id] = {to_valid_utf8(gpus.text(1)), normalize_gpu_uuid(gpus.text(2))};
    builder_.trace().environment.push_back({fmt::format("gpu{}", *id), gpus_[*id].name});
  }
  SqliteRows devices = database_.rows("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid", "uuid"});
  while (devices.next()) {
    const auto gpu = devices.integer(0);
    const auto ordinal = devices.integer(1);
    if (!gpu || !ordinal) continue;
    gpu_id_by_device_[{devices.integer(2).value_or(0) % kGlobalIdFieldSize, *ordinal}] = *gpu;
    if (gpus_[*gpu].uuid.empty()) gpus_[*gpu].uuid = normalize_gpu_uuid(devices.text(3));
  }
}

std::string NsysSession::find_gpu_uuid(std::int64_t process, std::int64_t device) const {
  auto gpu = gpu_id_by_device_.find({process, device});
  if (gpu == gpu_id_by_device_.end()) gpu = gpu_id_by_device_.find({0, device});
  // Without the table TARGET_INFO_CUDA_DEVICE, the ordinal of a GPU is taken as its id.
  if (gpu == gpu_id_by_device_.end() && !gpu_id_by_device_.empty()) return {};
  const auto gpu_entry = gpus_.find(gpu == gpu_id_by_device_.end() ? device : gpu->second);
  return gpu_entry == gpus_.end() ? std::string() : gpu_entry->second.uuid;
}

std::string_view NsysSession::text(const SqliteRows& rows, int column) const {
  if (rows.is_text(column)) return rows.text(column);
  const auto id = rows.integer(column);
  const auto text_entry = id ? texts_.find(*id) : texts_.end();
  return text_entry == texts_.end() ? std::string_view() : std::string_view(text_entry->second);
}

std::uint32_t NsysSession::intern_thread(std::int64_t global_id) {
  const auto [slot, is_new] = threads_.try_emplace(global_id, 0);
  if (!is_new) return slot->second;
  slot->second = builder_.intern_thread(process_id_of(global_id), thread_id_of(global_id));
  const auto name = thread_names_.find(global_id);
  if (name != thread_names_.end()) builder_.trace().threads[slot->second].name = name->second;
  return slot->second;
}

std::uint32_t NsysSession::intern_queue(std::optional<std::int64_t> global_id, std::int64_t device,
                                        std::int64_t context, std::int64_t stream) {
  const std::int64_t process = global_id ? process_id_of(*global_id) : 0;
  const auto [slot, is_new] = queues_.try_emplace({process, device, context, stream}, 0);
  if (is_new) {
    slot->second = builder_.intern_queue({.device = find_gpu_uuid(process, device),
                                          .ordinal = static_cast<std::uint32_t>(device),
                                          .context = static_cast<std::uint32_t>(context),
                                          .stream = static_cast<std::uint32_t>(stream)});
  }
  return slot->second;
}

// The first process keeps its ids, since most exports have one process. Others get ids from UINT32_MAX down.
std::uint32_t NsysSession::remap_correlation_id(std::optional<std::int64_t> global_id, std::optional<std::int64_t> id) {
  if (!id || *id <= 0 || *id > UINT32_MAX) return 0;
  if (!global_id) return static_cast<std::uint32_t>(*id);
  const std::int64_t process = process_id_of(*global_id);
  if (!first_process_id_) first_process_id_ = process;
  if (process == *first_process_id_) return static_cast<std::uint32_t>(*id);
  const auto remapped_id = static_cast<std::uint32_t>(UINT32_MAX - remapped_correlation_ids_.size());
  return remapped_correlation_ids_.try_emplace({process, *id}, remapped_id).first->second;
}

bool NsysSession::read_times(const SqliteRows& rows, TraceEvent& event) {
  const auto start_ns = rows.integer(0);
  const auto end_ns = rows.integer(1);
  if (!start_ns || !end_ns) {
    builder_.add_dropped_events("without a time");
    return false;
  }
  if (*end_ns < *start_ns || __builtin_sub_overflow(*end_ns, *start_ns, &event.duration_ns)) {
    builder_.add_dropped_events("that end before they begin");
    return false;
  }
  event.start_ns = *start_ns;
  return true;
}

void NsysSession::add(const TraceEvent& event) {
  if (!builder_.add_event(event)) return;
  last_event_end_ns_ = std::max(last_event_end_ns_, event.start_ns + event.duration_ns);
  ++event_count_;
  if (event.start_ns >= kEarliestUnix_ns) ++unix_time_event_count_;
}

void NsysSession::report_damage(std::string_view table, const SqliteRows& rows) {
  if (rows.damage_text().empty()) return;
  builder_.add_diagnostic(
      "damaged_trace",
      fmt::format("nsys: the table {} is damaged ({}): its remaining rows are missing", table, rows.damage_text()),
      "export the report again: nsys export --type sqlite");
}

Trace NsysSession::finish() && {
  Trace& trace = builder_.trace();
  if (2 * unix_time_event_count_ > event_count_) {  // the majority: a single time may be damaged
    trace.clock = TraceClock::unix_time;
  } else if (session_start_ns_) {
    builder_.shift_times(*session_start_ns_);
  } else {
    trace.clock = TraceClock::since_start;
  }
  std::optional<std::int64_t> process;
  bool is_single_process = true;
  for (const TraceThread& thread : trace.threads) {
    is_single_process = is_single_process && thread.process == process.value_or(thread.process);
    process = thread.process;
  }
  if (is_single_process) trace.process = process;
  return std::move(builder_).finish();
}

}  // namespace joulemap::ingest
