// SPDX-License-Identifier: Apache-2.0
//
// The one state of the hooks in this process: Python calls functions, which have no object to hang it on. Under the GIL.
#pragma once

#include "module_calls.h"

namespace joulemap::python {

struct CaptureState {
  bool is_on = false;  // since setup(), until something of ours has failed
  ModuleCalls calls;
};

// Made by the first call, never destroyed: hooks may be called while the interpreter ends.
inline CaptureState& capture_state() {
  static CaptureState& state = *new CaptureState;
  return state;
}

}  // namespace joulemap::python
