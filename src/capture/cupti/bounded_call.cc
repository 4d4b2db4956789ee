// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/bounded_call.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/scoped_signal_block.h"

namespace joulemap::capture::cupti {

std::optional<CuptiResult> call_with_timeout(std::chrono::milliseconds limit, std::function<CuptiResult()> call) {
  struct CallState {
    std::mutex lock;
    std::condition_variable returned_condition;
    std::optional<CuptiResult> cupti_result;
  };
  const auto call_state = std::make_shared<CallState>();
  try {
    const ScopedSignalBlock signal_block;
    std::thread([call_state, call = std::move(call)] {
      const CuptiResult outcome = call();
      const std::lock_guard result_lock(call_state->lock);
      call_state->cupti_result = outcome;
      call_state->returned_condition.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    return std::nullopt;  // no thread available; the call was not made
  }
  std::unique_lock wait_lock(call_state->lock);
  call_state->returned_condition.wait_for(wait_lock, limit, [&] { return call_state->cupti_result.has_value(); });
  return call_state->cupti_result;
}

}  // namespace joulemap::capture::cupti
