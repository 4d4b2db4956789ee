// SPDX-License-Identifier: Apache-2.0
//
// call_with_timeout: runs a CUPTI call on a thread of its own, because it may never return (driver unloaded, GPU hung).
// The caller stops waiting after the limit; the thread then stays blocked until the process ends. So the callable must
// own everything it uses.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "capture/cupti/cupti_abi.h"

namespace joulemap::capture::cupti {

// Returns nullopt when the call did not return in time, or no thread could be created.
std::optional<CuptiResult> call_with_timeout(std::chrono::milliseconds limit, std::function<CuptiResult()> call);

}  // namespace joulemap::capture::cupti
