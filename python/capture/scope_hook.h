// SPDX-License-Identifier: Apache-2.0
//
// Hook object that autograd calls when the backward pass reaches a module's interval of the graph, or an operation. The
// call enters that scope and returns None. It accepts any arguments, on any thread that holds the GIL.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <cstdint>

namespace joulemap::python {

// Creates the Python type. Returns false when Python has raised.
bool add_scope_hook_type(PyObject* module);

// Hook for the module of `node`.
PyObject* new_backward_hook(std::uint32_t node);
// Hook for an operation within it. Scope ids are invalid after a fork, so use such a hook only within a step.
PyObject* new_operation_hook(std::uint32_t node, const char* operation, const char* tensors);

}  // namespace joulemap::python
