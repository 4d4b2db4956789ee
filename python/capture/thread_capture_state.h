// SPDX-License-Identifier: Apache-2.0
//
// ThreadCaptureState: state of one thread of the recorded program: its running module calls, its phase, and which part
// of its autograd graph is attributed to modules. Thread-local.
//
// A thread also works between phases: after the model's call it computes the loss, after a batch it prepares input.
// Such an interval ("between") lasts from the end of one phase to the begin of the next. If the program has opened a
// region in it, the interval also lasts until that region is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "module_scopes.h"

struct _object;  // PyObject

namespace joulemap::python {

struct ModuleCall {
  _object* module;         // borrowed; only compared
  std::size_t depth;       // jmc_depth() before the call
  std::uint32_t node;      // in ModuleScopes
  bool has_entered_scope;  // false: not recorded, or its wrapper (DDP) has already entered the scope that they share
};

struct ThreadCaptureState {
  std::vector<ModuleCall> calls;
  std::size_t first_call_index = 0;  // calls below this index belong to the caller of the current backward pass
  std::vector<std::size_t>
      enclosing_first_call_indices;  // values of `first_call_index` in the enclosing backward passes
  Pass pass = Pass::forward;
  ModelMode mode = ModelMode::unknown;
  // Of outermost modules, their nodes in ModuleScopes. A model and its wrapper (DDP, torch.compile) have the same node.
  std::optional<std::uint32_t> last_inference_node;  // called last; empty if that call had gradients
  std::vector<std::uint32_t> nodes_trained_in_step;  // called with gradients since this thread began a step
  std::vector<std::uint32_t> teacher_nodes;   // called without gradients in a training step, before its other calls
  std::vector<std::uint32_t> trained_nodes;   // called with gradients in any step: no teachers
  bool has_run_backward = false;              // this thread has run a backward pass
  bool is_outermost_call_unrecorded = false;  // the outermost call runs under torch.jit.trace or a torch.func transform
  bool must_hide_grad_fn_reads = false;  // the program has a TorchFunctionMode, which must not see our reads of grad_fn
  bool is_in_phase_gap = false;
  std::size_t phase_gap_depth = 0;  // jmc_depth() before the interval between phases

  // Autograd nodes with sequence numbers below this one are already attributed to a module.
  std::uint64_t first_unattributed_sequence_number = 0;
  // For each attributed interval of the autograd graph: the sequence number of its last node, and the module's node in
  // ModuleScopes. Only in sampled steps.
  bool keeps_node_intervals = false;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> node_intervals;

  static ThreadCaptureState& of_this_thread();

  bool is_outside_modules() const { return calls.size() <= first_call_index; }
  std::uint32_t innermost_module_node() const { return is_outside_modules() ? 0 : calls.back().node; }

  void end_phase_gap();
  void begin_phase_gap(jmc_scope scope);
  void begin_backward_pass(jmc_scope scope);
  void end_backward_pass();
  void leave_all_scopes();   // leaves the scopes of all module calls, and the interval between phases
  void reset_except_mode();  // called in the child of a fork and for another recording; keeps only the mode
};

}  // namespace joulemap::python
