// SPDX-License-Identifier: Apache-2.0
#include "module_table.h"

namespace joulemap::python {

bool ModuleTable::name_module(PyObject* module, std::uint32_t node, bool is_loss, PyObject* on_module_deleted) {
  const auto found = modules_.find(module);
  if (found != modules_.end()) {
    found->second.node = node;
    return true;
  }
  PyObject* const reference = PyWeakref_NewRef(module, on_module_deleted);
  if (reference == nullptr) return false;
  modules_.emplace(module, KnownModule{node, is_loss, reference});
  modules_by_reference_.emplace(reference, module);
  return true;
}

void ModuleTable::forget_module(PyObject* reference) {
  const auto found = modules_by_reference_.find(reference);
  if (found == modules_by_reference_.end()) return;
  modules_.erase(found->second);
  modules_by_reference_.erase(found);
  Py_DECREF(reference);
}

}  // namespace joulemap::python
