// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_power_hierarchy.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/demangle.h"
#include "base/quadrature.h"
#include "recording/kernel_power_library.h"

namespace joulemap::attribution {
namespace {

struct KernelFamily {
  std::string_view name;
  std::array<std::string_view, 6> name_words;
};
// The first family with a word in the lower-case name applies.
constexpr KernelFamily kKernelFamilies[] = {
    {"attention", {"flash", "fmha", "attention", "sdpa"}},
    {"convolution", {"fprop", "dgrad", "wgrad", "conv", "winograd"}},
    {"gemm", {"gemm", "nvjet", "cutlass", "cublas", "gemv", "matmul"}},
    {"normalization", {"norm", "bn_"}},
    {"softmax", {"softmax"}},
    {"pooling", {"pool"}},
    {"elementwise", {"elementwise"}},
    {"layout", {"nchwtonhwc", "nhwctonchw", "transpose", "copy", "cat"}},
    {"gather", {"gather", "scatter", "index", "embedding"}},
    {"reduction", {"reduce", "scan", "sort"}},
    {"optimizer", {"multi_tensor", "adam"}},
    {"random", {"distribution"}},
};

// An H200 has 132 multiprocessors, other GPUs 80 to 170. An idle multiprocessor is assumed to use a fifth of a busy
// one's power.
constexpr double kTypicalMultiprocessorCount = 132;
constexpr double kIdleMultiprocessorPowerFraction = 0.2;

// Prior standard deviations, of log power, between the classes of a stem, the stems of a family, and families; and the
// number of degrees of freedom that these priors count as.
constexpr double kPriorClassLogSd = 0.2;
constexpr double kPriorStemLogSd = 0.2;
constexpr double kPriorFamilyLogSd = 0.25;
constexpr double kPriorDegreesOfFreedom = 3;
// Additional relative spread of a class's power between one recording and the mean of all recordings.
constexpr double kBetweenRecordingRelativeSd = 0.05;

std::string to_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string_view find_family_by_word(const std::string& text) {
  for (const KernelFamily& family : kKernelFamilies) {
    for (const std::string_view word : family.name_words) {
      if (!word.empty() && text.find(word) != std::string::npos) return family.name;
    }
  }
  return {};
}

// Text outside of all brackets.
std::string remove_bracketed_text(std::string_view text) {
  std::string text_outside_brackets;
  int depth = 0;
  for (const char c : text) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) text_outside_brackets.push_back(c);
    if ((c == '>' || c == ')') && depth > 0) --depth;
  }
  return text_outside_brackets;
}

// Log of the fraction of a full GPU's power that a kernel with this number of blocks uses.
double log_occupancy_power_fraction(KernelKind kind, double blocks) {
  if (kind != KernelKind::kernel || blocks <= 0) return 0;
  return std::log(kIdleMultiprocessorPowerFraction +
                  (1 - kIdleMultiprocessorPowerFraction) * std::min(blocks / kTypicalMultiprocessorCount, 1.0));
}

}  // namespace

std::string kernel_name_stem(const KernelPowerKey& kernel_key) {
  std::string name = demangle(kernel_key.name);
  constexpr std::string_view kAnonymousNamespacePrefix = "(anonymous namespace)::";
  for (auto prefix_position = name.find(kAnonymousNamespacePrefix); prefix_position != name.npos;
       prefix_position = name.find(kAnonymousNamespacePrefix))
    name.erase(prefix_position, kAnonymousNamespacePrefix.size());
  std::string stem = remove_bracketed_text(name);
  if (stem.starts_with("void ")) stem.erase(0, 5);
  std::erase_if(stem, [](char c) { return c >= '0' && c <= '9'; });
  return stem;
}

std::string_view kernel_family(const KernelPowerKey& kernel_key) {
  if (kernel_key.kind == KernelKind::copy) return "copy";
  if (kernel_key.kind == KernelKind::fill) return "fill";
  if (kernel_key.kind == KernelKind::graph) return "graph";
  // A function's own name is more specific than its template arguments.
  if (const std::string_view family = find_family_by_word(to_lower_case(kernel_name_stem(kernel_key))); !family.empty())
    return family;
  const std::string_view family = find_family_by_word(to_lower_case(demangle(kernel_key.name)));
  return family.empty() ? "other" : family;
}

// Variance of members about their group mean, pooled over all groups, minus the members' own variance. `prior_sd`:
// their prior standard deviation.
double KernelPowerHierarchy::estimate_between_variance(std::span<const SiblingEstimates> groups, double prior_sd) {
  double squares = 0;
  double degrees_of_freedom = 0;
  for (const SiblingEstimates& group : groups) {
    const double count = static_cast<double>(group.size());
    double mean = 0;
    for (const Estimate& estimate : group) mean += estimate.mean / count;
    for (const Estimate& estimate : group) {
      squares += (estimate.mean - mean) * (estimate.mean - mean) - estimate.variance * (1 - 1 / count);
    }
    degrees_of_freedom += count - 1;
  }
  return (std::max(squares, 0.0) + kPriorDegreesOfFreedom * prior_sd * prior_sd) /
         (degrees_of_freedom + kPriorDegreesOfFreedom);
}

KernelPowerHierarchy::Estimate KernelPowerHierarchy::estimate_group_mean(const SiblingEstimates& members,
                                                                         double between_variance) {
  Estimate weighted_sum;
  double precision = 0;
  for (const Estimate& estimate : members) {
    precision += 1 / (estimate.variance + between_variance);
    weighted_sum.mean += estimate.mean / (estimate.variance + between_variance);
  }
  return {weighted_sum.mean / precision, 1 / precision};
}

KernelPowerHierarchy::Estimate KernelPowerHierarchy::shrink_to_parent(const Estimate& child_estimate,
                                                                      const Estimate& parent, double between_variance) {
  return estimate_group_mean({child_estimate, {parent.mean, parent.variance + between_variance}}, 0);
}

KernelPowerHierarchy::KernelPowerHierarchy(std::span<const KernelPower> library_powers) {
  std::map<std::pair<std::string, std::string>, SiblingEstimates> estimates_by_stem;
  for (const KernelPower& kernel_power : library_powers) {
    if (kernel_power.kernel_key == recording::idle_power_key()) continue;
    const double relative_sd = recording::predictive_relative_sd(kernel_power);
    estimates_by_stem[{std::string(kernel_family(kernel_power.kernel_key)), kernel_name_stem(kernel_power.kernel_key)}]
        .push_back({std::log(kernel_power.watts) -
                        log_occupancy_power_fraction(kernel_power.kernel_key.kind, kernel_power.blocks),
                    relative_sd * relative_sd});
  }
  if (estimates_by_stem.empty()) return;
  const auto collect_sibling_groups = [](const auto& by_key) {
    std::vector<SiblingEstimates> groups;
    for (const auto& [key, group] : by_key) groups.push_back(group);
    return groups;
  };
  class_variance_ = estimate_between_variance(collect_sibling_groups(estimates_by_stem), kPriorClassLogSd);
  std::map<std::string, SiblingEstimates> estimates_by_family;
  for (const auto& [key, group] : estimates_by_stem) {
    stem_log_powers_[key] = estimate_group_mean(group, class_variance_);
    estimates_by_family[key.first].push_back(stem_log_powers_[key]);
  }
  stem_variance_ = estimate_between_variance(collect_sibling_groups(estimates_by_family), kPriorStemLogSd);
  SiblingEstimates families;
  for (const auto& [family, group] : estimates_by_family) {
    family_log_powers_[family] = estimate_group_mean(group, stem_variance_);
    families.push_back(family_log_powers_[family]);
  }
  family_variance_ = estimate_between_variance({&families, 1}, kPriorFamilyLogSd);
  overall_log_power_ = estimate_group_mean(families, family_variance_);
  for (auto& [family, estimate] : family_log_powers_)
    estimate = shrink_to_parent(estimate, overall_log_power_, family_variance_);
  for (auto& [key, estimate] : stem_log_powers_)
    estimate = shrink_to_parent(estimate, family_log_powers_.at(key.first), stem_variance_);
}

KernelClassPrior KernelPowerHierarchy::predict_power(const ObservedKernels& observed_kernels) const {
  const std::string family(kernel_family(observed_kernels.kernel_key));
  Estimate log_power{overall_log_power_.mean,
                     overall_log_power_.variance + family_variance_ + stem_variance_ + class_variance_};
  if (const auto stem = stem_log_powers_.find({family, kernel_name_stem(observed_kernels.kernel_key)});
      stem != stem_log_powers_.end()) {
    log_power = {stem->second.mean, stem->second.variance + class_variance_};
  } else if (const auto family_log_power = family_log_powers_.find(family);
             family_log_power != family_log_powers_.end()) {
    log_power = {family_log_power->second.mean, family_log_power->second.variance + stem_variance_ + class_variance_};
  }
  const double watts = std::exp(
      log_power.mean + log_occupancy_power_fraction(observed_kernels.kernel_key.kind, observed_kernels.blocks));
  const double relative_sd = add_in_quadrature(std::sqrt(log_power.variance), kBetweenRecordingRelativeSd);
  return {watts, relative_sd, relative_sd < kDefaultClassPowerRelativeSd};
}

}  // namespace joulemap::attribution
