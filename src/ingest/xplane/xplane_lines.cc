// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "ingest/kernel_details.h"
#include "ingest/xplane/xplane_operations.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kEnvironment = "Task Environment";
constexpr std::string_view kGpuPlane = "/device:GPU:", kTpuPlane = "/device:TPU:";
constexpr std::string_view kTpuOperations = "XLA Ops";
// Internal events of the runtimes, whose values need not be read.
constexpr std::array<std::string_view, 4> kNoise = {"ThreadpoolListener::", "MemoryAllocation", "MemoryDeallocation",
                                                    "ExecutorState::"};
constexpr std::array<std::string_view, 8> kFacts = {"jax_version",         "jaxlib_version", "gpu_version",
                                                    "gpu_device_name",     "cuda_version",   "cuda_runtime_version",
                                                    "cuda_driver_version", "tpu_version"};

}  // namespace

bool XPlaneLines::on_plane(const XPlane& plane) {
  if (plane.name.starts_with('/') || plane.name == kEnvironment) ++planes_known_;
  line_ = {.plane = line_.plane + 1, .is_device = plane.kind == XPlaneKind::device};
  note_facts(plane);
  if (line_.is_device) {
    is_tpu_ = plane.name.starts_with(kTpuPlane);
    const std::string_view prefix = is_tpu_ ? kTpuPlane : kGpuPlane;
    if (!plane.name.starts_with(prefix)) return false;
    line_.ordinal = number_at(plane.name.substr(prefix.size()));
  }
  return plane.kind != XPlaneKind::metadata;
}

void XPlaneLines::note_facts(const XPlane& plane) {
  if (plane.name == kEnvironment) start_ns_ = integer_of(plane.stats, "profile_start_time");
  if (const auto process = integer_of(plane.stats, "process_id"); process && !process_) process_ = process;
  for (const std::string_view name : kFacts) {
    const std::string_view value = text_of(plane.stats, name);
    if (!value.empty()) builder_.trace().facts.push_back({std::string(name), to_valid_utf8(value)});
  }
}

bool XPlaneLines::on_line(const XLine& line) {
  if (!line_.is_device) {
    line_.track = builder_.thread(process_.value_or(0), line.id);
    builder_.trace().threads[line_.track].name = to_valid_utf8(line.name);
    line_.feeds = XPlaneOperations::feeds(line.name);
    return true;
  }
  line_.stream = static_cast<std::uint32_t>(line.id);
  if (is_tpu_) return line.name == kTpuOperations;
  if (line.derived) return false;
  if (line.name.empty() || line.name.find("tream") != std::string_view::npos) return true;
  builder_.note("line_left_out",
                fmt::format("xplane: a line {} of a GPU is neither a stream nor known to be made of streams: left out",
                            quoted(line.name)));
  return false;
}

bool XPlaneLines::on_name(std::string_view name) {
  return std::none_of(kNoise.begin(), kNoise.end(), [name](std::string_view noise) { return name.starts_with(noise); });
}

void XPlaneLines::on_lost_event() { builder_.drop(kDamagedEvents); }

}  // namespace joulemap::ingest
