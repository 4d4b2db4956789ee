// SPDX-License-Identifier: Apache-2.0
//
// CaptureState: the state of the hooks in this process. It is global, because Python calls the functions of an
// extension module without an object of ours. Requires the GIL.
#pragma once

#include "module_calls.h"

namespace joulemap::python {

struct CaptureState {
  // Module calls are captured: from set_up_module_capture() until turned off, or until one of our functions fails.
  bool is_on = false;
  ModuleCalls calls;
};

// Created by the first call, never destroyed: hooks may run while the interpreter shuts down.
inline CaptureState& capture_state() {
  static CaptureState& state = *new CaptureState;
  return state;
}

}  // namespace joulemap::python
