// SPDX-License-Identifier: Apache-2.0
//
// ModuleCalls: handles calls and returns of PyTorch modules. The thread enters the module's scope, and the autograd
// nodes created meanwhile are attributed to the module.
//
// Each autograd node has a sequence number that grows with every node its thread creates. At a module's call, nodes
// above the last attributed number belong to the calling code; at its return, to the module. The last node of each such
// interval gets a hook that identifies the module; the backward pass enters the interval there. No tensor is touched
// and no module is wrapped, so in-place modules work. The hook is registered through the hook dictionary of a tensor of
// our own (the carrier), one per module: registering hooks individually takes ten times as long. PyTorch 2.0 does not
// expose sequence numbers; there, attributed nodes are marked instead. The results differ only for nodes that were
// skipped: sequence numbers below the last attributed one count as attributed, unmarked nodes do not.
//
// Requires the GIL; one per process, never destroyed. A function that may raise a Python exception returns false when
// it did.
#pragma once

#include <cstdint>
#include <optional>

#include "module_scopes.h"
#include "module_table.h"
#include "thread_capture_state.h"

namespace joulemap::python {

// Python functions that ModuleCalls calls: PyTorch's and those of python/joulemap. Owned references.
struct TorchFunctions {
  PyObject* tensor_type = nullptr;
  PyObject* is_grad_enabled = nullptr;
  PyObject* graph_task_id = nullptr;                 // () -> id of the backward pass that runs on this thread, or -1
  PyObject* function_mode_count = nullptr;           // () -> number of active TorchFunctionModes
  PyObject* is_in_transform = nullptr;               // () -> whether torch.jit.trace or a torch.func transform runs
  PyObject* is_running = nullptr;                    // (module) -> whether an earlier call of it is still running
  PyObject* resolve_module = nullptr;                // (module, outermost or None): adds the module to `modules`
  PyObject* make_hook_tensor = nullptr;              // (hook) -> a tensor whose hook dictionary holds only it
  PyObject* read_grad_fn_bypassing_modes = nullptr;  // (tensor) -> its grad_fn, read unseen by TorchFunctionModes
  PyObject* on_step_sampling_change = nullptr;  // (is_sampled, is_traced): of the step that begins; one has changed
  int has_sequence_numbers = 1;                 // nonzero: autograd nodes expose sequence numbers
};

class ModuleCalls {
 public:
  ModuleScopes names;
  ModuleTable modules;
  TorchFunctions torch_functions;
  bool traces_modules = true;          // false: only outermost calls are traced
  int own_function_mode_count = 0;     // active TorchFunctionModes that belong to Joulemap
  std::vector<PyObject*> model_types;  // classes of outermost modules; owned

  bool on_call(PyObject* module, PyObject* inputs);
  bool on_return(PyObject* module, PyObject* output);
  // Reports the loop event; calls torch.on_step_sampling_change when the new step changes what is traced or sampled.
  // Sets `begins_step`, if given, to whether a step begins with the event.
  bool on_training_loop_event(int event, bool* begins_step = nullptr);
  // The same for JMC_LOADER_NEXT and JMC_LOADER_END of one of several iterators (jmc_on_loader_event).
  bool on_loader_event(int event, std::uint64_t iterator);
  // Collect the loop events while a CUDA graph is captured, as bits 1 << event: its replays repeat them. The result is 0
  // if the capture began inside a module, whose own calls are events (torch.compile, graphed modules).
  void begin_graph_capture();
  std::uint32_t end_graph_capture();
  bool begin_graph_replay(std::uint32_t events);
  bool end_graph_replay(std::uint32_t events);
  // Sets `answer` to whether a backward pass already runs on this thread.
  bool is_in_backward(bool& answer);
  void reset_after_fork();

 private:
  bool follow_step(bool is_new_step);  // after an event: whether it began a step
  bool begin_outermost_call(ThreadCaptureState& thread, std::uint32_t node, bool is_loss);
  void end_outermost_call(ThreadCaptureState& thread);
  void remember_model_type(PyObject* module);
  bool drop_stale_calls(ThreadCaptureState& thread, PyObject* module);
  const KnownModule* find_or_resolve_module(PyObject* module, const ThreadCaptureState& thread);
  bool is_building_autograd_graph(const ThreadCaptureState& thread) const;
  bool attribute_nodes_of_value(ThreadCaptureState& thread, PyObject* value, std::uint32_t node, int nesting_depth);
  bool attribute_nodes_of_tensor(ThreadCaptureState& thread, PyObject* tensor, std::uint32_t node);
  PyObject* find_or_make_hook_tensor(std::uint32_t node);
  bool attribute_graph_nodes(ThreadCaptureState& thread, PyObject* grad_fn, std::uint32_t node,
                             bool& is_unattributed) const;

  std::vector<PyObject*> hook_tensors_;                // by node in ModuleScopes; owned
  std::optional<std::uint32_t> graph_capture_events_;  // none while no graph is captured
  bool is_step_sampled_ = false;
  bool is_step_traced_ = true;
};

}  // namespace joulemap::python
