// SPDX-License-Identifier: Apache-2.0
//
// outcome_within: a call into CUPTI that may never return (the driver may be gone, the GPU may hang), made on a thread of
// its own. Whoever waits gives up after the limit; the thread then stays where it is until the process ends. So the call
// must own what it uses.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "capture/cupti/cupti_abi.h"

namespace joulemap::capture::cupti {

// Nothing when it did not return in time, or no thread could be had.
std::optional<Outcome> outcome_within(std::chrono::milliseconds limit, std::function<Outcome()> call);

}  // namespace joulemap::capture::cupti
