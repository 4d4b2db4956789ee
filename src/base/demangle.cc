// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace joulemap {

std::string demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

}  // namespace joulemap
