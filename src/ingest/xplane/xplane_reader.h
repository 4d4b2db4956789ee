// SPDX-License-Identifier: Apache-2.0
//
// Reads an XSpace (*.xplane.pb), the trace of TensorFlow's and JAX's profiler: planes (the host, each device) of lines
// (threads, streams) of events with named values. Events stream through with resolved names; only a plane's tables of
// names are kept. Views point into the bytes given. Field numbers: tsl/profiler/protobuf/xplane.proto.
//
//   class Mine : public XPlaneVisitor { ... };
//   Mine mine;
//   Diagnostics damage = read_xplane(bytes, mine);
//
// Times are nanoseconds and durations picoseconds, as in the file: Unix times or, in newer files, relative to
// profile_start_time of the plane "Task Environment". Pure; damaged bytes end the reading of the message that contains
// them and add a diagnostic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "model/diagnostics.h"

namespace joulemap::ingest {

enum class XPlaneKind : std::uint8_t {
  host,      // "/host:CPU": one line per thread
  device,    // "/device:GPU:0", "/device:TPU:0": one line per stream
  metadata,  // programs, tasks, tables: no execution time
};

struct XLine {
  std::int64_t id = 0;
  std::string_view name;
  std::int64_t begin_ns = 0;
  // Computed from other lines of the device ("Steps", "XLA Modules"): exclude it from sums of time.
  bool is_derived = false;
};

// Stats (named values of events) that are looked up in every event, and `other` for all others.
enum class XStatName : std::uint8_t {
  other,
  hlo_op,
  hlo_module,
  program_id,
  tf_op,
  producer,  // "_p": connects an event to one on another thread
  consumer,  // "_c": the same id, in the event on the other thread
  step_num,
  correlation_id,
  context_id,
  kernel_details,
  memcpy_details,
  memset_details,
  graph_node_id,     // "cuda_graph_node_id"
  shape,             // input tensors of a TensorFlow node
  tf_function_call,  // of a call of a tf.function: "notTraced-nonXla"
  is_root,           // "_r": the event is the root of a step
  memory_details,    // of an allocation, which no kernel does
};
inline constexpr std::size_t kXStatNameCount = static_cast<std::size_t>(XStatName::memory_details) + 1;

XStatName parse_xstat_name(std::string_view name);

struct XStat {
  std::string_view name;
  XStatName stat_name = XStatName::other;
  std::variant<std::int64_t, std::uint64_t, double, std::string_view> value;

  // Empty if it is a number.
  std::string_view text() const {
    const auto* const text_value = std::get_if<std::string_view>(&value);
    return text_value == nullptr ? std::string_view() : *text_value;
  }
  std::optional<std::int64_t> integer() const;  // nullopt if it is not an integer or does not fit
};

// The value of that name; empty or nullopt if it is missing or of another type.
std::string_view find_text_stat(std::span<const XStat> stats, std::string_view name);
std::optional<std::int64_t> find_integer_stat(std::span<const XStat> stats, std::string_view name);

struct XPlane {
  std::int64_t id = 0;
  std::string_view name;
  XPlaneKind kind = XPlaneKind::metadata;
  std::span<const XStat> stats;  // such as "process_id", "gpu_device_name"; valid during on_plane()
};

struct XEvent {
  std::string_view name;
  std::string_view display_name;
  std::uint32_t name_number = 0;      // equal for events of the same name in a plane, counted from 1; 0: no name
  std::uint32_t known_stat_bits = 0;  // bit set of 1 << XStatName that the event has
  std::array<std::uint32_t, kXStatNameCount> stat_index{};  // index in `stats` of the first value of each XStatName
  std::int64_t begin_ns = 0;
  std::int64_t duration_ps = 0;
  std::span<const XStat> stats;  // with a known name: those of the event, then those shared by all events of its name

  // Empty or nullopt if the stat is missing or of another type.
  std::string_view find_text(XStatName stat) const {
    return has_stat(stat) ? find_value(stat).text() : std::string_view();
  }
  std::optional<std::int64_t> find_integer(XStatName stat) const {
    return has_stat(stat) ? find_value(stat).integer() : std::nullopt;
  }
  const XStat& find_value(XStatName stat) const { return stats[stat_index[static_cast<std::size_t>(stat)]]; }
  bool has_stat(XStatName stat) const { return (known_stat_bits >> static_cast<unsigned>(stat) & 1U) != 0; }
};

// Callbacks for planes and lines.
class XLineVisitor {
 public:
  virtual ~XLineVisitor() = default;
  // A program that XLA compiled, before all planes: name "jit_step(182)" and its HloProto.
  virtual void on_program(std::string_view /*name*/, std::string_view /*hlo_proto*/) {}
  // Return whether to read the lines of the plane, and the events of the line.
  virtual bool on_plane(const XPlane& plane) = 0;
  virtual bool on_line(const XLine& line) = 0;
  // Called once for each event name in the plane's table. Returns whether to read events of that name; other events are
  // only counted.
  virtual bool on_event_name(std::string_view /*name*/) { return true; }
  // Called instead of on_event for each event of a plane that is truncated before its table of names.
  virtual void on_event_without_names() {}
};

class XEventVisitor {
 public:
  virtual ~XEventVisitor() = default;
  virtual void on_event(const XEvent& event) = 0;
  virtual void on_skipped_event() {}
  // Called for an invalid event, which also adds a diagnostic.
  virtual void on_damaged_event() {}
};

class XPlaneVisitor : public XLineVisitor, public XEventVisitor {
 public:
  void on_event_without_names() override { on_damaged_event(); }
};

// Returns diagnostics of damage. Single-threaded; see xplane_segments.h for several threads.
Diagnostics read_xplane(std::string_view bytes, XPlaneVisitor& visitor);

}  // namespace joulemap::ingest
