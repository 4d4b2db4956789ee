// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_event_converter.h"

#include "base/text.h"
#include "ingest/kernel_details.h"

namespace joulemap::ingest {
namespace {

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
constexpr std::string_view kTracingCallKind = "traced";  // of a call of a tf.function that also traced it

std::int64_t duration_ns(const XEvent& event) { return event.duration_ps / kPicosecondsPerNanosecond; }

// The number at the end of "step 12" or "12".
std::optional<std::uint64_t> parse_trailing_number(std::string_view text) {
  const std::size_t last_nondigit = text.find_last_not_of("0123456789");
  return parse_u64(text.substr(last_nondigit == std::string_view::npos ? 0 : last_nondigit + 1));
}

std::optional<std::uint64_t> to_optional_uint64(std::optional<std::int64_t> value) {
  return value && *value >= 0 ? std::optional<std::uint64_t>(*value) : std::nullopt;
}

std::int64_t end_ns_of(const XEvent& event) {
  std::int64_t end_ns = 0;
  return __builtin_add_overflow(event.begin_ns, duration_ns(event), &end_ns) ? event.begin_ns : end_ns;
}

}  // namespace

void XPlaneEventConverter::begin_segment(const XLineContext& line, std::size_t expected_event_count) {
  if (line.plane != line_context_.plane) meaning_by_name_.clear();
  line_context_ = line;
  queues_.clear();
  last_cuda_context_ = {};
  builder_.begin_block(expected_event_count);
}

XSegmentEvents XPlaneEventConverter::take_segment() {
  segment_.blocks = std::exchange(builder_.trace().event_blocks, {});
  return std::exchange(segment_, {});
}

void XPlaneEventConverter::on_event(const XEvent& event) {
  if (line_context_.is_steps_line) {
    add_step(event);
    return builder_.add_skipped_events();
  }
  if (line_context_.is_device_plane) return add_gpu_event(event);
  if (event.known_stat_bits == 0) return add_event_without_stats(event);
  if (!event.name.starts_with("end: ")) return add_thread_event(event);
  builder_.add_skipped_events();
  if (const auto id = event.find_integer(XStatName::consumer))
    segment_.operation_ends.push_back({*id, end_ns_of(event), line_context_.track});
}

std::uint32_t XPlaneEventConverter::intern_operation_name(std::uint32_t operation) {
  while (name_by_operation_.size() < operations_.size()) {
    const XOperation& new_operation = operations_[static_cast<std::uint32_t>(name_by_operation_.size())];
    name_by_operation_.push_back(builder_.intern_name(new_operation.name, new_operation.scope));
  }
  return name_by_operation_[operation];
}

// Caches the index of a text without copying it, because names repeat.
std::uint32_t XPlaneEventConverter::intern_operation_name(std::string_view text) {
  const auto [slot, is_new] = texts_.try_emplace(text, 0);
  if (is_new) slot->second = builder_.intern_name(text);
  return slot->second;
}

// Adds an event that has no stats: its name alone gives its meaning, which is cached.
void XPlaneEventConverter::add_event_without_stats(const XEvent& event) {
  const std::size_t index = 2 * std::size_t{event.name_number} + (line_context_.is_input_pipeline ? 1 : 0);
  if (index >= meaning_by_name_.size()) meaning_by_name_.resize(index + 1);
  std::optional<EventMeaning>& event_meaning = meaning_by_name_[index];
  if (!event_meaning) event_meaning = find_event_meaning(event);
  if (!event_meaning->is_included) return builder_.add_skipped_events();
  builder_.add_event({.start_ns = event.begin_ns,
                      .duration_ns = duration_ns(event),
                      .name_index = event_meaning->name,
                      .track_index = line_context_.track,
                      .kind = event_meaning->kind});
}

// Collects the event if it may be a step. Returns false if it is none.
bool XPlaneEventConverter::add_step(const XEvent& event) {
  XStep step{.start_ns = event.begin_ns, .end_ns = end_ns_of(event), .track = line_context_.track, .name = event.name};
  const std::string_view call = event.find_text(XStatName::tf_function_call);
  if (line_context_.is_steps_line) {
    step.source = XStepSource::device_line;
    step.number = to_optional_uint64(event.find_integer(XStatName::step_num));
    if (!step.number) step.number = parse_trailing_number(event.name);
  } else if (event.has_stat(XStatName::step_num)) {
    step.number = to_optional_uint64(event.find_integer(XStatName::step_num));
  } else if (!call.empty() && !call.starts_with(kTracingCallKind)) {
    step.source = XStepSource::function_call;
  } else if (call.empty() && event.find_integer(XStatName::is_root).value_or(0) == 1) {
    step.source = XStepSource::root_event;
  } else {
    return false;
  }
  segment_.steps.push_back(step);
  return true;
}

void XPlaneEventConverter::add_thread_event(const XEvent& event) {
  if (add_step(event)) return builder_.add_skipped_events();
  const EventMeaning meaning = find_event_meaning(event);
  if (!meaning.is_included) return builder_.add_skipped_events();
  TraceEvent trace_event{
      .start_ns = event.begin_ns, .duration_ns = duration_ns(event), .track_index = line_context_.track};
  trace_event.kind = meaning.kind;
  trace_event.name_index = meaning.name;
  if (trace_event.kind == EventKind::api) {
    trace_event.correlation = static_cast<std::uint32_t>(event.find_integer(XStatName::correlation_id).value_or(0));
  }
  const auto producer = event.find_integer(XStatName::producer);
  if (producer && trace_event.kind == EventKind::op)
    segment_.open_operations.push_back({*producer, end_ns_of(event), trace_event.name_index});
  builder_.add_event(trace_event);
}

XPlaneEventConverter::EventMeaning XPlaneEventConverter::find_event_meaning(const XEvent& event) {
  if (event.has_stat(XStatName::correlation_id)) return {true, EventKind::api, intern_operation_name(event.name)};
  if (const auto operation = operations_.find_or_add_host_operation(event, line_context_.is_input_pipeline)) {
    return {true, EventKind::op, intern_operation_name(*operation)};
  }
  if (event.name.starts_with('$')) return {true, EventKind::function, intern_operation_name(event.name.substr(1))};
  return {};
}

void XPlaneEventConverter::add_gpu_event(const XEvent& event) {
  if (event.has_stat(XStatName::memory_details)) return builder_.add_skipped_events();
  TraceEvent trace_event{.start_ns = event.begin_ns, .duration_ns = duration_ns(event), .kind = EventKind::kernel};
  trace_event.correlation = static_cast<std::uint32_t>(event.find_integer(XStatName::correlation_id).value_or(0));
  trace_event.track_index = intern_event_queue(event);
  const std::string_view copy = event.find_text(XStatName::memcpy_details);
  const std::string_view fill_details = event.find_text(XStatName::memset_details);
  if (!copy.empty() || event.name.starts_with("Memcpy")) {
    trace_event.kind = EventKind::copy;
    trace_event.name_index = builder_.intern_kernel_class(KernelKind::copy, parse_copy_direction(event.name));
    trace_event.detail_index = builder_.intern_byte_count(parse_byte_count(copy));
  } else if (!fill_details.empty() || event.name.starts_with("Memset")) {
    trace_event.kind = EventKind::fill;
    trace_event.name_index = builder_.intern_kernel_class(KernelKind::fill, kFillClassName);
    trace_event.detail_index = builder_.intern_byte_count(parse_byte_count(fill_details));
  } else {
    trace_event.name_index = intern_kernel_class(event.name, event.find_text(XStatName::kernel_details));
  }
  const std::optional<std::uint32_t> operation = operations_.find_or_add_kernel_operation(event);
  if (operation) trace_event.external_id = intern_operation_name(*operation) + 1;
  if (const auto graph = XPlaneOperations::find_graph_of_kernel(event)) {
    const std::int64_t node = event.find_integer(XStatName::graph_node_id).value_or(0);
    segment_.graph_kernels.push_back({*graph, node, event.name, trace_event, {}});
  } else {
    builder_.add_event(trace_event);
  }
}

std::uint32_t XPlaneEventConverter::intern_kernel_class(std::string_view name, std::string_view kernel_details) {
  return recent_kernel_classes_.find_or_compute({{name, kernel_details}}, [&] {
    const auto [slot, is_new] = kernel_class_indices_.try_emplace({name, kernel_details}, 0);
    if (is_new) {
      slot->second =
          builder_.intern_kernel_class(KernelKind::kernel, name, parse_launch_dimensions(kernel_details, "grid"),
                                       parse_launch_dimensions(kernel_details, "block"));
    }
    return slot->second;
  });
}

// The queue of a GPU event in the current line. Its context is a number, or a text that ends with one: "$$1".
std::uint32_t XPlaneEventConverter::intern_event_queue(const XEvent& event) {
  const std::string_view text = event.find_text(XStatName::context_id);
  if (text.empty()) {
    return queue_of_context(static_cast<std::uint32_t>(event.find_integer(XStatName::context_id).value_or(0)));
  }
  if (text.data() == last_cuda_context_.data() && text.size() == last_cuda_context_.size()) return last_queue_;
  const std::size_t digits = text.find_first_of("0123456789");
  last_cuda_context_ = text;
  return last_queue_ =
             queue_of_context(digits == std::string_view::npos ? 0 : parse_leading_number(text.substr(digits)));
}

std::uint32_t XPlaneEventConverter::queue_of_context(std::uint32_t context) {
  for (const auto& [queue_context, queue] : queues_) {
    if (queue_context == context) return queue;
  }
  const std::uint32_t queue = builder_.intern_queue(
      {.ordinal = line_context_.device_ordinal, .context = context, .stream = line_context_.stream_id});
  queues_.emplace_back(context, queue);
  return queue;
}

}  // namespace joulemap::ingest
