// SPDX-License-Identifier: Apache-2.0
#include "capture/nvtx_ranges.h"

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "capture/capture.h"

namespace joulemap::capture {
namespace {

constexpr std::string_view kCompilePhase = "compile";

struct OpenRange {
  std::size_t stack_depth;  // scope depth of this thread before the range
  std::string hlo_module;   // XLA module of the range; empty: that of the enclosing range
};

// Open ranges of this thread in this capture. Ranges of a fork's parent or of an ended recording are forgotten.
std::vector<OpenRange>& nvtx_ranges_of_thread(const Capture& capture) {
  thread_local std::vector<OpenRange> ranges;
  thread_local std::uint64_t instance_id = 0;
  if (instance_id != capture.instance_id()) ranges.clear();
  instance_id = capture.instance_id();
  return ranges;
}

std::string_view find_enclosing_hlo_module(const Capture& capture) {
  const std::vector<OpenRange>& ranges = nvtx_ranges_of_thread(capture);
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    if (!range->hlo_module.empty()) return range->hlo_module;
  }
  return {};
}

// An XLA instruction has the scope of its operation; an unregistered one becomes a region named after it.
std::uint32_t scope_of_nvtx_range(Capture& capture, std::string_view name, const std::optional<HloRange>& hlo) {
  if (is_xla_compiler_range(name)) return capture.find_or_add_child_scope(0, ScopeKind::phase, kCompilePhase);
  if (!hlo) return capture.find_or_add_child_scope(capture.current_scope(), ScopeKind::region, name);
  const std::string_view module = hlo->module.empty() ? find_enclosing_hlo_module(capture) : hlo->module;
  if (const auto instruction_scope = capture.scope_of_hlo_instruction(module, hlo->instruction))
    return *instruction_scope;
  if (capture.is_hlo_autotuning(module)) return capture.find_or_add_child_scope(0, ScopeKind::phase, kCompilePhase);
  const std::string_view region = hlo->instruction.empty() ? module : hlo->instruction;
  return capture.find_or_add_child_scope(capture.current_scope(), ScopeKind::region, region);
}

}  // namespace

// Libraries push thousands of ranges, so ranges become scopes but are not recorded as marks.
void nvtx_push(std::string_view name) noexcept {
  try {
    Capture* const capture = Capture::get();
    if (capture == nullptr) return;
    const std::optional<HloRange> hlo = parse_hlo_range(name);
    const std::uint32_t scope = scope_of_nvtx_range(*capture, name, hlo);
    nvtx_ranges_of_thread(*capture).push_back({capture->enter(scope), hlo ? std::string(hlo->module) : std::string()});
  } catch (const std::exception&) {
    // Out of memory: this range is dropped.
  }
}

void nvtx_pop() noexcept {
  Capture* const capture = Capture::existing_instance();
  if (capture == nullptr || nvtx_ranges_of_thread(*capture).empty()) return;
  capture->leave_to_depth(nvtx_ranges_of_thread(*capture).back().stack_depth);
  nvtx_ranges_of_thread(*capture).pop_back();
}

}  // namespace joulemap::capture
