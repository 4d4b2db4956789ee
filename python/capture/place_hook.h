// SPDX-License-Identifier: Apache-2.0
//
// What autograd calls when the backward pass comes to a module's stretch of the graph, or to an operation: an object whose
// call says so and returns None. It may be called with anything, by any thread that holds the GIL.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <cstdint>

namespace joulemap::python {

// Makes the type. False when Python has raised.
bool add_place_hook_type(PyObject* module);

// Of the module that node names.
PyObject* new_backward_hook(std::uint32_t node);
// Of an operation within it. Places die with a fork; such a hook is used within a step.
PyObject* new_operation_hook(std::uint32_t node, const char* operation, const char* tensors);

}  // namespace joulemap::python
