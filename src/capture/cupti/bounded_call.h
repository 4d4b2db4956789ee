// SPDX-License-Identifier: Apache-2.0
//
// outcome_within: runs a CUPTI call on a thread of its own, because it may never return (driver unloaded, GPU hung).
// The caller stops waiting after the limit; the thread then stays blocked until the process ends. So the callable must
// own everything it uses.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "capture/cupti/cupti_abi.h"

namespace joulemap::capture::cupti {

// Returns nullopt when the call did not return in time, or no thread could be created.
std::optional<Outcome> outcome_within(std::chrono::milliseconds limit, std::function<Outcome()> call);

}  // namespace joulemap::capture::cupti
