// SPDX-License-Identifier: Apache-2.0
#include "scope_hook.h"

#include "capture_state.h"

namespace joulemap::python {
namespace {

struct ScopeHook {
  PyObject_HEAD std::uint32_t node;
  jmc_scope operation;  // scope of an operation; 0: the module itself
};

// Never freed: the type is a Python object that outlives all hooks.
constinit PyTypeObject* scope_hook_type = nullptr;

PyObject* call_scope_hook(PyObject* self, PyObject*, PyObject*) {
  const auto* const hook = reinterpret_cast<ScopeHook*>(self);
  if (!capture_state().is_on) Py_RETURN_NONE;
  if (hook->operation != 0) {
    jmc_backward_operation(hook->operation);
  } else {
    jmc_set_backward_scope(capture_state().calls.names.scope(hook->node, Pass::backward));
  }
  Py_RETURN_NONE;
}

void dealloc_scope_hook(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyType_Slot kScopeHookSlots[] = {{Py_tp_call, reinterpret_cast<void*>(call_scope_hook)},
                                 {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_scope_hook)},
                                 {0, nullptr}};
PyType_Spec kScopeHookSpec = {"joulemap._capture.ScopeHook", sizeof(ScopeHook), 0, Py_TPFLAGS_DEFAULT, kScopeHookSlots};

PyObject* new_scope_hook(std::uint32_t node, jmc_scope operation) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(scope_hook_type, Py_tp_alloc));
  PyObject* const made = allocate(scope_hook_type, 0);
  if (made == nullptr) return nullptr;
  reinterpret_cast<ScopeHook*>(made)->node = node;
  reinterpret_cast<ScopeHook*>(made)->operation = operation;
  return made;
}

}  // namespace

bool add_scope_hook_type(PyObject* module) {
  PyObject* const type = PyType_FromSpec(&kScopeHookSpec);
  if (type == nullptr) return false;
  scope_hook_type = reinterpret_cast<PyTypeObject*>(type);
  Py_INCREF(type);
  return PyModule_AddObject(module, "ScopeHook", type) == 0;
}

PyObject* new_backward_hook(std::uint32_t node) { return new_scope_hook(node, 0); }

PyObject* new_operation_hook(std::uint32_t node, const char* operation, const char* tensors) {
  const jmc_scope scope = jmc_child_scope(capture_state().calls.names.scope(node, Pass::backward), JMC_OP, operation);
  return new_scope_hook(node, tensors == nullptr ? scope : jmc_child_scope(scope, JMC_TENSORS, tensors));
}

}  // namespace joulemap::python
