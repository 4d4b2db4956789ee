// SPDX-License-Identifier: Apache-2.0
//
// joulemap._capture: wrapper of libjoulemap_capture.so for the hooks that `joulemap record` installs in a Python
// program, on Python's stable ABI. The code on the path of every module call is here (python/capture/), the rest in
// _torch_*.py. The GIL is held throughout.
//
// Nothing here may break the measured program: an error in the capture is reported once (capture_failed) and disables
// the capture of modules. Interrupts (KeyboardInterrupt) propagate to the program.
#include "../capture/capture_state.h"
#include "../capture/scope_hook.h"

using joulemap::python::capture_state;
using joulemap::python::ModelMode;
using joulemap::python::ModuleCalls;
using joulemap::python::Pass;
using joulemap::python::ThreadCaptureState;
using joulemap::python::TorchFunctions;

namespace {

// Python callback of the weak references to modules, called when a module is deleted; outlives all modules.
constinit PyObject* on_module_deleted = nullptr;

ModuleCalls& module_calls() { return capture_state().calls; }

void report_capture_failure() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* const text = value == nullptr ? nullptr : PyObject_Repr(value);
  PyObject* const bytes = text == nullptr ? nullptr : PyUnicode_AsUTF8String(text);
  jmc_diagnose("capture_failed", bytes == nullptr ? "module capture failed" : PyBytes_AsString(bytes),
               "modules are not captured from here on; please report this");
  PyErr_Clear();
  for (PyObject* const object : {type, value, traceback, text, bytes}) Py_XDECREF(object);
}

// Turns the capture off and leaves all scopes of this thread, because no later hook would leave them.
void stop_capture() {
  capture_state().is_on = false;
  ThreadCaptureState::of_this_thread().leave_all_scopes();
}

// Return value of a hook: None, or nullptr when an interrupt of the program is pending.
PyObject* make_hook_result(bool went_well) {
  if (!went_well) {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0) return nullptr;
    stop_capture();
    report_capture_failure();
  }
  Py_RETURN_NONE;
}

PyObject* on_module_call(PyObject*, PyObject* args) {
  if (!capture_state().is_on || PyTuple_Size(args) < 2) Py_RETURN_NONE;
  return make_hook_result(module_calls().on_call(PyTuple_GetItem(args, 0), PyTuple_GetItem(args, 1)));
}

PyObject* on_module_return(PyObject*, PyObject* args) {
  if (!capture_state().is_on || PyTuple_Size(args) < 3) Py_RETURN_NONE;
  return make_hook_result(module_calls().on_return(PyTuple_GetItem(args, 0), PyTuple_GetItem(args, 2)));
}

PyObject* set_up_module_capture(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"tensor_type",
                                "is_grad_enabled",
                                "graph_task_id",
                                "function_mode_count",
                                "is_in_transform",
                                "is_running",
                                "resolve",
                                "make_hook_tensor",
                                "read_grad_fn_bypassing_modes",
                                "on_step_sampling_change",
                                "has_sequence_numbers",
                                nullptr};
  TorchFunctions f;
  PyObject** const slots[] = {&f.tensor_type,
                              &f.is_grad_enabled,
                              &f.graph_task_id,
                              &f.function_mode_count,
                              &f.is_in_transform,
                              &f.is_running,
                              &f.resolve_module,
                              &f.make_hook_tensor,
                              &f.read_grad_fn_bypassing_modes,
                              &f.on_step_sampling_change};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOOOOp", const_cast<char**>(names), slots[0], slots[1], slots[2],
                                   slots[3], slots[4], slots[5], slots[6], slots[7], slots[8], slots[9],
                                   &f.has_sequence_numbers)) {
    return nullptr;
  }
  for (PyObject** const function : slots) Py_INCREF(*function);
  module_calls().torch_functions = f;
  capture_state().is_on = jmc_is_recording() != 0;
  return PyBool_FromLong(capture_state().is_on);
}

PyObject* find_or_add_module_node(PyObject*, PyObject* args) {
  unsigned parent = 0;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "Is", &parent, &name)) return nullptr;
  if (!module_calls().names.has_node(parent)) return PyErr_Format(PyExc_ValueError, "no node %u", parent);
  return PyLong_FromUnsignedLong(module_calls().names.find_or_add_module_node(parent, name));
}

PyObject* name_module(PyObject*, PyObject* args) {
  PyObject* module = nullptr;
  unsigned node = 0;
  int is_loss = 0;
  if (!PyArg_ParseTuple(args, "OIp", &module, &node, &is_loss)) return nullptr;
  if (!module_calls().modules.name_module(module, node, is_loss != 0, on_module_deleted)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* find_module_node(PyObject*, PyObject* module) {
  const auto* const known = module_calls().modules.find(module);
  return PyLong_FromLong(known == nullptr ? -1 : static_cast<long>(known->node));
}

PyObject* forget_module(PyObject*, PyObject* reference) {
  module_calls().modules.forget_module(reference);
  Py_RETURN_NONE;
}

// phase_begin(phase, module or None, mode): enters a phase. Returns the depth that phase_end takes.
PyObject* phase_begin(PyObject*, PyObject* args) {
  const char* phase = nullptr;
  const char* module = nullptr;
  int mode = 0;
  if (!PyArg_ParseTuple(args, "sz|i", &phase, &module, &mode)) return nullptr;
  ThreadCaptureState& thread = ThreadCaptureState::of_this_thread();
  thread.end_phase_gap();
  if (mode != 0) thread.mode = mode == 1 ? ModelMode::train : ModelMode::inference;
  jmc_scope scope = phase_scope(thread.mode, phase);
  if (module != nullptr) scope = jmc_child_scope(scope, JMC_MODULE, module);
  return PyLong_FromSize_t(jmc_enter(scope));
}

PyObject* leave_to(PyObject*, PyObject* depth) {
  const size_t value = PyLong_AsSize_t(depth);
  if (value == static_cast<size_t>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  jmc_leave_to(value);
  Py_RETURN_NONE;
}

// Enters the interval from the end of one phase to the beginning of the next, in a program that trains.
PyObject* begin_phase_gap(PyObject*, PyObject* args) {
  const char* phase = nullptr;
  if (!PyArg_ParseTuple(args, "s", &phase)) return nullptr;
  ThreadCaptureState& thread = ThreadCaptureState::of_this_thread();
  if (thread.has_run_backward && thread.is_outside_modules()) thread.begin_phase_gap(phase_scope(thread.mode, phase));
  Py_RETURN_NONE;
}

PyObject* end_phase_gap(PyObject*, PyObject*) {
  ThreadCaptureState::of_this_thread().end_phase_gap();
  Py_RETURN_NONE;
}

PyObject* on_event(PyObject*, PyObject* event) {
  const long value = PyLong_AsLong(event);
  if (value == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (!capture_state().is_on) Py_RETURN_NONE;
  return make_hook_result(module_calls().on_training_loop_event(static_cast<int>(value)));
}

PyObject* on_loader_event(PyObject*, PyObject* args) {
  int event = 0;
  unsigned long long iterator = 0;
  if (!PyArg_ParseTuple(args, "iK", &event, &iterator)) return nullptr;
  if (!capture_state().is_on) Py_RETURN_NONE;
  return make_hook_result(module_calls().on_loader_event(event, iterator));
}

PyObject* begin_graph_capture(PyObject*, PyObject*) {
  module_calls().begin_graph_capture();
  Py_RETURN_NONE;
}

PyObject* end_graph_capture(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLong(module_calls().end_graph_capture());
}

template <bool (ModuleCalls::*kReplayEvent)(std::uint32_t)>
PyObject* on_graph_replay(PyObject*, PyObject* events) {
  const unsigned long event_bits = PyLong_AsUnsignedLong(events);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return make_hook_result((module_calls().*kReplayEvent)(static_cast<std::uint32_t>(event_bits)));
}

PyObject* backward_begin(PyObject*, PyObject*) {
  ThreadCaptureState& thread = ThreadCaptureState::of_this_thread();
  bool is_nested = false;
  if (!module_calls().is_in_backward(is_nested)) return nullptr;
  thread.has_run_backward = true;
  if (!is_nested && !module_calls().on_training_loop_event(JMC_BACKWARD)) return nullptr;
  thread.begin_backward_pass(module_calls().names.scope(0, Pass::backward));
  return PyBool_FromLong(is_nested);
}

PyObject* backward_end(PyObject*, PyObject*) {
  ThreadCaptureState::of_this_thread().end_backward_pass();
  Py_RETURN_NONE;
}

PyObject* enter_child_scope(PyObject*, PyObject* args) {
  int kind = 0;
  const char* name = nullptr;
  const char* tensors = nullptr;
  if (!PyArg_ParseTuple(args, "is|z", &kind, &name, &tensors)) return nullptr;
  const jmc_scope scope = jmc_child_scope(jmc_current_scope(), kind, name);
  return PyLong_FromSize_t(jmc_enter(tensors == nullptr ? scope : jmc_child_scope(scope, JMC_TENSORS, tensors)));
}

// Starts (True) or stops recording which autograd nodes each module creates: pairs of the sequence number of its last
// node and the number of the module. Used in sampled steps only.
PyObject* set_node_interval_recording(PyObject*, PyObject* keep) {
  ThreadCaptureState& thread = ThreadCaptureState::of_this_thread();
  thread.keeps_node_intervals = PyObject_IsTrue(keep) == 1;
  thread.node_intervals.clear();
  Py_RETURN_NONE;
}

PyObject* node_intervals(PyObject*, PyObject*) {
  PyObject* const list = PyList_New(0);
  for (const auto& [sequence, node] : ThreadCaptureState::of_this_thread().node_intervals) {
    PyObject* const pair =
        list == nullptr ? nullptr : Py_BuildValue("KI", static_cast<unsigned long long>(sequence), node);
    if (pair == nullptr || PyList_Append(list, pair) != 0) {
      Py_XDECREF(pair);
      Py_XDECREF(list);
      return nullptr;
    }
    Py_DECREF(pair);
  }
  return list;
}

PyObject* make_operation_hook(PyObject*, PyObject* args) {
  unsigned node = 0;
  const char* operation = nullptr;
  const char* tensors = nullptr;
  if (!PyArg_ParseTuple(args, "Is|z", &node, &operation, &tensors)) return nullptr;
  if (!module_calls().names.has_node(node)) return PyErr_Format(PyExc_ValueError, "no node %u", node);
  return joulemap::python::new_operation_hook(node, operation, tensors);
}

PyObject* set_submodule_tracing(PyObject*, PyObject* traced) {
  module_calls().traces_modules = PyObject_IsTrue(traced) == 1;
  Py_RETURN_NONE;
}

PyObject* model_types(PyObject*, PyObject*) {
  PyObject* const list = PyList_New(0);
  for (PyObject* const type : module_calls().model_types) {
    if (list == nullptr || PyList_Append(list, type) != 0) {
      Py_XDECREF(list);
      return nullptr;
    }
  }
  return list;
}

PyObject* set_own_function_mode_count(PyObject*, PyObject* count) {
  module_calls().own_function_mode_count = static_cast<int>(PyLong_AsLong(count));
  Py_RETURN_NONE;
}

PyObject* metric(PyObject*, PyObject* args) {
  const char* name = nullptr;
  double value = 0;
  long long time_ns = 0;
  if (!PyArg_ParseTuple(args, "sd|L", &name, &value, &time_ns)) return nullptr;
  jmc_metric(name, value, time_ns);
  Py_RETURN_NONE;
}

PyObject* diagnose(PyObject*, PyObject* args) {
  const char *code = nullptr, *message = nullptr, *remedy = nullptr;
  if (!PyArg_ParseTuple(args, "sss", &code, &message, &remedy)) return nullptr;
  jmc_diagnose(code, message, remedy);
  Py_RETURN_NONE;
}

PyObject* fact(PyObject*, PyObject* args) {
  const char *name = nullptr, *value = nullptr;
  if (!PyArg_ParseTuple(args, "ss", &name, &value)) return nullptr;
  jmc_fact(name, value);
  Py_RETURN_NONE;
}

PyObject* function_sample(PyObject*, PyObject* args) {
  const char* name = nullptr;
  long long time_ns = 0;
  if (!PyArg_ParseTuple(args, "sL", &name, &time_ns)) return nullptr;
  jmc_function_sample(name, time_ns);
  Py_RETURN_NONE;
}

template <void (*Set)(int)>
PyObject* set_capture_flag(PyObject*, PyObject* on) {
  Set(PyObject_IsTrue(on) == 1 ? 1 : 0);
  Py_RETURN_NONE;
}

PyObject* disable_capture(PyObject*, PyObject*) {
  stop_capture();
  Py_RETURN_NONE;
}

PyObject* set_capture_enabled(PyObject*, PyObject* on) {
  if (PyObject_IsTrue(on) != 1) {
    stop_capture();
  } else {
    capture_state().is_on = jmc_is_recording() != 0;
  }
  Py_RETURN_NONE;
}

PyObject* reset_after_fork(PyObject*, PyObject*) {
  module_calls().reset_after_fork();
  Py_RETURN_NONE;
}

PyObject* finish(PyObject*, PyObject*) {
  jmc_finish();
  Py_RETURN_NONE;
}

PyObject* current_scope(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(jmc_current_scope()); }
PyObject* depth(PyObject*, PyObject*) { return PyLong_FromSize_t(jmc_depth()); }
PyObject* is_on(PyObject*, PyObject*) { return PyBool_FromLong(capture_state().is_on); }
PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(jmc_is_recording()); }

template <class Function>
PyCFunction cast_to_pycfunction(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef kExtensionFunctions[] = {
    {"set_up_module_capture", cast_to_pycfunction(set_up_module_capture), METH_VARARGS | METH_KEYWORDS,
     "Sets PyTorch functions to call; enables module capture."},
    {"on_module_call", on_module_call, METH_VARARGS, "on_module_call(module, inputs)"},
    {"on_module_return", on_module_return, METH_VARARGS, "on_module_return(module, inputs, output)"},
    {"find_or_add_module_node", find_or_add_module_node, METH_VARARGS, "find_or_add_module_node(node, name) -> node"},
    {"name_module", name_module, METH_VARARGS, "name_module(module, node, is_loss)"},
    {"find_module_node", find_module_node, METH_O, "find_module_node(module) -> node, or -1"},
    {"phase_begin", phase_begin, METH_VARARGS, "phase_begin(phase, module or None, mode = 0) -> depth for leave_to"},
    {"leave_to", leave_to, METH_O, "leave_to(depth)"},
    {"begin_phase_gap", begin_phase_gap, METH_VARARGS, "begin_phase_gap(phase)"},
    {"end_phase_gap", end_phase_gap, METH_NOARGS, nullptr},
    {"on_event", on_event, METH_O, "on_event(event)"},
    {"on_loader_event", on_loader_event, METH_VARARGS, "on_loader_event(event, number of the iterator)"},
    {"begin_graph_capture", begin_graph_capture, METH_NOARGS, "Collects loop events until end_graph_capture()."},
    {"end_graph_capture", end_graph_capture, METH_NOARGS, "end_graph_capture() -> bits of the events"},
    {"begin_graph_replay", on_graph_replay<&ModuleCalls::begin_graph_replay>, METH_O, "begin_graph_replay(events)"},
    {"end_graph_replay", on_graph_replay<&ModuleCalls::end_graph_replay>, METH_O, "end_graph_replay(events)"},
    {"backward_begin", backward_begin, METH_NOARGS, "backward_begin() -> whether it runs within another"},
    {"backward_end", backward_end, METH_NOARGS, nullptr},
    {"enter_child_scope", enter_child_scope, METH_VARARGS,
     "enter_child_scope(kind, name, tensors=None) -> depth for leave_to"},
    {"set_node_interval_recording", set_node_interval_recording, METH_O, "set_node_interval_recording(whether)"},
    {"node_intervals", node_intervals, METH_NOARGS, "node_intervals() -> [(sequence number, node)]"},
    {"make_operation_hook", make_operation_hook, METH_VARARGS,
     "make_operation_hook(node, operation, tensors=None) -> callable"},
    {"set_submodule_tracing", set_submodule_tracing, METH_O, "Enables or disables tracing of submodules."},
    {"model_types", model_types, METH_NOARGS, "Classes of outermost modules."},
    {"set_own_function_mode_count", set_own_function_mode_count, METH_O,
     "Sets the number of active function modes that belong to joulemap."},
    {"metric", metric, METH_VARARGS, "metric(name, value, time_ns = 0)"},
    {"diagnose", diagnose, METH_VARARGS, "diagnose(code, message, remedy)"},
    {"fact", fact, METH_VARARGS, "fact(name, value)"},
    {"function_sample", function_sample, METH_VARARGS, "function_sample(name, time_ns)"},
    {"set_joulemap_work", set_capture_flag<jmc_own_work>, METH_O, nullptr},
    {"allow_cupti_detach", set_capture_flag<jmc_allow_cupti_detach>, METH_O, nullptr},
    {"set_other_profiler", set_capture_flag<jmc_other_profiler>, METH_O, nullptr},
    {"disable_capture", disable_capture, METH_NOARGS, nullptr},
    {"set_capture_enabled", set_capture_enabled, METH_O, "Enables or disables capture of module calls."},
    {"reset_after_fork", reset_after_fork, METH_NOARGS, nullptr},
    {"finish", finish, METH_NOARGS, nullptr},
    {"current_scope", current_scope, METH_NOARGS, nullptr},
    {"depth", depth, METH_NOARGS, nullptr},
    {"is_on", is_on, METH_NOARGS, nullptr},
    {"is_recording", is_recording, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef kForgetModuleMethod = {"forget_module", forget_module, METH_O, nullptr};
PyModuleDef kExtensionModule = {
    PyModuleDef_HEAD_INIT, "_capture", nullptr, -1, kExtensionFunctions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__capture(void) {
  PyObject* const module = PyModule_Create(&kExtensionModule);
  if (module == nullptr) return nullptr;
  on_module_deleted = PyCFunction_New(&kForgetModuleMethod, nullptr);
  if (on_module_deleted != nullptr && joulemap::python::add_scope_hook_type(module)) return module;
  Py_DECREF(module);
  return nullptr;
}
