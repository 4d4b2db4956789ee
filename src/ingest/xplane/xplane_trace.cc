// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "ingest/kernel_details.h"
#include "ingest/trace_builder.h"
#include "ingest/xplane/graph_launches.h"
#include "ingest/xplane/xplane_operations.h"
#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {
namespace {

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
// Times below are since the beginning of the profile: the year 2001 of Unix time.
constexpr std::int64_t kEarliestUnix_ns = 1'000'000'000 * std::int64_t{1'000'000'000};
constexpr std::string_view kEnvironment = "Task Environment";
constexpr std::string_view kGpuPlane = "/device:GPU:", kTpuPlane = "/device:TPU:";
constexpr std::string_view kTpuOperations = "XLA Ops";
// What runtimes say of themselves, with values that need not be read.
constexpr std::array<std::string_view, 4> kNoise = {"ThreadpoolListener::", "MemoryAllocation", "MemoryDeallocation",
                                                    "ExecutorState::"};
constexpr std::string_view kStepName = "ProfilerStep#";  // how every reader spells a step
constexpr std::array<std::string_view, 8> kFacts = {"jax_version",         "jaxlib_version", "gpu_version",
                                                    "gpu_device_name",     "cuda_version",   "cuda_runtime_version",
                                                    "cuda_driver_version", "tpu_version"};

std::int64_t duration_ns(const XEvent& event) { return event.duration_ps / kPicosecondsPerNanosecond; }

class Reading : public XPlaneVisitor {
 public:
  void on_program(std::string_view name, std::string_view hlo_proto) override {
    operations_.add_program(name, hlo_proto);
  }

  bool on_plane(const XPlane& plane) override {
    if (plane.name.starts_with('/') || plane.name == kEnvironment) ++planes_;
    plane_ = plane;
    plane_.stats = {};
    by_name_.clear();
    note_facts(plane);
    if (plane.kind == XPlaneKind::device) {
      is_tpu_ = plane.name.starts_with(kTpuPlane);
      const std::string_view prefix = is_tpu_ ? kTpuPlane : kGpuPlane;
      if (!plane.name.starts_with(prefix)) return false;
      ordinal_ = number_at(plane.name.substr(prefix.size()));
    }
    return plane.kind != XPlaneKind::metadata;
  }

  bool on_line(const XLine& line) override {
    line_ = line;
    if (plane_.kind == XPlaneKind::host) {
      track_ = builder_.thread(process_.value_or(0), line.id);
      builder_.trace().threads[track_].name = to_valid_utf8(line.name);
      feeds_ = XPlaneOperations::feeds(line.name);
      return true;
    }
    queues_.clear();
    if (is_tpu_) return line.name == kTpuOperations;
    if (line.derived) return false;
    if (line.name.empty() || line.name.find("tream") != std::string_view::npos) return true;
    builder_.note(
        "line_left_out",
        fmt::format("xplane: a line {} of a GPU is neither a stream nor known to be made of streams: left out",
                    quoted(line.name)));
    return false;
  }

  bool on_name(std::string_view name) override {
    return std::none_of(kNoise.begin(), kNoise.end(),
                        [name](std::string_view noise) { return name.starts_with(noise); });
  }
  void on_unwanted() override { builder_.skip(); }
  void on_damaged() override { builder_.drop("that are damaged, or whose names are missing"); }

  void on_event(const XEvent& event) override {
    if (plane_.kind == XPlaneKind::device) return add_on_gpu(event);
    if (event.known_stats == 0) return add_by_name(event);
    if (event.name.starts_with("end: ")) return end_operation(event);
    add_on_thread(event);
  }

  Trace finish(const Diagnostics& damage) && {
    continue_operations();
    add_graphs();
    Trace& trace = builder_.trace();
    if (start_ns_ && are_times_relative()) {
      builder_.shift_times(*start_ns_);
    } else if (are_times_relative()) {
      trace.clock = TraceClock::since_start;
    }
    trace.process = process_;
    trace.gpu_names_ops = true;
    trace.diagnostics.add_all(damage);
    return std::move(builder_).finish();
  }

  std::size_t planes() const { return planes_; }
  std::uint64_t events_lost() const { return builder_.trace().events_dropped; }

 private:
  struct Pending {
    std::int64_t end_ns = 0;
    std::uint32_t name = 0;
  };
  struct Meaning {
    bool is_told = false;  // else it is nothing of the program
    EventKind kind = EventKind::op;
    std::uint32_t name = 0;
  };
  struct End {
    std::int64_t id = 0;
    std::int64_t end_ns = 0;
    std::uint32_t track = 0;
  };

  void note_facts(const XPlane& plane) {
    if (plane.name == kEnvironment) start_ns_ = integer_of(plane.stats, "profile_start_time");
    if (const auto process = integer_of(plane.stats, "process_id"); process && !process_) process_ = process;
    for (const std::string_view name : kFacts) {
      const std::string_view value = text_of(plane.stats, name);
      if (!value.empty()) builder_.trace().facts.push_back({std::string(name), to_valid_utf8(value)});
    }
  }

  bool are_times_relative() const {
    const std::vector<std::vector<TraceEvent>>& blocks = builder_.trace().blocks;
    return !blocks.empty() && blocks.front().front().start_ns < kEarliestUnix_ns;
  }

  std::uint32_t name_of(std::uint32_t operation) {
    while (names_.size() < operations_.size()) {
      const XOperation& next = operations_[static_cast<std::uint32_t>(names_.size())];
      names_.push_back(builder_.name(next.name, next.place));
    }
    return names_[operation];
  }

  // Names repeat much more often than they are new; their bytes lie in the file, each once a plane.
  std::uint32_t name_of(std::string_view text) {
    const auto [slot, is_new] = texts_.try_emplace(text, 0);
    if (is_new) slot->second = builder_.name(text);
    return slot->second;
  }

  // What an event is that tells nothing but its name is the same each time.
  void add_by_name(const XEvent& event) {
    const std::size_t index = 2 * std::size_t{event.name_number} + (feeds_ ? 1 : 0);
    if (index >= by_name_.size()) by_name_.resize(index + 1);
    std::optional<Meaning>& known = by_name_[index];
    if (!known) known = meaning_of(event);
    if (!known->is_told) return builder_.skip();
    builder_.add({.start_ns = event.begin_ns,
                  .duration_ns = duration_ns(event),
                  .name = known->name,
                  .track = track_,
                  .kind = known->kind});
  }

  void add_on_thread(const XEvent& event) {
    const Meaning meaning = meaning_of(event);
    if (!meaning.is_told) return builder_.skip();
    TraceEvent made{.start_ns = event.begin_ns, .duration_ns = duration_ns(event), .track = track_};
    made.kind = meaning.kind;
    made.name = meaning.name;
    if (made.kind == EventKind::api) {
      made.correlation = static_cast<std::uint32_t>(event.integer(XStatName::correlation_id).value_or(0));
    }
    const auto producer = event.integer(XStatName::producer);
    if (producer && made.kind == EventKind::op) pending_.insert_or_assign(*producer, Pending{end_of(event), made.name});
    builder_.add(made);
  }

  Meaning meaning_of(const XEvent& event) {
    if (event.has(XStatName::correlation_id)) return {true, EventKind::api, name_of(event.name)};
    if (const auto operation = operations_.of_host_event(event, feeds_))
      return {true, EventKind::op, name_of(*operation)};
    if (const auto step = event.integer(XStatName::step_num)) {
      return {true, EventKind::annotation, builder_.name(fmt::format("{}{}", kStepName, *step))};
    }
    if (event.name.starts_with('$')) return {true, EventKind::function, name_of(event.name.substr(1))};
    return {};
  }

  void end_operation(const XEvent& event) {
    builder_.skip();
    if (const auto id = event.integer(XStatName::consumer)) ends_.push_back({*id, end_of(event), track_});
  }

  static std::int64_t end_of(const XEvent& event) {
    std::int64_t end_ns = 0;
    return __builtin_add_overflow(event.begin_ns, duration_ns(event), &end_ns) ? event.begin_ns : end_ns;
  }

  void continue_operations() {
    for (const End& end : ends_) {
      const auto begun = pending_.find(end.id);
      if (begun == pending_.end() || begun->second.end_ns >= end.end_ns) continue;
      builder_.add({.start_ns = begun->second.end_ns,
                    .duration_ns = end.end_ns - begun->second.end_ns,
                    .name = begun->second.name,
                    .track = end.track});
    }
  }

  void add_on_gpu(const XEvent& event) {
    TraceEvent made{.start_ns = event.begin_ns, .duration_ns = duration_ns(event), .kind = EventKind::kernel};
    made.correlation = static_cast<std::uint32_t>(event.integer(XStatName::correlation_id).value_or(0));
    made.track = queue_of(event);
    const std::string_view copy = event.text(XStatName::memcpy_details);
    const std::string_view fill = event.text(XStatName::memset_details);
    if (!copy.empty() || event.name.starts_with("Memcpy")) {
      made.kind = EventKind::copy;
      made.name = builder_.kernel_class(KernelKind::copy, copy_direction_in(event.name));
      made.detail = builder_.bytes(bytes_in(copy));
    } else if (!fill.empty() || event.name.starts_with("Memset")) {
      made.kind = EventKind::fill;
      made.name = builder_.kernel_class(KernelKind::fill, kFillName);
      made.detail = builder_.bytes(bytes_in(fill));
    } else {
      made.name = class_of(event.name, event.text(XStatName::kernel_details));
    }
    const std::optional<std::uint32_t> operation = operations_.of_kernel(event);
    if (operation) made.external = name_of(*operation) + 1;
    if (const auto graph = XPlaneOperations::graph_of(event)) {
      in_graphs_.push_back({*graph, event.integer(XStatName::graph_node_id).value_or(0), event.name, made, {}});
    } else {
      builder_.add(made);
    }
  }

  void add_graphs() {
    const std::uint64_t unknown = find_operations_of_graphs(in_graphs_, operations_);
    for (GraphKernel& kernel : in_graphs_) {
      if (kernel.operation) kernel.event.external = name_of(*kernel.operation) + 1;
      builder_.add(kernel.event);
    }
    if (unknown == 0) return;
    builder_.trace().diagnostics.add({"graph_kernels_by_name", unknown,
                                      "xplane: kernels of CUDA graphs that do not fit their program are told by their "
                                      "names alone: layers that share a "
                                      "kernel cannot be told apart",
                                      "profile with XLA_FLAGS=--xla_gpu_enable_command_buffer= (no graphs)"});
  }

  std::uint32_t class_of(std::string_view name, std::string_view details) {
    const auto [slot, is_new] = classes_.try_emplace({name, details}, 0);
    if (is_new) {
      slot->second =
          builder_.kernel_class(KernelKind::kernel, name, size_in(details, "grid"), size_in(details, "block"));
    }
    return slot->second;
  }

  // A context is a number, or a text with one at its end: "$$1".
  std::uint32_t queue_of(const XEvent& event) {
    const std::string_view text = event.text(XStatName::context_id);
    const std::size_t digits = text.find_first_of("0123456789");
    const std::uint32_t context = text.empty()
                                      ? static_cast<std::uint32_t>(event.integer(XStatName::context_id).value_or(0))
                                  : digits == std::string_view::npos ? 0
                                                                     : number_at(text.substr(digits));
    for (const auto& [known, queue] : queues_) {
      if (known == context) return queue;
    }
    const std::uint32_t queue =
        builder_.queue({.ordinal = ordinal_, .context = context, .stream = static_cast<std::uint32_t>(line_.id)});
    queues_.emplace_back(context, queue);
    return queue;
  }

  struct ClassHash {
    std::size_t operator()(const std::pair<std::string_view, std::string_view>& key) const {
      return std::hash<std::string_view>()(key.first) * 31 + std::hash<std::string_view>()(key.second);
    }
  };

  TraceBuilder builder_{"xplane"};
  XPlaneOperations operations_{{}};
  std::size_t planes_ = 0;
  XPlane plane_;
  XLine line_;
  std::uint32_t ordinal_ = 0;
  std::uint32_t track_ = 0;
  bool feeds_ = false;
  bool is_tpu_ = false;
  std::optional<std::int64_t> process_;
  std::optional<std::int64_t> start_ns_;
  std::vector<std::uint32_t> names_;                             // of operations_
  std::vector<std::pair<std::uint32_t, std::uint32_t>> queues_;  // of the present line, by context
  std::unordered_map<std::string_view, std::uint32_t> texts_;
  std::vector<std::optional<Meaning>> by_name_;  // of the present plane
  std::unordered_map<std::pair<std::string_view, std::string_view>, std::uint32_t, ClassHash> classes_;
  std::unordered_map<std::int64_t, Pending> pending_;  // begun, by what ties them to their end
  std::vector<End> ends_;
  std::vector<GraphKernel> in_graphs_;
};

}  // namespace

Result<Trace> read_xplane_trace_bytes(std::string_view bytes) {
  Reading reading;
  const Diagnostics damage = read_xplane(bytes, reading);
  if (reading.planes() == 0 && reading.events_lost() > 0) {
    return Error{ErrorCode::malformed, "the profile is cut off before the names of its events",
                 "profile again, and let the program stop the profiler before it ends"};
  }
  if (reading.planes() == 0) {
    return Error{ErrorCode::malformed, "no profile of TensorFlow or JAX",
                 "give the file *.xplane.pb, or the folder that the profiler was given"};
  }
  return std::move(reading).finish(damage);
}

}  // namespace joulemap::ingest
