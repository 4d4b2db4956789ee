// SPDX-License-Identifier: Apache-2.0
//
// ModuleTable: maps PyTorch modules to their names (nodes of ModuleScopes). It holds weak references and writes nothing
// into modules, so that deleting, copying and pickling them works as usual. Requires the GIL; never destroyed.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <cstdint>
#include <unordered_map>

namespace joulemap::python {

struct KnownModule {
  std::uint32_t node = 0;  // in ModuleScopes
  bool is_loss = false;
  PyObject* reference = nullptr;  // weak reference
};

class ModuleTable {
 public:
  const KnownModule* find(PyObject* module) const {
    const auto found = modules_.find(module);
    return found == modules_.end() ? nullptr : &found->second;
  }

  // Names or renames a module. Python calls `on_module_deleted` with the weak reference when the module is deleted;
  // `on_module_deleted` must then call forget_module(). Returns false when Python has raised.
  bool name_module(PyObject* module, std::uint32_t node, bool is_loss, PyObject* on_module_deleted);
  void forget_module(PyObject* reference);

 private:
  std::unordered_map<PyObject*, KnownModule> modules_;
  std::unordered_map<PyObject*, PyObject*> modules_by_reference_;  // by weak reference
};

}  // namespace joulemap::python
