// SPDX-License-Identifier: Apache-2.0
#include "capture/nvtx_ranges.h"

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "capture/capture.h"

namespace joulemap::capture {
namespace {

constexpr std::string_view kCompile = "compile";

struct OpenRange {
  std::size_t depth;   // how deep this thread was before it
  std::string module;  // of XLA, that runs within it; empty: the same as around it
};

std::vector<OpenRange>& open_ranges() {
  thread_local std::vector<OpenRange> ranges;
  return ranges;
}

std::string_view present_module() {
  for (auto range = open_ranges().rbegin(); range != open_ranges().rend(); ++range) {
    if (!range->module.empty()) return range->module;
  }
  return {};
}

// An instruction of XLA's is at its operation's place; what is not known is a region of its name, without its numbers.
std::uint32_t place_of_range(Capture& capture, std::string_view name, const std::optional<HloRange>& hlo) {
  if (is_of_xla_compiler(name)) return capture.place_in(0, PlaceKind::phase, kCompile);
  if (!hlo) return capture.place_in(capture.here(), PlaceKind::region, name);
  const std::string_view module = hlo->module.empty() ? present_module() : hlo->module;
  if (const auto known = capture.place_of_hlo(module, hlo->instruction)) return *known;
  if (capture.is_hlo_trial(module)) return capture.place_in(0, PlaceKind::phase, kCompile);
  const std::string_view region = hlo->instruction.empty() ? module : hlo->instruction;
  return capture.place_in(capture.here(), PlaceKind::region, region);
}

}  // namespace

// Libraries push ranges by the thousand: they are places, without a mark for each.
void nvtx_push(std::string_view name) noexcept {
  try {
    Capture* const capture = Capture::get();
    if (capture == nullptr) return;
    const std::optional<HloRange> hlo = read_hlo_range(name);
    const std::uint32_t place = place_of_range(*capture, name, hlo);
    open_ranges().push_back({capture->enter(place), hlo ? std::string(hlo->module) : std::string()});
  } catch (const std::exception&) {
    // No memory: this range is not told.
  }
}

void nvtx_pop() noexcept {
  Capture* const capture = Capture::existing();
  if (capture == nullptr || open_ranges().empty()) return;
  capture->leave_to(open_ranges().back().depth);
  open_ranges().pop_back();
}

}  // namespace joulemap::capture
