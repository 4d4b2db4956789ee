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
  const auto shared = std::make_shared<CallState>();
  try {
    const ScopedSignalBlock signal_block;
    std::thread([shared, call = std::move(call)] {
      const CuptiResult outcome = call();
      const std::lock_guard hold(shared->lock);
      shared->cupti_result = outcome;
      shared->returned_condition.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    return std::nullopt;  // no thread available; the call was not made
  }
  std::unique_lock hold(shared->lock);
  shared->returned_condition.wait_for(hold, limit, [&] { return shared->cupti_result.has_value(); });
  return shared->cupti_result;
}

}  // namespace joulemap::capture::cupti
