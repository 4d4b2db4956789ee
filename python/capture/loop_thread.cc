// SPDX-License-Identifier: Apache-2.0
#include "loop_thread.h"

namespace joulemap::python {

LoopThread& LoopThread::of_this_thread() {
  thread_local LoopThread thread;
  return thread;
}

void LoopThread::end_phase_gap() {
  if (!is_in_phase_gap) return;
  const std::size_t depth = jmc_depth();
  if (depth > phase_gap_depth + 1) return;  // a region that was opened in the interval is still open
  jmc_leave_to(phase_gap_depth);
  is_in_phase_gap = false;
}

void LoopThread::begin_phase_gap(jmc_scope scope) {
  end_phase_gap();
  if (is_in_phase_gap) return;
  phase_gap_depth = jmc_enter(scope);
  is_in_phase_gap = true;
}

void LoopThread::begin_pass(jmc_scope scope) {
  end_phase_gap();
  saved_outermost.push_back(outermost);
  outermost = calls.size();
  jmc_backward_begin(scope);
}

void LoopThread::end_pass() {
  jmc_backward_end();
  if (saved_outermost.empty()) return;
  calls.resize(outermost < calls.size() ? outermost : calls.size());
  outermost = saved_outermost.back();
  saved_outermost.pop_back();
}

void LoopThread::leave_all_scopes() {
  if (!calls.empty()) jmc_leave_to(calls.front().depth);
  calls.clear();
  outermost = 0;
  saved_outermost.clear();
  end_phase_gap();
}

void LoopThread::reset_except_mode() {
  const Mode known = mode;
  *this = LoopThread();
  mode = known;
}

}  // namespace joulemap::python
