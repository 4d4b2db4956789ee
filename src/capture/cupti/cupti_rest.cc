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
#include "base/signal_shield.h"
#include "capture/cupti/cupti_session.h"

namespace joulemap::capture::cupti {
namespace {

// Shortest time without tracing before closing: records of the last launches may still arrive.
constexpr std::int64_t kBeforeRest_ns = kNanosecondsPerSecond / 4;
// After this time without tracing, a buffer that is still lent may be empty and is not awaited.
constexpr std::int64_t kLongSilence_ns = kNanosecondsPerSecond;

}  // namespace

void CuptiSession::listen(bool on) {
  const std::lock_guard hold(switches_);
  if (listening_ == on) return;
  listening_ = on;
  silent_since_ns_ = monotonic_ns();
  if (!on) intake_.note_silence(silent_since_ns_);
  if (!alive_.load() || lent_) return;
  const Status set = on ? wake() : set_kinds(false);
  if (!on) set_launch_callbacks(false);
  if (!set) note("cupti_kind", set.error().message, set.error().remedy);
}

void CuptiSession::allow_closing(bool allowed) {
  const std::lock_guard hold(switches_);
  rest_is_allowed_.store(allowed);
  if (allowed || !alive_.load() || lent_ || rest_.load() == Rest::awake) return;
  const Status woken = wake();
  if (!woken) note("cupti_lost", woken.error().message, woken.error().remedy);
}

// Requires switches_ to be held.
bool CuptiSession::may_rest() const {
  return rest_is_allowed_.load() && !listening_ && !lent_ && !is_shared_ && subscriber_ != nullptr &&
         !callbacks_.launches.empty() && api_.can_close();
}

// Called by the polling thread, which holds control_ and has just fetched the records.
void CuptiSession::consider_rest(std::int64_t now_ns) {
  {
    const std::lock_guard hold(switches_);
    const std::int64_t silence_ns = now_ns - silent_since_ns_;
    const bool all_is_told = !intake_.has_lent() || silence_ns >= kLongSilence_ns;
    if (!may_rest() || silence_ns < kBeforeRest_ns || !all_is_told) return;
  }
  note_flush(api_.functions().flush_all(kFlushForced));
  const std::lock_guard hold(switches_);
  if (!may_rest()) return;
  rest_.store(Rest::leaving);
  set_launch_callbacks(true);
}

// Runs on a thread of the program whose launch is about to return. The holder of switches_ may be inside CUPTI; then a
// later launch closes it.
void CuptiSession::close_in_callback() noexcept {
  try {
    const std::unique_lock hold(switches_, std::try_to_lock);
    if (!hold || !alive_.load() || rest_.load() != Rest::leaving) return;
    const Outcome outcome = api_.functions().finalize();
    subscriber_ = nullptr;
    intake_.write_off_buffers();
    rest_.store(Rest::closed);
    if (outcome == Outcome::success) return;
    rest_is_allowed_.store(false);
    note("cupti_rest", "CUPTI did not close while it was not needed: " + api_.text_of(outcome));
  } catch (const std::exception&) {
    rest_is_allowed_.store(false);  // no memory for a note; CUPTI keeps running as usual
  }
}

// Requires switches_ to be held. Enables records if steps are traced.
Status CuptiSession::wake() {
  const Rest before = rest_.exchange(Rest::awake);
  if (before == Rest::closed) {
    const SignalShield signals_are_for_the_program;  // CUPTI starts its threads again
    has_woken_.store(true);
    return acquire();
  }
  set_launch_callbacks(listening_);
  return listening_ ? set_kinds(true) : Status(Done{});
}

}  // namespace joulemap::capture::cupti
