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
constexpr double kNothingKnown = 0.5;

ClassPrior prior_from(const KernelPower& known) {
  const double spread = recording::predictive_relative_sd(known);
  return {known.watts, spread, spread < kDefaultClassSpread};
}

// Prior of a column with several classes: their time-weighted mean.
ClassPrior combined_prior(std::span<const ObservedKernels> seen, std::span<const ClassPrior> priors) {
  double all_s = 0;
  for (const ObservedKernels& one : seen) all_s += one.time_s;
  ClassPrior mean{0, 0, false};
  double squares = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double share = all_s > 0 ? seen[i].time_s / all_s : 1 / static_cast<double>(seen.size());
    mean.watts += share * priors[i].watts;
    squares += std::pow(share * priors[i].spread * priors[i].watts, 2);
  }
  mean.spread = std::sqrt(squares) / mean.watts;
  mean.is_known = mean.spread < kDefaultClassSpread;
  return mean;
}

}  // namespace

KernelPriors::KernelPriors(std::vector<KernelPower> powers, bool is_frozen)
    : powers_(std::move(powers)), is_frozen_(is_frozen) {}

// Several machines of a recording may have stored the same entries: keeps one of each.
KernelPriors KernelPriors::from_recording(std::vector<KernelPower> powers) {
  const auto key = [](const KernelPower& one) { return std::tie(one.gpu, one.kernel_key); };
  std::stable_sort(powers.begin(), powers.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto same = [&](const auto& a, const auto& b) { return key(a) == key(b); };
  powers.erase(std::unique(powers.begin(), powers.end(), same), powers.end());
  return {std::move(powers), true};
}

KernelPriors KernelPriors::from_library(std::vector<KernelPower> library) {
  std::vector<KernelPower> sorted;
  recording::merge_into_library(sorted, std::move(library), std::numeric_limits<std::size_t>::max());
  return {std::move(sorted), false};
}

std::string KernelPriors::resolve_gpu_model(const std::string& gpu) const {
  const bool is_only_one = !powers_.empty() && powers_.front().gpu == powers_.back().gpu;
  return gpu.empty() && is_only_one ? powers_.front().gpu : gpu;
}

std::vector<KernelPower> KernelPriors::powers_for(const std::string& gpu, std::span<const ObservedKernels> seen) const {
  const std::string model = resolve_gpu_model(gpu);
  std::vector<KernelPower> of_gpu;
  for (const KernelPower& known : powers_) {
    if (known.gpu == model) of_gpu.push_back(known);
  }
  std::vector<KernelPower> found;
  const KernelPowerHierarchy hierarchy(of_gpu);
  if (hierarchy.empty()) return found;
  for (const ObservedKernels& one : seen) {
    if (const KernelPower* known = recording::find_power(of_gpu, model, one.kernel_key)) {
      found.push_back(*known);
      continue;
    }
    if (one.kernel_key == recording::idle_key()) continue;
    const ClassPrior prior = hierarchy.prior_of(one);
    found.push_back(recording::entry_from_similar_kernels(
        model, one, prior.watts, is_frozen_ ? std::max(prior.spread, kNothingKnown) : prior.spread));
  }
  return found;
}

std::vector<ClassPrior> KernelPriors::column_priors(const std::string& gpu,
                                                    std::span<const std::vector<ObservedKernels>> columns) const {
  std::vector<ObservedKernels> seen;
  for (const std::vector<ObservedKernels>& column : columns) seen.insert(seen.end(), column.begin(), column.end());
  const std::vector<KernelPower> found = powers_for(gpu, seen);
  std::vector<ClassPrior> priors;
  if (found.empty()) return priors;
  const KernelPowerHierarchy hierarchy(found);
  auto next = found.begin();
  for (const std::vector<ObservedKernels>& column : columns) {
    std::vector<ClassPrior> members;
    for (std::size_t i = 0; i < column.size(); ++i) members.push_back(prior_from(*next++));
    priors.push_back(members.empty() ? hierarchy.prior_of({}) : combined_prior(column, members));
  }
  const KernelPower* const idle = recording::find_power(powers_, resolve_gpu_model(gpu), recording::idle_key());
  priors.push_back(idle != nullptr ? prior_from(*idle) : ClassPrior{});
  return priors;
}

}  // namespace joulemap::attribution
