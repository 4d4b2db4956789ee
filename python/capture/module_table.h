// SPDX-License-Identifier: Apache-2.0
//
// ModuleTable: which name a module of PyTorch has. It holds modules weakly and writes nothing into them: a module is as
// easily deleted, copied and pickled as without us. Under Python's GIL; never destroyed.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <cstdint>
#include <unordered_map>

namespace joulemap::python {

struct KnownModule {
  std::uint32_t node = 0;  // in PlaceNames
  bool is_loss = false;
  PyObject* reference = nullptr;  // a weak one
};

class ModuleTable {
 public:
  const KnownModule* find(PyObject* module) const {
    const auto found = modules_.find(module);
    return found == modules_.end() ? nullptr : &found->second;
  }

  // Names a module, or gives it another name. `when_gone` is called with the reference when the module is deleted, and
  // calls forget(). False when Python has raised.
  bool name(PyObject* module, std::uint32_t node, bool is_loss, PyObject* when_gone);
  void forget(PyObject* reference);

 private:
  std::unordered_map<PyObject*, KnownModule> modules_;
  std::unordered_map<PyObject*, PyObject*> module_of_;  // by reference
};

}  // namespace joulemap::python
