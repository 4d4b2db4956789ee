// SPDX-License-Identifier: Apache-2.0
#include "module_table.h"

namespace joulemap::python {

bool ModuleTable::name(PyObject* module, std::uint32_t node, bool is_loss, PyObject* when_gone) {
  const auto found = modules_.find(module);
  if (found != modules_.end()) {
    found->second.node = node;
    return true;
  }
  PyObject* const reference = PyWeakref_NewRef(module, when_gone);
  if (reference == nullptr) return false;
  modules_.emplace(module, KnownModule{node, is_loss, reference});
  module_of_.emplace(reference, module);
  return true;
}

void ModuleTable::forget(PyObject* reference) {
  const auto found = module_of_.find(reference);
  if (found == module_of_.end()) return;
  modules_.erase(found->second);
  module_of_.erase(found);
  Py_DECREF(reference);
}

}  // namespace joulemap::python
