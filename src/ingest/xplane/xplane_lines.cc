// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "ingest/kernel_details.h"
#include "ingest/xplane/xplane_operations.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kEnvironment = "Task Environment";
constexpr std::string_view kGpuPlane = "/device:GPU:", kTpuPlane = "/device:TPU:";
constexpr std::string_view kTpuOperations = "XLA Ops";
constexpr std::string_view kSteps = "Steps";
// Internal events of the runtimes, whose values need not be read.
constexpr std::array<std::string_view, 4> kIgnoredNames = {"ThreadpoolListener::", "MemoryAllocation",
                                                           "MemoryDeallocation", "ExecutorState::"};
constexpr std::array<std::string_view, 8> kEnvironmentStats = {
    "jax_version",  "jaxlib_version",       "gpu_version",         "gpu_device_name",
    "cuda_version", "cuda_runtime_version", "cuda_driver_version", "tpu_version"};

}  // namespace

bool XPlaneLines::on_plane(const XPlane& plane) {
  if (plane.name.starts_with('/') || plane.name == kEnvironment) ++recognized_planes_;
  line_ = {.plane = line_.plane + 1, .is_device = plane.kind == XPlaneKind::device};
  add_environment(plane);
  if (line_.is_device) {
    is_tpu_ = plane.name.starts_with(kTpuPlane);
    const std::string_view prefix = is_tpu_ ? kTpuPlane : kGpuPlane;
    if (!plane.name.starts_with(prefix)) return false;
    line_.ordinal = parse_leading_number(plane.name.substr(prefix.size()));
  }
  return plane.kind != XPlaneKind::metadata;
}

void XPlaneLines::add_environment(const XPlane& plane) {
  if (plane.name == kEnvironment) start_ns_ = integer_of(plane.stats, "profile_start_time");
  if (const auto process = integer_of(plane.stats, "process_id"); process && !process_) process_ = process;
  for (const std::string_view name : kEnvironmentStats) {
    const std::string_view value = text_of(plane.stats, name);
    if (!value.empty()) builder_.trace().environment.push_back({std::string(name), to_valid_utf8(value)});
  }
}

bool XPlaneLines::on_line(const XLine& line) {
  if (!line_.is_device) {
    line_.track = builder_.thread(process_.value_or(0), line.id);
    builder_.trace().threads[line_.track].name = to_valid_utf8(line.name);
    line_.is_input_pipeline = XPlaneOperations::is_input_pipeline(line.name);
    return true;
  }
  line_.stream = static_cast<std::uint32_t>(line.id);
  // Each device has such a line; the first one counts.
  line_.is_steps = line.name == kSteps && !std::exchange(has_steps_, has_steps_ || line.name == kSteps);
  if (line_.is_steps) {
    line_.track = builder_.thread(process_.value_or(0), line.id);
    builder_.trace().threads[line_.track].name = kSteps;
    return true;
  }
  if (is_tpu_) return line.name == kTpuOperations;
  if (line.is_derived) return false;
  if (line.name.empty() || line.name.find("tream") != std::string_view::npos) return true;
  builder_.add_diagnostic(
      "line_left_out",
      fmt::format("xplane: a line {} of a GPU is neither a stream nor derived from streams and was skipped",
                  quoted(line.name)));
  return false;
}

bool XPlaneLines::on_event_name(std::string_view name) {
  return std::none_of(kIgnoredNames.begin(), kIgnoredNames.end(),
                      [name](std::string_view noise) { return name.starts_with(noise); });
}

void XPlaneLines::on_event_without_names() { builder_.count_dropped(kDamagedEventsReason); }

}  // namespace joulemap::ingest
