// SPDX-License-Identifier: Apache-2.0
#include "module_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "scope_hook.h"

namespace joulemap::python {
namespace {

// Limits of the search for tensors in the inputs and outputs of modules, which may be nested lists or dictionaries.
constexpr int kMaxTensorNesting = 3;
constexpr Py_ssize_t kMaxValues = 256;
// Limit of stored model classes. In untraced steps only calls of these classes are captured; a program that creates
// dozens of classes gets less detail instead of using more memory.
constexpr std::size_t kMaxModelTypes = 32;
// Limit of the outermost modules that are distinguished; a call of a further one counts as that of a known one.
constexpr std::size_t kMaxOutermostModules = 64;

bool contains(const std::vector<std::uint32_t>& nodes, std::uint32_t node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

void add_node(std::vector<std::uint32_t>& nodes, std::uint32_t node) {
  if (nodes.size() < kMaxOutermostModules && !contains(nodes, node)) nodes.push_back(node);
}

constexpr std::uint32_t event_bit(int event) { return std::uint32_t{1} << static_cast<unsigned>(event); }
constexpr std::uint32_t kTrainingCallEvents =
    event_bit(JMC_FORWARD_TRAIN) | event_bit(JMC_FORWARD_TRAIN_AFTER_INFER) | event_bit(JMC_FORWARD_TRAIN_OTHER);

// An owned reference, released at the end of its scope.
class OwnedReference {
 public:
  explicit OwnedReference(PyObject* object) : object_(object) {}
  ~OwnedReference() { Py_XDECREF(object_); }
  OwnedReference(const OwnedReference&) = delete;
  OwnedReference& operator=(const OwnedReference&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

// Each attribute name is interned once: interning takes longer than everything else here.
PyObject* intern_attribute_name(const char* text) { return PyUnicode_InternFromString(text); }

bool call_and_convert_to_integer(PyObject* function, long long& answer) {
  const OwnedReference result(PyObject_CallObject(function, nullptr));
  if (!result) return false;
  answer = PyLong_AsLongLong(result.get());
  return answer != -1 || PyErr_Occurred() == nullptr;
}

bool call_and_convert_to_bool(PyObject* function, bool& answer) {
  const OwnedReference result(PyObject_CallObject(function, nullptr));
  if (!result) return false;
  const int truth = PyObject_IsTrue(result.get());
  answer = truth == 1;
  return truth >= 0;
}

}  // namespace

bool ModuleCalls::is_in_backward(bool& answer) {
  long long task = -1;
  if (!call_and_convert_to_integer(torch_functions.graph_task_id, task)) return false;
  answer = task != -1;
  return true;
}

bool ModuleCalls::on_training_loop_event(int event, bool* begins_step) {
  if (graph_capture_events_) *graph_capture_events_ |= event_bit(event);
  const bool is_new_step = jmc_on_event(event) == 1;
  if (begins_step != nullptr) *begins_step = is_new_step;
  return follow_step(is_new_step);
}

bool ModuleCalls::on_loader_event(int event, std::uint64_t iterator) {
  return follow_step(jmc_on_loader_event(event, iterator) == 1);
}

bool ModuleCalls::follow_step(bool is_new_step) {
  if (is_new_step) ThreadCaptureState::of_this_thread().nodes_trained_in_step.clear();
  const bool sampled = jmc_step_is_sampled() != 0;
  const bool traced = jmc_step_is_traced() != 0;
  if (sampled == is_step_sampled_ && traced == is_step_traced_) return true;
  is_step_sampled_ = sampled;
  is_step_traced_ = traced;
  const OwnedReference result(PyObject_CallFunction(torch_functions.on_step_sampling_change, "ii",
                                                    static_cast<int>(sampled), static_cast<int>(traced)));
  return static_cast<bool>(result);
}

void ModuleCalls::begin_graph_capture() {
  if (ThreadCaptureState::of_this_thread().is_outside_modules()) graph_capture_events_ = 0;
}

std::uint32_t ModuleCalls::end_graph_capture() {
  return std::exchange(graph_capture_events_, std::nullopt).value_or(0);
}

bool ModuleCalls::begin_graph_replay(std::uint32_t events) {
  if (!ThreadCaptureState::of_this_thread().is_outside_modules()) return true;
  if ((events & kTrainingCallEvents) != 0) {
    if (!on_training_loop_event(JMC_FORWARD_TRAIN)) return false;
  } else if ((events & (event_bit(JMC_FORWARD_INFER) | event_bit(JMC_FORWARD_INFER_TEACHER))) != 0 &&
             !on_training_loop_event(JMC_FORWARD_INFER)) {
    return false;
  }
  return (events & event_bit(JMC_BACKWARD)) == 0 || on_training_loop_event(JMC_BACKWARD);
}

bool ModuleCalls::end_graph_replay(std::uint32_t events) {
  return (events & event_bit(JMC_OPTIMIZER_DONE)) == 0 || on_training_loop_event(JMC_OPTIMIZER_DONE);
}

const KnownModule* ModuleCalls::find_or_resolve_module(PyObject* module, const ThreadCaptureState& thread) {
  if (const KnownModule* const found = modules.find(module)) return found;
  PyObject* outermost = thread.is_outside_modules() ? Py_None : thread.calls[thread.first_call_index].module;
  if (modules.find(outermost) == nullptr) outermost = Py_None;  // stale after an interrupt; its module was deleted
  const OwnedReference result(PyObject_CallFunctionObjArgs(torch_functions.resolve_module, module, outermost, nullptr));
  return result ? modules.find(module) : nullptr;
}

bool ModuleCalls::begin_outermost_call(ThreadCaptureState& thread, std::uint32_t node, bool is_loss) {
  bool recomputes = false;
  bool is_in_transformed_call = false;
  bool gradients = false;
  long long function_mode_count = 0;
  if (!is_in_backward(recomputes) || !call_and_convert_to_bool(torch_functions.is_in_transform, is_in_transformed_call))
    return false;
  if (!call_and_convert_to_bool(torch_functions.is_grad_enabled, gradients) ||
      !call_and_convert_to_integer(torch_functions.function_mode_count, function_mode_count))
    return false;
  thread.is_outermost_call_unrecorded = is_in_transformed_call;
  thread.must_hide_grad_fn_reads = function_mode_count > own_function_mode_count;
  if (is_in_transformed_call) return true;
  if (recomputes) {
    thread.pass = Pass::recompute;
    return true;
  }
  thread.end_phase_gap();
  thread.mode = gradients ? ModelMode::train : ModelMode::inference;
  thread.pass = gradients ? (is_loss ? Pass::loss : Pass::forward) : (is_loss ? Pass::inference_loss : Pass::inference);
  if (is_loss) return true;
  const std::optional<std::uint32_t> inference_node = gradients ? std::nullopt : std::optional(node);
  const std::optional<std::uint32_t> previous_inference_node =
      std::exchange(thread.last_inference_node, inference_node);
  const bool follows_inference = previous_inference_node == node;
  if (!gradients) {
    // Several calls of a teacher in a row are an evaluation of it.
    const bool begins_as_teacher = contains(thread.teacher_nodes, node) && !contains(thread.trained_nodes, node) &&
                                   previous_inference_node != node;
    return on_training_loop_event(begins_as_teacher ? JMC_FORWARD_INFER_TEACHER : JMC_FORWARD_INFER);
  }
  add_node(thread.trained_nodes, node);
  std::vector<std::uint32_t>& called = thread.nodes_trained_in_step;
  const bool is_first_call = !contains(called, node);
  const bool is_other = is_first_call && !called.empty() && called.size() < kMaxOutermostModules;
  const int event = is_other ? JMC_FORWARD_TRAIN_OTHER : JMC_FORWARD_TRAIN;
  bool begins_step = false;
  if (!on_training_loop_event(follows_inference ? JMC_FORWARD_TRAIN_AFTER_INFER : event, &begins_step)) return false;
  if (previous_inference_node && !follows_inference && !begins_step)
    add_node(thread.teacher_nodes, *previous_inference_node);
  if (called.empty() || (is_first_call && called.size() < kMaxOutermostModules)) called.push_back(node);
  return true;
}

void ModuleCalls::end_outermost_call(ThreadCaptureState& thread) {
  if (thread.is_outermost_call_unrecorded || thread.pass == Pass::recompute) return;
  if (thread.pass == Pass::forward || thread.pass == Pass::inference) jmc_on_event(JMC_FORWARD_DONE);
  const bool gradients = thread.pass == Pass::forward || thread.pass == Pass::loss;
  if (gradients && thread.has_run_backward) thread.begin_phase_gap(names.scope(0, Pass::loss));
}

void ModuleCalls::remember_model_type(PyObject* module) {
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(module));
  if (model_types.size() >= kMaxModelTypes) return;
  if (std::find(model_types.begin(), model_types.end(), type) != model_types.end()) return;
  Py_INCREF(type);
  model_types.push_back(type);
}

// An interrupt (Ctrl-C) ends module calls without running their hooks. The stale calls are detected here, at the next
// call of the outermost module.
bool ModuleCalls::drop_stale_calls(ThreadCaptureState& thread, PyObject* module) {
  if (thread.is_outside_modules() || thread.calls[thread.first_call_index].module != module) return true;
  const OwnedReference result(PyObject_CallFunctionObjArgs(torch_functions.is_running, module, nullptr));
  if (!result) return false;
  if (PyObject_IsTrue(result.get()) == 1) return true;
  jmc_leave_to(thread.calls[thread.first_call_index].depth);
  thread.calls.resize(thread.first_call_index);
  return true;
}

bool ModuleCalls::on_call(PyObject* module, PyObject* inputs) {
  ThreadCaptureState& thread = ThreadCaptureState::of_this_thread();
  if (!drop_stale_calls(thread, module)) return false;
  const bool is_outside_modules = thread.is_outside_modules();
  if (!is_outside_modules && (!traces_modules || thread.is_outermost_call_unrecorded)) return true;
  const KnownModule* const found = find_or_resolve_module(module, thread);
  if (found == nullptr) return PyErr_Occurred() == nullptr;
  const std::uint32_t node = found->node;
  if (is_outside_modules) {
    if (!found->is_loss) remember_model_type(module);
    if (!begin_outermost_call(thread, node, found->is_loss)) return false;
  }
  if (thread.is_outermost_call_unrecorded) {
    thread.calls.push_back({module, jmc_depth(), node, false});
    return true;
  }
  const std::uint32_t enclosing_node = thread.innermost_module_node();
  if (is_building_autograd_graph(thread) && !attribute_nodes_of_value(thread, inputs, enclosing_node, 0)) return false;
  const bool enters_scope = is_outside_modules || enclosing_node != node;
  // While modules are untraced, their time cannot be separated from the model's own; all of it belongs to the phase.
  const std::size_t depth = enters_scope ? jmc_enter(names.scope(traces_modules ? node : 0, thread.pass)) : jmc_depth();
  thread.calls.push_back({module, depth, node, enters_scope});
  return true;
}

// An interrupt (Ctrl-C), which hooks do not see, leaves stale calls above the returning one; they are dropped.
bool ModuleCalls::on_return(PyObject* module, PyObject* output) {
  ThreadCaptureState& thread = ThreadCaptureState::of_this_thread();
  std::size_t at = thread.calls.size();
  while (at > thread.first_call_index && thread.calls[at - 1].module != module) --at;
  if (at <= thread.first_call_index) return true;
  const ModuleCall call = thread.calls[at - 1];
  const bool attributed = !is_building_autograd_graph(thread) || attribute_nodes_of_value(thread, output, call.node, 0);
  thread.calls.resize(at - 1);
  if (call.has_entered_scope) jmc_leave_to(call.depth);
  if (thread.is_outside_modules()) end_outermost_call(thread);
  return attributed;
}

// Whether the current pass builds an autograd graph whose nodes are attributed to modules.
bool ModuleCalls::is_building_autograd_graph(const ThreadCaptureState& thread) const {
  return traces_modules && !thread.is_outermost_call_unrecorded && thread.pass != Pass::inference &&
         thread.pass != Pass::inference_loss;
}

PyObject* ModuleCalls::find_or_make_hook_tensor(std::uint32_t node) {
  if (node >= hook_tensors_.size()) hook_tensors_.resize(node + std::size_t{1});
  if (hook_tensors_[node] == nullptr) {
    const OwnedReference hook(new_backward_hook(node));
    if (!hook) return nullptr;
    PyObject* const made = PyObject_CallFunctionObjArgs(torch_functions.make_hook_tensor, hook.get(), nullptr);
    hook_tensors_[node] = made;
  }
  return hook_tensors_[node];
}

namespace {

// Marks an autograd node as attributed, and sets is_new to whether it was unmarked. Returns false when Python has
// raised.
bool mark_autograd_node(PyObject* grad_fn, bool& is_new) {
  static PyObject* const kMetadataAttribute = intern_attribute_name("metadata");
  static PyObject* const kAttributedMarkKey = intern_attribute_name("joulemap");
  const OwnedReference metadata(PyObject_GetAttr(grad_fn, kMetadataAttribute));
  if (!metadata) return false;
  const int found = PyDict_Contains(metadata.get(), kAttributedMarkKey);
  is_new = found == 0;
  return found >= 0 && (!is_new || PyDict_SetItem(metadata.get(), kAttributedMarkKey, Py_True) == 0);
}

}  // namespace

// Attributes the autograd nodes up to grad_fn to the module of `node` unless they are already attributed; sets
// is_unattributed to whether they were not.
bool ModuleCalls::attribute_graph_nodes(ThreadCaptureState& thread, PyObject* grad_fn, std::uint32_t node,
                                        bool& is_unattributed) const {
  static PyObject* const kSequenceNumberAttribute = intern_attribute_name("_sequence_nr");
  if (torch_functions.has_sequence_numbers == 0) return mark_autograd_node(grad_fn, is_unattributed);
  const OwnedReference number(PyObject_CallMethodObjArgs(grad_fn, kSequenceNumberAttribute, nullptr));
  if (!number) return false;
  const unsigned long long sequence = PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred() != nullptr) return false;
  // Autograd nodes without a sequence number (AccumulateGrad) report UINT64_MAX.
  is_unattributed = sequence >= thread.first_unattributed_sequence_number && sequence < UINT64_MAX / 2;
  if (!is_unattributed) return true;
  thread.first_unattributed_sequence_number = sequence + 1;
  if (thread.keeps_node_intervals) thread.node_intervals.emplace_back(sequence, node);
  return true;
}

bool ModuleCalls::attribute_nodes_of_tensor(ThreadCaptureState& thread, PyObject* tensor, std::uint32_t node) {
  static PyObject* const kGradFnAttribute = intern_attribute_name("grad_fn");
  static PyObject* const kRegisterHookDictAttribute = intern_attribute_name("_register_hook_dict");
  const bool can_read_grad_fn_directly =
      !thread.must_hide_grad_fn_reads && reinterpret_cast<PyObject*>(Py_TYPE(tensor)) == torch_functions.tensor_type;
  const OwnedReference grad_fn(
      can_read_grad_fn_directly
          ? PyObject_GetAttr(tensor, kGradFnAttribute)
          : PyObject_CallFunctionObjArgs(torch_functions.read_grad_fn_bypassing_modes, tensor, nullptr));
  if (!grad_fn) return false;
  if (grad_fn.get() == Py_None) return true;
  bool is_unattributed = false;
  if (!attribute_graph_nodes(thread, grad_fn.get(), node, is_unattributed)) return false;
  if (!is_unattributed) return true;
  PyObject* const hooks = find_or_make_hook_tensor(node);
  if (hooks == nullptr) return false;
  const OwnedReference done(PyObject_CallMethodObjArgs(grad_fn.get(), kRegisterHookDictAttribute, hooks, nullptr));
  return static_cast<bool>(done);
}

bool ModuleCalls::attribute_nodes_of_value(ThreadCaptureState& thread, PyObject* value, std::uint32_t node,
                                           int nesting_depth) {
  if (value == Py_None || nesting_depth > kMaxTensorNesting) return true;
  if (PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject*>(torch_functions.tensor_type)) != 0) {
    return attribute_nodes_of_tensor(thread, value, node);
  }
  if (PyTuple_Check(value)) {
    const Py_ssize_t size = PyTuple_Size(value);
    for (Py_ssize_t i = 0; i < size && i < kMaxValues; ++i) {
      if (!attribute_nodes_of_value(thread, PyTuple_GetItem(value, i), node, nesting_depth + 1)) return false;
    }
  } else if (PyList_Check(value)) {
    const Py_ssize_t size = PyList_Size(value);
    for (Py_ssize_t i = 0; i < size && i < kMaxValues; ++i) {
      if (!attribute_nodes_of_value(thread, PyList_GetItem(value, i), node, nesting_depth + 1)) return false;
    }
  } else if (PyDict_Check(value)) {
    PyObject* key = nullptr;
    PyObject* held = nullptr;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < kMaxValues && PyDict_Next(value, &at, &key, &held) != 0; ++i) {
      if (!attribute_nodes_of_value(thread, held, node, nesting_depth + 1)) return false;
    }
  } else if (nesting_depth == 0 && PyObject_HasAttrString(value, "__dataclass_fields__") != 0) {
    const OwnedReference fields(PyObject_GetAttrString(value, "__dict__"));
    if (fields) return attribute_nodes_of_value(thread, fields.get(), node, nesting_depth + 1);
    PyErr_Clear();  // a dataclass with slots has no __dict__
  }
  return true;
}

void ModuleCalls::reset_after_fork() {
  names.forget_scopes();
  is_step_sampled_ = false;
  ThreadCaptureState::of_this_thread().reset_except_mode();
}

}  // namespace joulemap::python
