// SPDX-License-Identifier: Apache-2.0
//
// What a recording adds to the kernel library: class powers that its own data identify, without priors from a library.
// The caller merges them into the kernel library (recording/kernel_library_file.h). Also the reverse: the library
// entries that a recording needs. Watts, seconds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attribution/gpu/kernel_priors.h"
#include "attribution/ledger/machine_energy.h"
#include "base/result.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

// Powers of classes that have a column of their own and that the regression identifies, and idle power. GPUs without a
// model name, and those that co-tenants used, give nothing. At a power limit the spread is larger. `default_gpu_model`:
// model name for GPUs that do not report one.
std::vector<KernelPower> learn_kernel_powers_from_fit(const MachineEnergy& energy,
                                                      const std::string& default_gpu_model = {});

// Priors of each class in the recording, on each of its GPU models, to be stored in the recording. Reads it once.
Result<std::vector<KernelPower>> find_required_priors(std::span<const std::string> paths, const KernelPriors& priors);

}  // namespace joulemap::attribution
