// SPDX-License-Identifier: Apache-2.0
#include "thread_capture_state.h"

namespace joulemap::python {

ThreadCaptureState& ThreadCaptureState::of_this_thread() {
  thread_local ThreadCaptureState thread;
  return thread;
}

void ThreadCaptureState::end_phase_gap() {
  if (!is_in_phase_gap) return;
  const std::size_t depth = jmc_depth();
  if (depth > phase_gap_depth + 1) return;  // a region that was opened in the interval is still open
  jmc_leave_to(phase_gap_depth);
  is_in_phase_gap = false;
}

void ThreadCaptureState::begin_phase_gap(jmc_scope scope) {
  end_phase_gap();
  if (is_in_phase_gap) return;
  phase_gap_depth = jmc_enter(scope);
  is_in_phase_gap = true;
}

void ThreadCaptureState::begin_backward_pass(jmc_scope scope) {
  end_phase_gap();
  enclosing_first_call_indices.push_back(first_call_index);
  first_call_index = calls.size();
  jmc_backward_begin(scope);
}

void ThreadCaptureState::end_backward_pass() {
  jmc_backward_end();
  if (enclosing_first_call_indices.empty()) return;
  calls.resize(first_call_index < calls.size() ? first_call_index : calls.size());
  first_call_index = enclosing_first_call_indices.back();
  enclosing_first_call_indices.pop_back();
}

void ThreadCaptureState::leave_all_scopes() {
  if (!calls.empty()) jmc_leave_to(calls.front().depth);
  calls.clear();
  first_call_index = 0;
  enclosing_first_call_indices.clear();
  end_phase_gap();
}

void ThreadCaptureState::reset_except_mode() {
  const ModelMode known = mode;
  *this = ThreadCaptureState();
  mode = known;
}

}  // namespace joulemap::python
