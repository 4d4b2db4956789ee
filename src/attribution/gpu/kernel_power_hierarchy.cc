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

struct Family {
  std::string_view name;
  std::array<std::string_view, 6> words;
};
// The first family with a word in the lower-case name applies.
constexpr Family kFamilies[] = {
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
constexpr double kFullGpu = 132;
constexpr double kWaiting = 0.2;

// Prior standard deviations, of log power, between the classes of a stem, the stems of a family, and families; and the
// number of degrees of freedom that these priors count as.
constexpr double kUsualClasses = 0.2;
constexpr double kUsualStems = 0.2;
constexpr double kUsualFamilies = 0.25;
constexpr double kUsualCounts = 3;
// Additional relative spread of a class's power between one recording and the mean of all recordings.
constexpr double kBetweenRecordings = 0.05;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string_view family_in(const std::string& text) {
  for (const Family& family : kFamilies) {
    for (const std::string_view word : family.words) {
      if (!word.empty() && text.find(word) != std::string::npos) return family.name;
    }
  }
  return {};
}

// Text outside of all brackets.
std::string outside_brackets(std::string_view text) {
  std::string outside;
  int depth = 0;
  for (const char c : text) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) outside.push_back(c);
    if ((c == '>' || c == ')') && depth > 0) --depth;
  }
  return outside;
}

// Log of the fraction of a full GPU's power that a kernel with this number of blocks uses.
double log_occupancy_power(KernelKind kind, double blocks) {
  if (kind != KernelKind::kernel || blocks <= 0) return 0;
  return std::log(kWaiting + (1 - kWaiting) * std::min(blocks / kFullGpu, 1.0));
}

}  // namespace

std::string stem_of(const KernelPowerKey& kernel_key) {
  std::string name = demangled(kernel_key.name);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (auto at = name.find(kAnonymous); at != name.npos; at = name.find(kAnonymous)) name.erase(at, kAnonymous.size());
  std::string stem = outside_brackets(name);
  if (stem.starts_with("void ")) stem.erase(0, 5);
  std::erase_if(stem, [](char c) { return c >= '0' && c <= '9'; });
  return stem;
}

std::string_view family_of(const KernelPowerKey& kernel_key) {
  if (kernel_key.kind == KernelKind::copy) return "copy";
  if (kernel_key.kind == KernelKind::fill) return "fill";
  if (kernel_key.kind == KernelKind::graph) return "graph";
  // A function's own name is more specific than its template arguments.
  if (const std::string_view family = family_in(lower(stem_of(kernel_key))); !family.empty()) return family;
  const std::string_view family = family_in(lower(demangled(kernel_key.name)));
  return family.empty() ? "other" : family;
}

// Variance of members about their group mean, pooled over all groups, minus the members' own variance. `usual`: prior
// standard deviation.
double KernelPowerHierarchy::variance_within(std::span<const Group> groups, double usual) {
  double squares = 0;
  double free = 0;
  for (const Group& group : groups) {
    const double count = static_cast<double>(group.size());
    double mean = 0;
    for (const Estimate& one : group) mean += one.mean / count;
    for (const Estimate& one : group) {
      squares += (one.mean - mean) * (one.mean - mean) - one.variance * (1 - 1 / count);
    }
    free += count - 1;
  }
  return (std::max(squares, 0.0) + kUsualCounts * usual * usual) / (free + kUsualCounts);
}

KernelPowerHierarchy::Estimate KernelPowerHierarchy::mean_of(const Group& members, double between) {
  Estimate all;
  double precision = 0;
  for (const Estimate& one : members) {
    precision += 1 / (one.variance + between);
    all.mean += one.mean / (one.variance + between);
  }
  return {all.mean / precision, 1 / precision};
}

KernelPowerHierarchy::Estimate KernelPowerHierarchy::shrink(const Estimate& own, const Estimate& parent,
                                                            double between) {
  return mean_of({own, {parent.mean, parent.variance + between}}, 0);
}

KernelPowerHierarchy::KernelPowerHierarchy(std::span<const KernelPower> known) {
  std::map<std::pair<std::string, std::string>, Group> by_stem;
  for (const KernelPower& one : known) {
    if (one.kernel_key == recording::idle_key()) continue;
    const double spread = recording::predictive_relative_sd(one);
    by_stem[{std::string(family_of(one.kernel_key)), stem_of(one.kernel_key)}].push_back(
        {std::log(one.watts) - log_occupancy_power(one.kernel_key.kind, one.blocks), spread * spread});
  }
  if (by_stem.empty()) return;
  const auto groups_of = [](const auto& by_key) {
    std::vector<Group> groups;
    for (const auto& [key, group] : by_key) groups.push_back(group);
    return groups;
  };
  between_classes_ = variance_within(groups_of(by_stem), kUsualClasses);
  std::map<std::string, Group> by_family;
  for (const auto& [key, group] : by_stem) {
    stems_[key] = mean_of(group, between_classes_);
    by_family[key.first].push_back(stems_[key]);
  }
  between_stems_ = variance_within(groups_of(by_family), kUsualStems);
  Group families;
  for (const auto& [family, group] : by_family) {
    families_[family] = mean_of(group, between_stems_);
    families.push_back(families_[family]);
  }
  between_families_ = variance_within({&families, 1}, kUsualFamilies);
  overall_ = mean_of(families, between_families_);
  for (auto& [family, estimate] : families_) estimate = shrink(estimate, overall_, between_families_);
  for (auto& [key, estimate] : stems_) estimate = shrink(estimate, families_.at(key.first), between_stems_);
}

ClassPrior KernelPowerHierarchy::prior_of(const ObservedKernels& seen) const {
  const std::string family(family_of(seen.kernel_key));
  Estimate found{overall_.mean, overall_.variance + between_families_ + between_stems_ + between_classes_};
  if (const auto stem = stems_.find({family, stem_of(seen.kernel_key)}); stem != stems_.end()) {
    found = {stem->second.mean, stem->second.variance + between_classes_};
  } else if (const auto same = families_.find(family); same != families_.end()) {
    found = {same->second.mean, same->second.variance + between_stems_ + between_classes_};
  }
  const double watts = std::exp(found.mean + log_occupancy_power(seen.kernel_key.kind, seen.blocks));
  const double spread = add_in_quadrature(std::sqrt(found.variance), kBetweenRecordings);
  return {watts, spread, spread < kDefaultClassSpread};
}

}  // namespace joulemap::attribution
