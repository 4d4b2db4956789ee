// SPDX-License-Identifier: Apache-2.0
//
// The usual power of a kernel, from its family and duration: what is known about a kernel before it was ever measured.
// Short kernels do not fill a GPU, long ones do: on an H200 an elementwise kernel of 1 us uses little more power than
// an idle GPU, one of 10 us four times as much. Pure.
//
// The curves are fits to single operations on an H200 (data/h200/operations.csv.gz). They are multiples of the
// active-idle power, so that they apply to other GPUs as well; attribution scales them to the energy of the recording.
#pragma once

#include <span>
#include <vector>

#include "attribution/gpu/library_prior_fit.h"
#include "attribution/gpu/sensor_model.h"
#include "model/kernel_power.h"

namespace joulemap::attribution {

// Relative standard deviation of the power of a kernel about the curve of its family.
inline constexpr double kFamilyCurveRelativeSd = 0.3;

// Power above active idle, as a multiple of active-idle power.
double default_power_over_idle_ratio(const ObservedKernels& observed_kernels);

// By regression column, idle last; empty without kernels. The kernels of a column are combined by their time; a column
// without kernels (co-tenants) gets the mean. `mean_busy_w`: the mean power of all kernels by time, to which the curves
// are scaled.
std::vector<KernelClassPrior> make_default_priors(std::span<const std::vector<ObservedKernels>> columns,
                                                  const IdlePower& idle, double mean_busy_w);

}  // namespace joulemap::attribution
