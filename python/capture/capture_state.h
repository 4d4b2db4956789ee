// SPDX-License-Identifier: Apache-2.0
//
// CaptureState: the global state of the hooks in this process, because Python calls functions without an object.
// Requires the GIL.
#pragma once

#include "module_calls.h"

namespace joulemap::python {

struct CaptureState {
  bool is_on = false;  // from setup() until one of our functions fails
  ModuleCalls calls;
};

// Created by the first call, never destroyed: hooks may run while the interpreter shuts down.
inline CaptureState& capture_state() {
  static CaptureState& state = *new CaptureState;
  return state;
}

}  // namespace joulemap::python
