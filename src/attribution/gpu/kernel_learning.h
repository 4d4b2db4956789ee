// SPDX-License-Identifier: Apache-2.0
//
// What a recording teaches about what classes of kernels draw: powers that its own data told, and nothing that was believed
// beforehand. What is found is merged into the kernel library (recording/library_file.h). Also the opposite: what of
// a library a recording needs. Watts, seconds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attribution/gpu/kernel_priors.h"
#include "attribution/ledger/machine_energy.h"
#include "base/result.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

// Of classes that stand alone in the regression and are known by it. Of a GPU without a model nothing; of one held at its
// power limit most of the time, less surely. `unnamed`: the model of GPUs that do not tell theirs.
std::vector<KernelPower> findings_of(const MachineEnergy& energy, const std::string& unnamed = {});

// What is believed of each class that the recording holds, on each of its GPUs: to be frozen into it. Reads it once.
Result<std::vector<KernelPower>> priors_needed(std::span<const std::string> paths, const KernelPriors& priors);

}  // namespace joulemap::attribution
