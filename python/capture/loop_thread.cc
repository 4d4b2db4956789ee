// SPDX-License-Identifier: Apache-2.0
#include "loop_thread.h"

namespace joulemap::python {

LoopThread& LoopThread::current() {
  thread_local LoopThread thread;
  return thread;
}

void LoopThread::end_between() {
  if (!is_between_phases) return;
  const std::size_t depth = jmc_depth();
  if (depth > between_depth + 1) return;  // a region that was opened in the interval is still open
  jmc_leave_to(between_depth);
  is_between_phases = false;
}

void LoopThread::begin_between(jmc_scope scope) {
  end_between();
  if (is_between_phases) return;
  between_depth = jmc_enter(scope);
  is_between_phases = true;
}

void LoopThread::begin_pass(jmc_scope scope) {
  end_between();
  enclosing_outermost.push_back(outermost);
  outermost = calls.size();
  jmc_backward_begin(scope);
}

void LoopThread::end_pass() {
  jmc_backward_end();
  if (enclosing_outermost.empty()) return;
  calls.resize(outermost < calls.size() ? outermost : calls.size());
  outermost = enclosing_outermost.back();
  enclosing_outermost.pop_back();
}

void LoopThread::leave_all() {
  if (!calls.empty()) jmc_leave_to(calls.front().depth);
  calls.clear();
  outermost = 0;
  enclosing_outermost.clear();
  end_between();
}

void LoopThread::forget() {
  const Mode known = mode;
  *this = LoopThread();
  mode = known;
}

}  // namespace joulemap::python
