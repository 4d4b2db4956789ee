// SPDX-License-Identifier: Apache-2.0
//
// The part of CuptiSession that enables and disables records, and closes CUPTI during untraced steps. Once records were
// enabled, every launch is slower as long as CUPTI is open, with or without records. The cost is a microsecond on an
// H200 (CUDA 13): 4 % of a step that waits for 500 launches. Closing CUPTI takes 2.5 ms, reopening it 12 ms.
//
// NVIDIA requires closing it from within a callback, when a driver call returns. So the polling thread requests it, and
// the next launch of the program does it.
#include <exception>

#include "base/clock.h"
#include "base/scoped_signal_block.h"
#include "capture/cupti/cupti_session.h"

namespace joulemap::capture::cupti {
namespace {

// Shortest time without tracing before closing: records of the last launches may still arrive.
constexpr std::int64_t kMinIdleBeforeDetach_ns = kNanosecondsPerSecond / 4;
// After this time without tracing, a buffer that is still lent may be empty and is not awaited.
constexpr std::int64_t kBufferTimeout_ns = kNanosecondsPerSecond;

}  // namespace

void CuptiSession::set_tracing(bool on) {
  const std::lock_guard hold(enable_lock_);
  if (tracing_requested_ == on) return;
  tracing_requested_ = on;
  untraced_since_ns_ = monotonic_ns();
  if (!on) intake_.note_records_disabled(untraced_since_ns_);
  if (!is_active_.load() || is_yielded_) return;
  const Status set = on ? reattach() : enable_record_kinds(false);
  if (!on) enable_launch_callbacks(false);
  if (!set) add_diagnostic("cupti_kind", set.error().message, set.error().remedy);
}

void CuptiSession::allow_detach(bool allowed) {
  const std::lock_guard hold(enable_lock_);
  detach_is_allowed_.store(allowed);
  if (allowed || !is_active_.load() || is_yielded_ || attachment_.load() == Attachment::attached) return;
  const Status reattached = reattach();
  if (!reattached) add_diagnostic("cupti_lost", reattached.error().message, reattached.error().remedy);
}

// Requires enable_lock_ to be held.
bool CuptiSession::may_detach() const {
  return detach_is_allowed_.load() && !tracing_requested_ && !is_yielded_ && !was_shared_ && subscriber_ != nullptr &&
         !callbacks_.launches.empty() && api_.can_detach();
}

// Called by the polling thread, which holds control_lock_ and has just fetched the records.
void CuptiSession::detach_if_idle(std::int64_t now_ns) {
  {
    const std::lock_guard hold(enable_lock_);
    const std::int64_t untraced_ns = now_ns - untraced_since_ns_;
    const bool all_is_delivered = !intake_.has_lent_buffers() || untraced_ns >= kBufferTimeout_ns;
    if (!may_detach() || untraced_ns < kMinIdleBeforeDetach_ns || !all_is_delivered) return;
  }
  check_flush(api_.functions().flush_all(kFlushForced));
  const std::lock_guard hold(enable_lock_);
  if (!may_detach()) return;
  attachment_.store(Attachment::detaching);
  enable_launch_callbacks(true);
}

// Runs on a thread of the program whose launch is about to return. The holder of enable_lock_ may be inside CUPTI; then
// a later launch closes it.
void CuptiSession::detach_in_callback() noexcept {
  try {
    const std::unique_lock hold(enable_lock_, std::try_to_lock);
    if (!hold || !is_active_.load() || attachment_.load() != Attachment::detaching) return;
    const CuptiResult outcome = api_.functions().finalize();
    subscriber_ = nullptr;
    intake_.abandon_lent_buffers();
    attachment_.store(Attachment::detached);
    if (outcome == CuptiResult::success) return;
    detach_is_allowed_.store(false);
    add_diagnostic("cupti_rest", "CUPTI failed to detach while it was idle: " + api_.result_text(outcome));
  } catch (const std::exception&) {
    detach_is_allowed_.store(false);  // no memory for a note; CUPTI keeps running as usual
  }
}

// Requires enable_lock_ to be held. Enables records if steps are traced.
Status CuptiSession::reattach() {
  const Attachment before = attachment_.exchange(Attachment::attached);
  if (before == Attachment::detached) {
    const ScopedSignalBlock signals_are_for_the_program;  // CUPTI starts its threads again
    has_reattached_.store(true);
    return acquire_cupti();
  }
  enable_launch_callbacks(tracing_requested_);
  return tracing_requested_ ? enable_record_kinds(true) : Status(Done{});
}

}  // namespace joulemap::capture::cupti
