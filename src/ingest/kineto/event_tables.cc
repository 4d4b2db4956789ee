// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/event_tables.h"

#include <cstring>

#include "base/text.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::int64_t kLongest_ns = 604'800 * std::int64_t{1'000'000'000};  // one week; longer events are invalid
constexpr std::int64_t kLatest_ns = std::int64_t{1} << 62;
constexpr std::int64_t kMaxDevices = 4096;
constexpr std::size_t kMaxCategories = 8;
constexpr std::string_view kModule = "nn.Module: ";
constexpr std::string_view kAutogradNode = "autograd::engine::evaluate_function:";
// Annotations that PyTorch up to 1.11 wrote as operations.
constexpr std::string_view kAnnotations[] = {"ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#"};

// Ids come from counters that begin at 1; 0: none. The low 32 bits of a larger id are sufficient.
std::uint32_t id_of(std::int64_t number) { return number <= 0 ? 0 : static_cast<std::uint32_t>(number); }

bool is_old_annotation(std::string_view name) {
  for (const std::string_view prefix : kAnnotations) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool is_gpu(Category category) {
  return category == Category::kernel || category == Category::copy || category == Category::fill;
}

}  // namespace

EventTables::EventTables() {
  track_name.intern("");
  intern(sizes, std::uint64_t{0});
}

bool EventTables::add(const RawEvent& raw, std::vector<TraceEvent>& events, EventCounts& notes) {
  ++notes.total;
  if (raw.phase == 'M' && raw.name == "thread_name") thread_names[intern_thread(raw)] = unescape(raw.thread_name);
  if (raw.phase == 'B' || raw.phase == 'E') {  // begin and end events: no version of the profiler writes them
    ++notes.dropped;
    return false;
  }
  if (raw.phase != 'X' || raw.category == Category::ignored) return true;
  if (raw.category == Category::none || raw.category == Category::unknown) {
    const auto known = notes.unknown_categories.find(raw.category_text);
    if (known != notes.unknown_categories.end()) {
      ++known->second;
    } else if (notes.unknown_categories.size() < kMaxCategories) {
      notes.unknown_categories.emplace(raw.category_text.substr(0, 64), 1);
    } else {
      ++notes.unknown_categories["and others"];
    }
    return true;
  }
  const bool has_time = raw.start_ns && raw.duration_ns && *raw.start_ns >= 0 && *raw.start_ns < kLatest_ns &&
                        *raw.duration_ns >= 0 && *raw.duration_ns <= kLongest_ns;
  if (!has_time) {
    ++notes.dropped;
    return false;
  }
  TraceEvent event{.start_ns = *raw.start_ns, .duration_ns = *raw.duration_ns};
  event.correlation = id_of(raw.correlation);
  event.external_id = id_of(raw.external_id);
  if (event.correlation != 0 && event.external_id != 0) {
    ++(event.correlation == event.external_id ? notes.external_ids_equal_to_correlation
                                              : notes.external_ids_unlike_correlation);
  }
  if (is_gpu(raw.category)) {
    add_on_gpu(raw, event, notes);
  } else {
    add_on_thread(raw, event);
  }
  events.push_back(event);
  return true;
}

void EventTables::add_on_thread(const RawEvent& raw, TraceEvent& event) {
  std::string_view name = unescape(raw.name);
  switch (raw.category) {
    case Category::python:
      event.kind = name.starts_with(kModule) ? EventKind::module : EventKind::function;
      if (event.kind == EventKind::module) name.remove_prefix(kModule.size());
      break;
    case Category::annotation:
      event.kind = EventKind::annotation;
      break;
    case Category::api:
      event.kind = EventKind::api;
      break;
    default:
      event.kind = is_old_annotation(name) ? EventKind::annotation : EventKind::op;
      if (raw.sequence_number < 0) break;
      event.detail = static_cast<std::uint32_t>(raw.sequence_number + 1);
      event.is_backward = raw.forward_thread != 0 || name.starts_with(kAutogradNode);
  }
  event.name = intern_name(name, raw);
  event.track = intern_thread(raw);
}

void EventTables::add_on_gpu(const RawEvent& raw, TraceEvent& event, EventCounts& notes) {
  const bool is_kernel = raw.category == Category::kernel;
  event.kind = is_kernel ? EventKind::kernel : raw.category == Category::copy ? EventKind::copy : EventKind::fill;
  const KernelKind kind = is_kernel                       ? KernelKind::kernel
                          : event.kind == EventKind::copy ? KernelKind::copy
                                                          : KernelKind::fill;
  event.name = intern(classes, ClassKey{.name = kernel_names.intern(unescape(raw.name)),
                                        .kind = static_cast<std::uint32_t>(kind),
                                        .grid = raw.grid,
                                        .block = raw.block});
  const std::int64_t device = raw.device >= 0 ? raw.device : raw.process.number;  // "pid" of GPU events is the GPU
  const std::int64_t stream = raw.stream >= 0 ? raw.stream : raw.thread.number;
  if (device >= kMaxDevices) ++notes.invalid_devices;
  event.track =
      intern(queues, QueueKey{.device = id_of(device), .context = id_of(raw.context), .stream = id_of(stream)});
  if (!is_kernel && raw.bytes > 0) event.detail = intern(sizes, static_cast<std::uint64_t>(raw.bytes));
}

std::uint32_t EventTables::intern_thread(const RawEvent& raw) {
  ThreadKey key{.process = raw.process.number, .thread = raw.thread.number};
  const bool is_plain = raw.process.track_name.empty() && raw.thread.track_name.empty();
  const bool is_last = key.process == last_thread_.process && key.thread == last_thread_.thread;
  if (is_plain && is_last && last_thread_number_) return *last_thread_number_;
  if (!raw.process.track_name.empty()) key.process_text = track_name.intern(raw.process.track_name);
  if (!raw.thread.track_name.empty()) key.thread_text = track_name.intern(raw.thread.track_name);
  const std::uint32_t number = intern(threads, key);
  if (is_plain) {
    last_thread_ = key;
    last_thread_number_ = number;
  }
  return number;
}

std::uint32_t EventTables::intern_name(std::string_view name, const RawEvent& raw) {
  const std::uint32_t number = names.intern(name);
  if (raw.hierarchy.raw.empty() && raw.shapes.empty()) return number;
  const std::string_view hierarchy = unescape(raw.hierarchy);
  const ScopedNameKey key{.name = number,
                          .hierarchy_size = static_cast<std::uint32_t>(hierarchy.size()),
                          .shapes_size = static_cast<std::uint32_t>(raw.shapes.size())};
  key_.assign(reinterpret_cast<const char*>(&key), sizeof key);
  key_.append(hierarchy).append(raw.shapes).append(raw.types);
  return scoped_names.intern(key_) | kScopedNameFlag;
}

std::string_view EventTables::unescape(const formats::JsonText& text) {
  if (!text.escaped) return text.raw;
  unescaped_.clear();
  formats::unescape_json(text.raw, unescaped_);
  return unescaped_;
}

}  // namespace joulemap::ingest::kineto
