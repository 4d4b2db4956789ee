// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_trace.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/small_file.h"
#include "base/text.h"
#include "ingest/trace_builder.h"
#include "ingest/trace_file.h"
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
constexpr std::string_view kStepName = "ProfilerStep#";  // how every reader spells a step
constexpr std::array<std::string_view, 8> kFacts = {"jax_version",         "jaxlib_version", "gpu_version",
                                                    "gpu_device_name",     "cuda_version",   "cuda_runtime_version",
                                                    "cuda_driver_version", "tpu_version"};

std::int64_t duration_ns(const XEvent& event) { return event.duration_ps / kPicosecondsPerNanosecond; }

// The numbers at the end of "$$1", at the beginning of "1,2,3".
std::uint32_t number_at(std::string_view text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "... grid:8,1,1 block:128,1,1 ..." and, from older versions, "... grid_x:8 grid_y:1 ...".
std::array<std::uint32_t, 3> size_in(std::string_view details, std::string_view what) {
  std::array<std::uint32_t, 3> size{};
  const std::size_t at = details.find(what);
  if (at == std::string_view::npos) return size;
  std::string_view rest = details.substr(at + what.size());
  if (rest.starts_with(':')) {
    const std::vector<std::string_view> parts = split(rest.substr(1, rest.find(' ') - 1), ',');
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i) size[i] = number_at(parts[i]);
    return size;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string key = fmt::format("{}_{:c}:", what, "xyz"[i]);
    if (const std::size_t axis = details.find(key); axis != std::string_view::npos) {
      size[i] = number_at(details.substr(axis + key.size()));
    }
  }
  return size;
}

std::uint64_t bytes_in(std::string_view details) {
  for (const std::string_view key : {"num_bytes:", "size:"}) {
    const std::size_t at = details.find(key);
    if (at == std::string_view::npos) continue;
    std::uint64_t bytes = 0;
    const std::string_view rest = details.substr(at + key.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
    return bytes;
  }
  return 0;
}

class Reading : public XPlaneVisitor {
 public:
  void on_program(std::string_view name, std::string_view hlo_proto) override {
    operations_.add_program(name, hlo_proto);
  }

  bool on_plane(const XPlane& plane) override {
    if (plane.name.starts_with('/') || plane.name == kEnvironment) ++planes_;
    plane_ = plane;
    plane_.stats = {};
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

  void on_event(const XEvent& event) override {
    if (plane_.kind == XPlaneKind::device) return add_on_gpu(event);
    if (event.name.starts_with("end: ")) return end_operation(event);
    add_on_thread(event);
  }

  Trace finish(Diagnostics damage) && {
    continue_operations();
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

 private:
  struct Pending {
    std::int64_t end_ns = 0;
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

  void add_on_thread(const XEvent& event) {
    TraceEvent made{.start_ns = event.begin_ns, .duration_ns = duration_ns(event), .track = track_};
    if (const auto correlation = event.integer("correlation_id")) {
      made.kind = EventKind::api;
      made.correlation = static_cast<std::uint32_t>(*correlation);
      made.name = name_of(event.name);
    } else if (const auto operation = operations_.of_host_event(event, feeds_)) {
      made.name = name_of(*operation);
      if (const auto id = event.integer("_p")) pending_.insert_or_assign(*id, Pending{end_of(event), made.name});
    } else if (const auto step = event.integer("step_num")) {
      made.kind = EventKind::annotation;
      made.name = builder_.name(fmt::format("{}{}", kStepName, *step));
    } else if (event.name.starts_with('$')) {
      made.kind = EventKind::function;
      made.name = name_of(event.name.substr(1));
    } else {
      return builder_.skip();
    }
    builder_.add(made);
  }

  void end_operation(const XEvent& event) {
    builder_.skip();
    if (const auto id = event.integer("_c")) ends_.push_back({*id, end_of(event), track_});
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
    made.correlation = static_cast<std::uint32_t>(event.integer("correlation_id").value_or(0));
    made.track = queue_of(event);
    if (const auto operation = operations_.of_kernel(event)) made.external = name_of(*operation) + 1;
    const std::string_view copy = event.text("memcpy_details");
    const std::string_view fill =
        event.text(event.text("memset_details").empty() ? "Memset_details" : "memset_details");
    if (!copy.empty() || event.name.starts_with("Memcpy")) {
      made.kind = EventKind::copy;
      made.name = builder_.kernel_class(KernelKind::copy, event.name);
      made.detail = builder_.bytes(bytes_in(copy));
    } else if (!fill.empty() || event.name.starts_with("Memset")) {
      made.kind = EventKind::fill;
      made.name = builder_.kernel_class(KernelKind::fill, "Memset");
      made.detail = builder_.bytes(bytes_in(fill));
    } else {
      made.name = class_of(event.name, event.text("kernel_details"));
    }
    builder_.add(made);
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
    const std::string_view text = event.text("context_id");
    const std::size_t digits = text.find_first_of("0123456789");
    const std::uint32_t context = text.empty() ? static_cast<std::uint32_t>(event.integer("context_id").value_or(0))
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
  std::unordered_map<std::pair<std::string_view, std::string_view>, std::uint32_t, ClassHash> classes_;
  std::unordered_map<std::int64_t, Pending> pending_;  // begun, by what ties them to their end
  std::vector<End> ends_;
};

std::vector<std::string> profiles_in(const std::string& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  std::vector<std::string> profiles;
  if (!names) return profiles;
  for (const std::string& name : *names) {
    if (name.ends_with(".xplane.pb")) profiles.push_back(folder + "/" + name);
  }
  return profiles;
}

// A run's folder is called after the time at which it was made, so the last is the newest.
std::vector<std::string> newest_profiles(const std::string& folder) {
  std::vector<std::string> own = profiles_in(folder);
  if (!own.empty()) return own;
  const std::string runs = folder + "/plugins/profile";
  const Result<std::vector<std::string>> names = list_directory(runs);
  if (!names) return {};
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    if (std::vector<std::string> profiles = profiles_in(runs + "/" + *name); !profiles.empty()) return profiles;
  }
  return {};
}

}  // namespace

Result<Trace> read_xplane_trace(const std::string& path) {
  std::string file = path;
  std::vector<std::string> profiles;
  if (std::error_code unknown; std::filesystem::is_directory(path, unknown)) {
    profiles = newest_profiles(path);
    if (profiles.empty()) {
      return Error{ErrorCode::not_found, fmt::format("{}: no plugins/profile/<run>/*.xplane.pb in it", path),
                   "give the folder that the profiler was given"};
    }
    file = profiles.front();
  }
  Result<std::string> bytes = read_trace_file(file);
  if (!bytes) return std::move(bytes).error();
  Result<Trace> trace = read_xplane_trace_bytes(*bytes);
  if (!trace) return std::move(trace).error().with_context(file);
  if (profiles.size() > 1) {
    trace->diagnostics.add({"profiles_left_out", profiles.size() - 1,
                            fmt::format("xplane: the run has profiles of {} hosts; read was {}", profiles.size(), file),
                            "name the files to import them all"});
  }
  return trace;
}

Result<Trace> read_xplane_trace_bytes(std::string_view bytes) {
  Reading reading;
  Diagnostics damage = read_xplane(bytes, reading);
  if (reading.planes() == 0) {
    return Error{ErrorCode::malformed, "no profile of TensorFlow or JAX",
                 "give the file *.xplane.pb, or the folder that the profiler was given"};
  }
  return std::move(reading).finish(std::move(damage));
}

}  // namespace joulemap::ingest
