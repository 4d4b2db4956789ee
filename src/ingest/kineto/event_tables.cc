// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/event_tables.h"

#include <cstring>

#include "base/text.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::int64_t kLongest_ns = 604'800 * std::int64_t{1'000'000'000};  // one week; longer events are invalid
constexpr std::int64_t kLatest_ns = std::int64_t{1} << 62;
constexpr std::int64_t kMaxDeviceNumber = 4096;
constexpr std::size_t kMaxListedUnknownCategories = 8;
constexpr std::string_view kModuleNamePrefix = "nn.Module: ";
constexpr std::string_view kAutogradNodePrefix = "autograd::engine::evaluate_function:";
// Annotations that PyTorch up to 1.11 wrote as operations.
constexpr std::string_view kOldAnnotationPrefixes[] = {"ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#"};

// Ids come from counters that begin at 1; 0: none. The low 32 bits of a larger id are sufficient.
std::uint32_t to_event_id(std::int64_t number) { return number <= 0 ? 0 : static_cast<std::uint32_t>(number); }

bool is_old_annotation(std::string_view name) {
  for (const std::string_view prefix : kOldAnnotationPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool is_gpu_category(EventCategory category) {
  return category == EventCategory::kernel || category == EventCategory::copy || category == EventCategory::fill;
}

}  // namespace

EventTables::EventTables() {
  track_texts.intern("");
  intern(byte_counts, std::uint64_t{0});
}

bool EventTables::add(const RawEvent& raw, std::vector<TraceEvent>& events, EventCounts& notes) {
  ++notes.event_count;
  if (raw.phase == 'M' && raw.name == "thread_name") thread_names[intern_thread(raw)] = unescape(raw.thread_name);
  if (raw.phase == 'B' || raw.phase == 'E') {  // begin and end events: no version of the profiler writes them
    ++notes.dropped_event_count;
    return false;
  }
  if (raw.phase != 'X' || raw.category == EventCategory::ignored) return true;
  if (raw.category == EventCategory::none || raw.category == EventCategory::unknown) {
    const auto category_count = notes.unknown_category_counts.find(raw.category_text);
    if (category_count != notes.unknown_category_counts.end()) {
      ++category_count->second;
    } else if (notes.unknown_category_counts.size() < kMaxListedUnknownCategories) {
      notes.unknown_category_counts.emplace(raw.category_text.substr(0, 64), 1);
    } else {
      ++notes.unknown_category_counts["and others"];
    }
    return true;
  }
  const bool has_time = raw.start_ns && raw.duration_ns && *raw.start_ns >= 0 && *raw.start_ns < kLatest_ns &&
                        *raw.duration_ns >= 0 && *raw.duration_ns <= kLongest_ns;
  if (!has_time) {
    ++notes.dropped_event_count;
    return false;
  }
  TraceEvent event{.start_ns = *raw.start_ns, .duration_ns = *raw.duration_ns};
  event.correlation = to_event_id(raw.correlation);
  event.external_id = to_event_id(raw.external_id);
  if (event.correlation != 0 && event.external_id != 0) {
    ++(event.correlation == event.external_id ? notes.external_ids_equal_to_correlation
                                              : notes.external_ids_different_from_correlation);
  }
  if (is_gpu_category(raw.category)) {
    add_gpu_event(raw, event, notes);
  } else {
    add_host_event(raw, event);
  }
  events.push_back(event);
  return true;
}

void EventTables::add_host_event(const RawEvent& raw, TraceEvent& event) {
  std::string_view name = unescape(raw.name);
  switch (raw.category) {
    case EventCategory::python:
      event.kind = name.starts_with(kModuleNamePrefix) ? EventKind::module : EventKind::function;
      if (event.kind == EventKind::module) name.remove_prefix(kModuleNamePrefix.size());
      break;
    case EventCategory::annotation:
      event.kind = EventKind::annotation;
      break;
    case EventCategory::api:
      event.kind = EventKind::api;
      break;
    default:
      event.kind = is_old_annotation(name) ? EventKind::annotation : EventKind::op;
      if (raw.sequence_number < 0) break;
      event.detail_index = static_cast<std::uint32_t>(raw.sequence_number + 1);
      event.is_backward = raw.forward_thread != 0 || name.starts_with(kAutogradNodePrefix);
  }
  event.name_index = intern_name(name, raw);
  event.track_index = intern_thread(raw);
}

void EventTables::add_gpu_event(const RawEvent& raw, TraceEvent& event, EventCounts& notes) {
  const bool is_kernel = raw.category == EventCategory::kernel;
  event.kind = is_kernel ? EventKind::kernel : raw.category == EventCategory::copy ? EventKind::copy : EventKind::fill;
  const KernelKind kind = is_kernel                       ? KernelKind::kernel
                          : event.kind == EventKind::copy ? KernelKind::copy
                                                          : KernelKind::fill;
  event.name_index = intern(kernel_classes, KernelClassKey{.name_number = kernel_names.intern(unescape(raw.name)),
                                                           .kernel_kind = static_cast<std::uint32_t>(kind),
                                                           .grid_size = raw.grid_size,
                                                           .block_size = raw.block_size});
  const std::int64_t device = raw.device >= 0 ? raw.device : raw.process.number;  // "pid" of GPU events is the GPU
  const std::int64_t stream = raw.stream >= 0 ? raw.stream : raw.thread.number;
  if (device >= kMaxDeviceNumber) ++notes.invalid_device_event_count;
  event.track_index = intern(
      kernel_queues,
      QueueKey{.device = to_event_id(device), .context = to_event_id(raw.context), .stream = to_event_id(stream)});
  if (!is_kernel && raw.bytes > 0) event.detail_index = intern(byte_counts, static_cast<std::uint64_t>(raw.bytes));
}

std::uint32_t EventTables::intern_thread(const RawEvent& raw) {
  ThreadKey key{.process = raw.process.number, .thread = raw.thread.number};
  const bool is_plain = raw.process.id_text.empty() && raw.thread.id_text.empty();
  const bool is_last = key.process == last_thread_.process && key.thread == last_thread_.thread;
  if (is_plain && is_last && last_thread_number_) return *last_thread_number_;
  if (!raw.process.id_text.empty()) key.process_text = track_texts.intern(raw.process.id_text);
  if (!raw.thread.id_text.empty()) key.thread_text = track_texts.intern(raw.thread.id_text);
  const std::uint32_t number = intern(threads, key);
  if (is_plain) {
    last_thread_ = key;
    last_thread_number_ = number;
  }
  return number;
}

std::uint32_t EventTables::intern_name(std::string_view name, const RawEvent& raw) {
  const std::uint32_t number = names.intern(name);
  if (raw.module_hierarchy.raw.empty() && raw.tensor_shapes.empty()) return number;
  const std::string_view hierarchy = unescape(raw.module_hierarchy);
  const ScopedNameKey key{.name = number,
                          .hierarchy_size = static_cast<std::uint32_t>(hierarchy.size()),
                          .shapes_size = static_cast<std::uint32_t>(raw.tensor_shapes.size())};
  key_bytes_.assign(reinterpret_cast<const char*>(&key), sizeof key);
  key_bytes_.append(hierarchy).append(raw.tensor_shapes).append(raw.tensor_types);
  return scoped_names.intern(key_bytes_) | kScopedNameFlag;
}

std::string_view EventTables::unescape(const formats::JsonText& text) {
  if (!text.escaped) return text.raw;
  unescaped_text_.clear();
  formats::unescape_json(text.raw, unescaped_text_);
  return unescaped_text_;
}

}  // namespace joulemap::ingest::kineto
