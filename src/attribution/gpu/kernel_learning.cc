// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_learning.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/quadrature.h"
#include "recording/kernel_power_library.h"
#include "recording/recording_parts.h"
#include "statistics/normal.h"

namespace joulemap::attribution {
namespace {

// A finding with a larger relative spread carries less information than the prior of its kind.
constexpr double kMaxLearnedRelativeSd = 0.2;
// Lower bound of a finding's relative spread, however long its recording.
constexpr double kMinLearnedRelativeSd = 0.01;
// Additional relative spread at a permanent power limit: powers there differ from those at full speed.
constexpr double kPowerLimitRelativeSd = 0.1;
// Up to this fraction of time at the power limit, kPowerLimitRelativeSd is not applied if the fit found a slowdown
// exponent (kernel_slowdown.h): it then gives powers at full speed.
constexpr double kMaxPowerLimitedFraction = 0.8;

// Relative spread of a finding; empty where the data do not identify the power, or not well enough.
std::optional<double> learned_relative_sd(const KernelClassPower& class_power) {
  if (!class_power.is_regressed || class_power.watts <= 0) return std::nullopt;
  const double fit_relative_sd =
      (class_power.high_w - class_power.low_w) / 2 / statistics::kNormalHalfWidth90 / class_power.watts;
  if (fit_relative_sd > kMaxLearnedRelativeSd) return std::nullopt;
  return std::max(fit_relative_sd, kMinLearnedRelativeSd);
}

// Visitor that collects the kernel classes and GPU models of a recording.
class KernelClassVisitor final : public recording::RecordingVisitor {
 public:
  void on_channels(std::uint32_t /*source*/, std::uint32_t /*first*/, std::span<const Channel> channels) override {
    for (const Channel& channel : channels) {
      if (!channel.device_model.empty()) gpu_models_.insert(channel.device_model);
    }
  }
  void on_activity(std::uint32_t source, const Activity& activity) override {
    for (const KernelClass& kernel_class : activity.classes)
      kernel_classes_.insert_or_assign({source, kernel_class.id}, kernel_class);
    for (const KernelTally& tally : activity.kernel_tallies) {
      KernelTimeAndCount& time = class_times_[{source, tally.class_id}];
      time.time_s += seconds(tally.time_ns);
      time.count += tally.count;
    }
  }
  std::vector<KernelPower> make_required_priors(const KernelPriors& priors) const {
    std::map<KernelPowerKey, ObservedKernels> kernels_by_key;
    for (const auto& [id, kernel_class] : kernel_classes_) {
      const auto time = class_times_.find(id);
      if (time == class_times_.end()) continue;
      const ObservedKernels observed_kernels =
          recording::observed_kernels_of_class(kernel_class, time->second.time_s, time->second.count);
      const auto [kernels_slot, is_new] = kernels_by_key.try_emplace(observed_kernels.kernel_key, observed_kernels);
      if (!is_new) recording::add_observed_kernels(kernels_slot->second, observed_kernels);
    }
    std::vector<ObservedKernels> observed_classes;
    if (kernels_by_key.empty()) return {};
    for (const auto& [kernel_key, observed_kernels] : kernels_by_key) observed_classes.push_back(observed_kernels);
    observed_classes.push_back({recording::idle_power_key(), 0, 0, 0, 0});
    std::vector<KernelPower> required_priors;
    for (const std::string& gpu : gpu_models_) {
      for (KernelPower& kernel_power : priors.find_kernel_powers(gpu, observed_classes))
        required_priors.push_back(std::move(kernel_power));
    }
    return required_priors;
  }

 private:
  struct KernelTimeAndCount {
    double time_s = 0;
    std::uint64_t count = 0;
  };
  using SourceAndClassId = std::pair<std::uint32_t, std::uint32_t>;
  std::set<std::string> gpu_models_;
  std::map<SourceAndClassId, KernelClass> kernel_classes_;
  std::map<SourceAndClassId, KernelTimeAndCount> class_times_;
};

}  // namespace

std::vector<KernelPower> learn_kernel_powers_from_fit(const MachineEnergy& energy,
                                                      const std::string& default_gpu_model) {
  std::vector<KernelPower> findings;
  for (const auto& [device, gpu] : energy.gpus) {
    const std::string& model = gpu.device_model.empty() ? default_gpu_model : gpu.device_model;
    // Next to co-tenants kernels take longer and use a different power than alone.
    if (!gpu.powers || gpu.powers->co_tenant_column || model.empty()) continue;
    // A busy GPU uses no less power than an idle one: a fit that contradicts this is wrong.
    const double min_power_w = std::max(gpu.powers->power_fit.idle_power().watts, 1.5);
    const bool is_at_full_speed =
        gpu.powers->power_fit.slowdown_exponent > 0 && gpu.power_limited_fraction < kMaxPowerLimitedFraction;
    const double power_limit_relative_sd = is_at_full_speed ? 0 : kPowerLimitRelativeSd * gpu.power_limited_fraction;
    ObservedKernels idle{recording::idle_power_key(), 0, 0, 0, 1};
    for (std::size_t column = 0; column < gpu.powers->kernels_by_column.size(); ++column) {
      const std::vector<ObservedKernels>& observed_classes = gpu.powers->kernels_by_column[column];
      const KernelClassPower& class_power = gpu.powers->power_fit.classes[column];
      for (const ObservedKernels& observed_kernels : observed_classes) idle.time_s += observed_kernels.time_s;
      if (observed_classes.size() != 1 || class_power.watts < min_power_w) continue;
      if (const std::optional<double> fit_relative_sd = learned_relative_sd(class_power)) {
        findings.push_back(
            recording::make_measured_entry(model, observed_classes.front(), class_power.watts,
                                           add_in_quadrature(*fit_relative_sd, power_limit_relative_sd)));
      }
    }
    // The entry of idle gets the time of all classes: a full library drops entries with little time first.
    const KernelClassPower& waiting = gpu.powers->power_fit.idle_power();
    if (const std::optional<double> fit_relative_sd = learned_relative_sd(waiting);
        fit_relative_sd && idle.time_s > 0) {
      findings.push_back(recording::make_measured_entry(model, idle, waiting.watts, *fit_relative_sd));
    }
  }
  return findings;
}

Result<std::vector<KernelPower>> find_required_priors(std::span<const std::string> paths, const KernelPriors& priors) {
  Result<std::vector<recording::RecordingFile>> files = recording::open_recording(paths);
  if (!files) return std::move(files).error();
  KernelClassVisitor survey;
  const Result<recording::RecordingSummary> read_result = recording::read_recording(*files, survey);
  if (!read_result) return read_result.error();
  return survey.make_required_priors(priors);
}

}  // namespace joulemap::attribution
