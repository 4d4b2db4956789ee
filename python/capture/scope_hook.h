// SPDX-License-Identifier: Apache-2.0
//
// Hook object that autograd calls when the backward pass reaches a module's interval of the graph, or an operation. The
// call sets the thread's backward scope to that module or operation and returns None. It accepts any arguments, on any
// thread that holds the GIL.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <cstdint>

namespace joulemap::python {

// Creates the Python type of the hooks and adds it to `module`. Returns false when Python has raised.
bool add_scope_hook_type(PyObject* module);

// Returns a new hook for the module of `node` (in ModuleScopes); nullptr when Python has raised.
PyObject* new_backward_hook(std::uint32_t node);
// The same for an operation within that module; `tensors` (its inputs as text) may be null. The hook stores a scope id,
// which is invalid after a fork, so use the hook only within a step.
PyObject* new_operation_hook(std::uint32_t node, const char* operation, const char* tensors);

}  // namespace joulemap::python
