// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_priors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "attribution/gpu/kernel_power_hierarchy.h"
#include "recording/kernel_power_library.h"

namespace joulemap::attribution {
namespace {

// Minimum spread for a class that is missing among the priors stored in a recording, so that other classes outweigh it.
constexpr double kMissingClassMinRelativeSd = 0.5;

KernelClassPrior make_class_prior(const KernelPower& kernel_power) {
  const double relative_sd = recording::predictive_relative_sd(kernel_power);
  return {kernel_power.watts, relative_sd, relative_sd < kDefaultClassPowerRelativeSd};
}

// Prior of a column with several classes: their time-weighted mean.
KernelClassPrior combine_priors_by_time(std::span<const ObservedKernels> observed_classes,
                                        std::span<const KernelClassPrior> priors) {
  double total_time_s = 0;
  for (const ObservedKernels& observed_kernels : observed_classes) total_time_s += observed_kernels.time_s;
  KernelClassPrior mean{0, 0, false};
  double squares = 0;
  for (std::size_t i = 0; i < observed_classes.size(); ++i) {
    const double share =
        total_time_s > 0 ? observed_classes[i].time_s / total_time_s : 1 / static_cast<double>(observed_classes.size());
    mean.watts += share * priors[i].watts;
    squares += std::pow(share * priors[i].relative_sd * priors[i].watts, 2);
  }
  mean.relative_sd = std::sqrt(squares) / mean.watts;
  mean.is_known = mean.relative_sd < kDefaultClassPowerRelativeSd;
  return mean;
}

}  // namespace

KernelPriors::KernelPriors(std::vector<KernelPower> powers, bool is_frozen)
    : kernel_powers_(std::move(powers)), is_from_recording_(is_frozen) {}

// Several machines of a recording may have stored the same entries: keeps one of each.
KernelPriors KernelPriors::make_from_recording(std::vector<KernelPower> powers) {
  const auto key = [](const KernelPower& kernel_power) { return std::tie(kernel_power.gpu, kernel_power.kernel_key); };
  std::stable_sort(powers.begin(), powers.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto has_same_key = [&](const auto& a, const auto& b) { return key(a) == key(b); };
  powers.erase(std::unique(powers.begin(), powers.end(), has_same_key), powers.end());
  return {std::move(powers), true};
}

KernelPriors KernelPriors::make_from_library(std::vector<KernelPower> library) {
  std::vector<KernelPower> sorted_powers;
  recording::merge_into_kernel_library(sorted_powers, std::move(library), std::numeric_limits<std::size_t>::max());
  return {std::move(sorted_powers), false};
}

std::string KernelPriors::resolve_gpu_model(const std::string& gpu) const {
  const bool has_single_gpu_model = !kernel_powers_.empty() && kernel_powers_.front().gpu == kernel_powers_.back().gpu;
  return gpu.empty() && has_single_gpu_model ? kernel_powers_.front().gpu : gpu;
}

std::vector<KernelPower> KernelPriors::find_kernel_powers(const std::string& gpu,
                                                          std::span<const ObservedKernels> observed_classes) const {
  const std::string model = resolve_gpu_model(gpu);
  std::vector<KernelPower> gpu_powers;
  for (const KernelPower& kernel_power : kernel_powers_) {
    if (kernel_power.gpu == model) gpu_powers.push_back(kernel_power);
  }
  std::vector<KernelPower> class_powers;
  const KernelPowerHierarchy hierarchy(gpu_powers);
  if (hierarchy.empty()) return class_powers;
  for (const ObservedKernels& observed_kernels : observed_classes) {
    if (const KernelPower* library_power =
            recording::find_kernel_power(gpu_powers, model, observed_kernels.kernel_key)) {
      class_powers.push_back(*library_power);
      continue;
    }
    if (observed_kernels.kernel_key == recording::idle_power_key()) continue;
    const KernelClassPrior prior = hierarchy.predict_power(observed_kernels);
    class_powers.push_back(recording::make_entry_from_similar_kernels(
        model, observed_kernels, prior.watts,
        is_from_recording_ ? std::max(prior.relative_sd, kMissingClassMinRelativeSd) : prior.relative_sd));
  }
  return class_powers;
}

std::vector<KernelClassPrior> KernelPriors::find_column_priors(
    const std::string& gpu, std::span<const std::vector<ObservedKernels>> columns) const {
  std::vector<ObservedKernels> observed_classes;
  for (const std::vector<ObservedKernels>& column : columns)
    observed_classes.insert(observed_classes.end(), column.begin(), column.end());
  const std::vector<KernelPower> class_powers = find_kernel_powers(gpu, observed_classes);
  std::vector<KernelClassPrior> priors;
  if (class_powers.empty()) return priors;
  const KernelPowerHierarchy hierarchy(class_powers);
  auto next_power = class_powers.begin();
  for (const std::vector<ObservedKernels>& column : columns) {
    std::vector<KernelClassPrior> members;
    for (std::size_t i = 0; i < column.size(); ++i) members.push_back(make_class_prior(*next_power++));
    priors.push_back(members.empty() ? hierarchy.predict_power({}) : combine_priors_by_time(column, members));
  }
  const KernelPower* const idle =
      recording::find_kernel_power(kernel_powers_, resolve_gpu_model(gpu), recording::idle_power_key());
  priors.push_back(idle != nullptr ? make_class_prior(*idle) : KernelClassPrior{});
  return priors;
}

}  // namespace joulemap::attribution
