// SPDX-License-Identifier: Apache-2.0
#include "capture/nvtx_ranges.h"

#include <exception>
#include <vector>

#include "capture/capture.h"

namespace joulemap::capture {
namespace {

// How deep this thread was before each of its open ranges.
std::vector<std::size_t>& open_ranges() {
  thread_local std::vector<std::size_t> depths;
  return depths;
}

}  // namespace

// Libraries push ranges by the thousand: they are places, without a mark for each.
void nvtx_push(std::string_view name) noexcept {
  try {
    Capture* const capture = Capture::get();
    if (capture == nullptr) return;
    open_ranges().push_back(capture->enter(capture->place_in(capture->here(), PlaceKind::region, name)));
  } catch (const std::exception&) {
    // No memory: this range is not told.
  }
}

void nvtx_pop() noexcept {
  Capture* const capture = Capture::existing();
  if (capture == nullptr || open_ranges().empty()) return;
  capture->leave_to(open_ranges().back());
  open_ranges().pop_back();
}

}  // namespace joulemap::capture
