// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_line_selector.h"

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

constexpr std::string_view kEnvironmentPlaneName = "Task Environment";
constexpr std::string_view kGpuPlanePrefix = "/device:GPU:", kTpuPlanePrefix = "/device:TPU:";
constexpr std::string_view kTpuOperationsLineName = "XLA Ops";
constexpr std::string_view kStepsLineName = "Steps";
// Internal events of the runtimes, whose values need not be read.
constexpr std::array<std::string_view, 4> kIgnoredEventPrefixes = {"ThreadpoolListener::", "MemoryAllocation",
                                                                   "MemoryDeallocation", "ExecutorState::"};
constexpr std::array<std::string_view, 8> kEnvironmentStatNames = {
    "jax_version",  "jaxlib_version",       "gpu_version",         "gpu_device_name",
    "cuda_version", "cuda_runtime_version", "cuda_driver_version", "tpu_version"};

}  // namespace

bool XPlaneLineSelector::on_plane(const XPlane& plane) {
  if (plane.name.starts_with('/') || plane.name == kEnvironmentPlaneName) ++recognized_plane_count_;
  line_context_ = {.plane = line_context_.plane + 1, .is_device_plane = plane.kind == XPlaneKind::device};
  add_environment(plane);
  if (line_context_.is_device_plane) {
    is_tpu_ = plane.name.starts_with(kTpuPlanePrefix);
    const std::string_view prefix = is_tpu_ ? kTpuPlanePrefix : kGpuPlanePrefix;
    if (!plane.name.starts_with(prefix)) return false;
    line_context_.device_ordinal = parse_leading_number(plane.name.substr(prefix.size()));
  }
  return plane.kind != XPlaneKind::metadata;
}

void XPlaneLineSelector::add_environment(const XPlane& plane) {
  if (plane.name == kEnvironmentPlaneName) start_ns_ = find_integer_stat(plane.stats, "profile_start_time");
  if (const auto process = find_integer_stat(plane.stats, "process_id"); process && !process_id_) process_id_ = process;
  for (const std::string_view name : kEnvironmentStatNames) {
    const std::string_view value = find_text_stat(plane.stats, name);
    if (!value.empty()) builder_.trace().environment.push_back({std::string(name), to_valid_utf8(value)});
  }
}

bool XPlaneLineSelector::on_line(const XLine& line) {
  if (!line_context_.is_device_plane) {
    line_context_.track = builder_.intern_thread(process_id_.value_or(0), line.id);
    builder_.trace().threads[line_context_.track].name = to_valid_utf8(line.name);
    line_context_.is_input_pipeline = XPlaneOperations::is_input_pipeline(line.name);
    return true;
  }
  line_context_.stream_id = static_cast<std::uint32_t>(line.id);
  // Each device has such a line; the first one counts.
  line_context_.is_steps_line =
      line.name == kStepsLineName && !std::exchange(has_steps_, has_steps_ || line.name == kStepsLineName);
  if (line_context_.is_steps_line) {
    line_context_.track = builder_.intern_thread(process_id_.value_or(0), line.id);
    builder_.trace().threads[line_context_.track].name = kStepsLineName;
    return true;
  }
  if (is_tpu_) return line.name == kTpuOperationsLineName;
  if (line.is_derived) return false;
  if (line.name.empty() || line.name.find("tream") != std::string_view::npos) return true;
  builder_.add_diagnostic(
      "line_left_out",
      fmt::format("xplane: a line {} of a GPU is neither a stream nor derived from streams and was skipped",
                  quoted(line.name)));
  return false;
}

bool XPlaneLineSelector::on_event_name(std::string_view name) {
  return std::none_of(kIgnoredEventPrefixes.begin(), kIgnoredEventPrefixes.end(),
                      [name](std::string_view noise) { return name.starts_with(noise); });
}

void XPlaneLineSelector::on_event_without_names() { builder_.add_dropped_events(kDamagedEventsReason); }

}  // namespace joulemap::ingest
