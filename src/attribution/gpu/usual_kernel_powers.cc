// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/usual_kernel_powers.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "attribution/gpu/kernel_power_hierarchy.h"

namespace joulemap::attribution {
namespace {

// Above-idle power as a multiple of active-idle power: `max_power_ratio` x^n / (x^n + 1), x = duration /
// `half_power_duration_us`.
struct PowerCurve {
  std::string_view family;
  double max_power_ratio;
  double half_power_duration_us;
  double exponent;
};
constexpr PowerCurve kFamilyPowerCurves[] = {
    {"attention", 4.3, 25, 1.2},  {"convolution", 4.7, 24, 1}, {"gemm", 5.9, 20, 1},
    {"normalization", 3.4, 5, 1}, {"softmax", 3.4, 5, 1},      {"pooling", 3.5, 8, 1},
    {"elementwise", 3.9, 3.3, 2}, {"layout", 3.5, 4, 2},       {"gather", 3.1, 6, 1.5},
    {"reduction", 4.3, 14, 1.5},  {"optimizer", 3.5, 6, 2},    {"fill", 2.3, 4, 2},
    {"random", 3.9, 3.3, 2},
};
constexpr PowerCurve kOtherFamilyCurve = {"other", 3.5, 10, 1};
// Copies between host and device, during which the GPU waits for the bus, and copies within the device.
constexpr double kBusCopyPowerRatio = 0.05;
constexpr double kDeviceCopyPowerRatio = 3.1;
// A kernel with fewer blocks than multiprocessors leaves some of them idle. An H200 has 132.
constexpr double kH200MultiprocessorCount = 132;
constexpr double kMinMultiprocessorFraction = 0.1;

const PowerCurve& family_power_curve(std::string_view family) {
  const auto* const family_curve = std::ranges::find(kFamilyPowerCurves, family, &PowerCurve::family);
  return family_curve == std::end(kFamilyPowerCurves) ? kOtherFamilyCurve : *family_curve;
}

}  // namespace

double default_power_over_idle_ratio(const ObservedKernels& observed_kernels) {
  const KernelPowerKey& key = observed_kernels.kernel_key;
  if (key.kind == KernelKind::copy)
    return key.name.find("DtoD") != std::string::npos ? kDeviceCopyPowerRatio : kBusCopyPowerRatio;
  const PowerCurve& curve = family_power_curve(kernel_family(key));
  const double x = std::pow(1e6 * observed_kernels.mean_kernel_s() / curve.half_power_duration_us, curve.exponent);
  const double filled_fraction =
      key.kind == KernelKind::kernel && observed_kernels.blocks > 0
          ? std::clamp(observed_kernels.blocks / kH200MultiprocessorCount, kMinMultiprocessorFraction, 1.0)
          : 1;
  return curve.max_power_ratio * filled_fraction * x / (x + 1);
}

std::vector<KernelClassPrior> make_default_priors(std::span<const std::vector<ObservedKernels>> columns,
                                                  const IdlePower& idle, double mean_busy_w) {
  std::vector<double> ratios_above_idle;
  double total_time_s = 0;
  double total_above_idle_sum = 0;
  for (const std::vector<ObservedKernels>& column : columns) {
    double kernel_time_s = 0;
    double above_idle_sum = 0;
    for (const ObservedKernels& observed_kernels : column) {
      kernel_time_s += observed_kernels.time_s;
      above_idle_sum += observed_kernels.time_s * default_power_over_idle_ratio(observed_kernels);
    }
    ratios_above_idle.push_back(kernel_time_s > 0 ? above_idle_sum / kernel_time_s : -1);
    total_time_s += kernel_time_s;
    total_above_idle_sum += above_idle_sum;
  }
  std::vector<KernelClassPrior> priors;
  if (total_above_idle_sum <= 0) return priors;
  const double mean_ratio_above_idle = total_above_idle_sum / total_time_s;
  const double watts_per_ratio = std::max(mean_busy_w - idle.watts, 0.0) / mean_ratio_above_idle;
  for (const double ratio_above_idle : ratios_above_idle) {
    const double watts =
        idle.watts + watts_per_ratio * (ratio_above_idle < 0 ? mean_ratio_above_idle : ratio_above_idle);
    priors.push_back({watts, kFamilyCurveRelativeSd, false});
  }
  priors.push_back({idle.watts, idle.sd_w / idle.watts, true});
  return priors;
}

}  // namespace joulemap::attribution
