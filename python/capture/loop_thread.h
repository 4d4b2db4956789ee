// SPDX-License-Identifier: Apache-2.0
//
// LoopThread: state of one thread of the program: its module calls, its phase, and which part of its autograd graph is
// attributed to modules. Thread-local.
//
// A thread also works between phases: after the model's call it computes the loss, after a batch it prepares input.
// Such an interval ("between") begins when one phase ends and ends when the next begins. A region that the program
// opened meanwhile stays on top of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "scope_names.h"

struct _object;  // PyObject

namespace joulemap::python {

struct ModuleCall {
  _object* module;  // borrowed; only compared
  std::size_t depth;
  std::uint32_t node;
  bool entered;  // a wrapper and its wrapped module share one scope, entered once
};

struct LoopThread {
  std::vector<ModuleCall> calls;
  std::size_t outermost = 0;                     // calls below this index belong to the caller of a backward pass
  std::vector<std::size_t> enclosing_outermost;  // values of `outermost` in the enclosing passes
  Pass pass = Pass::forward;
  Mode mode = Mode::unknown;
  bool trains = false;         // it has run a backward pass
  bool is_unrecorded = false;  // the outermost call is being traced or transformed: not recorded
  bool hides_queries = false;  // a torch function mode of the program would see our queries of tensors
  bool is_between_phases = false;
  std::size_t between_depth = 0;

  // Graph nodes with sequence numbers below this one are already attributed to a module.
  std::uint64_t first_unattributed = 0;
  // (last sequence number, module node) of each attributed interval of the graph; kept in sampled steps.
  bool keeps_node_intervals = false;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> node_intervals;

  static LoopThread& current();

  bool is_outermost() const { return calls.size() <= outermost; }
  std::uint32_t enclosing() const { return is_outermost() ? 0 : calls.back().node; }

  void end_between();
  void begin_between(jmc_scope scope);
  void begin_pass(jmc_scope scope);
  void end_pass();
  void leave_all();  // leaves all scopes of modules and of `between`
  void forget();     // in the child of a fork
};

}  // namespace joulemap::python
