// SPDX-License-Identifier: Apache-2.0
//
// Why a function, operation or kernel draws energy, by its name: it computes, moves memory, launches work, or waits for
// others. Names are those of CUDA, cuDNN, PyTorch, TensorFlow and JAX. A name that tells nothing is taken for computing.
// Pure.
#pragma once

#include <string_view>

namespace joulemap::report {

enum class CauseClass { compute, memory, launch, synchronisation };

CauseClass cause_of(std::string_view name);
std::string_view to_string(CauseClass cause);

}  // namespace joulemap::report
