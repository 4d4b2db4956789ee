// SPDX-License-Identifier: Apache-2.0
//
// ModuleCalls: what happens when a module of PyTorch is called and when it returns: the thread goes to the module's place,
// and the graph that autograd has built meanwhile is given to it.
//
// A node of that graph has a sequence number that grows with every node its thread makes. What lies above the last number
// that was given away, when a module is called, was made by the code around it; when it returns, by itself. The last node
// of each such stretch gets a hook that says whose it is; the backward pass enters the stretch there. No tensor is touched
// and no module is wrapped, so in-place modules are fine. The hook is registered through the dictionary of hooks of a tensor
// of our own (its carrier), one for a module: registering one by one takes ten times as long. PyTorch 2.0 does not tell
// numbers: there a node that was given away is marked, which is the same but for nodes that nobody was given in time.
//
// Under Python's GIL; one for a process, never destroyed. Functions that may raise give false then.
#pragma once

#include "loop_thread.h"
#include "module_table.h"
#include "place_names.h"

namespace joulemap::python {

// What is asked of PyTorch, and of our own Python files. Owned.
struct TorchFunctions {
  PyObject* tensor_type = nullptr;
  PyObject* is_grad_enabled = nullptr;
  PyObject* graph_task = nullptr;       // -> -1 outside of a backward pass
  PyObject* function_modes = nullptr;   // -> how many are active
  PyObject* is_transformed = nullptr;   // -> whether a trace or a transform is under way
  PyObject* is_running = nullptr;       // (module) -> whether it was being called before this call
  PyObject* resolve = nullptr;          // (module, outermost or None): names it
  PyObject* make_carrier = nullptr;     // (hook) -> a tensor that carries it
  PyObject* careful_grad_fn = nullptr;  // (tensor) -> its grad_fn, seen by no mode
  PyObject* on_step_state = nullptr;    // (is sampled, is followed): one of them has changed
  int numbers_nodes = 1;                // not 0: nodes of graphs tell their sequence numbers
};

class ModuleCalls {
 public:
  PlaceNames names;
  ModuleTable modules;
  TorchFunctions torch;
  bool follows = true;  // false: outermost calls only
  int own_function_modes = 0;
  std::vector<PyObject*> model_types;  // classes of modules that were called from outside of modules; owned

  bool called(PyObject* module, PyObject* inputs);
  bool returned(PyObject* module, PyObject* output);
  // Tells the loop's event, and our Python files when the step that begins is to be seen more or less closely.
  bool tell(int event);
  // True when a backward pass runs on this thread already.
  bool is_in_backward(bool& answer);
  void forget_in_child();

 private:
  bool begin_outermost(LoopThread& thread, const KnownModule& module);
  void end_outermost(LoopThread& thread);
  void keep_type(PyObject* module);
  bool drop_stale_calls(LoopThread& thread, PyObject* module);
  const KnownModule* known(PyObject* module, const LoopThread& thread);
  bool gives(const LoopThread& thread) const;
  bool give_away(LoopThread& thread, PyObject* value, std::uint32_t node, int nesting);
  bool give_tensor_away(LoopThread& thread, PyObject* tensor, std::uint32_t node);
  PyObject* carrier(std::uint32_t node);
  bool take_stretch(LoopThread& thread, PyObject* grad_fn, std::uint32_t node, bool& is_free) const;

  std::vector<PyObject*> carriers_;  // by node; owned
  bool is_sampled_ = false;
  bool is_followed_ = true;
};

}  // namespace joulemap::python
