// SPDX-License-Identifier: Apache-2.0
//
// The kernel library carries powers from one recording to the next: a loop of identical steps, which cannot identify
// its kernel powers, is attributed with the library.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "attribution/gpu/gpu_attribution.h"
#include "attribution/gpu/kernel_learning.h"
#include "attribution/ledger/ledger.h"
#include "attribution/ledger/recorded_energy.h"
#include "recording/kernel_power_library.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

constexpr std::uint32_t kProcess = 2;
const std::string kGpuModel = "Simulated";

struct AttributedRun {
  MachineEnergy machine;
  LedgerResult ledger;
};

AttributedRun attribute_energy(const SimulatedRun& run, const KernelPriors& kernel_priors,
                               double power_limited_fraction = 0) {
  const TimeSpan span{run.begin_ns, run.end_ns};
  const std::vector<Channel> channels = {SimulatedGpu::channel()};
  RecordedEnergy recorded(channels, span, 10);
  for (const Sample& sample : run.samples) recorded.add(sample);
  const RecordedEnergy::Result energy = recorded.finish();
  const std::vector<Activity> activities = activities_of(run);
  ActivitySums sums(span);
  GpuWorkCollector work(span);
  for (const Activity& activity : activities) {
    sums.add(kProcess, activity);
    work.add(kProcess, activity);
  }
  sums.finish();
  DeviceWork device = std::move(work.finish(sums.processes()).at("GPU-1"));
  const std::vector<KernelClassPrior> priors = kernel_priors.find_column_priors(kGpuModel, device.kernels_by_column);
  AttributedRun result;
  MachineEnergy::Gpu gpu{"gpu0", energy.domain_curves.at(0).energy_j, {}, kGpuModel, power_limited_fraction};
  gpu.powers = find_kernel_powers(std::move(device), {energy.domain_curves[0].counter_updates}, span, priors);
  gpu.energy_j = lag_corrected_curve(energy.domain_curves[0].curve, gpu.powers->power_fit.counter_lag_ns, gpu.energy_j);
  result.machine.gpus.emplace("GPU-1", std::move(gpu));
  Ledger ledger(RowLevel::kernel, result.machine, sums);
  for (const Activity& activity : activities) ledger.add(kProcess, activity);
  result.ledger = ledger.finish();
  return result;
}

// Another card of the same model: all powers differ by a common factor, and each by a small factor of its own.
SimulatedGpu::GpuParameters make_other_gpu_traits(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<> normal;
  SimulatedGpu::GpuParameters traits;
  const double level = 1 + 0.04 * normal(random);
  for (double& watts : traits.watts) watts *= level * (1 + 0.04 * normal(random));
  return traits;
}

std::vector<KernelPower> learn_kernel_library(int recordings, std::uint64_t seed) {
  std::vector<KernelPower> library;
  for (int i = 0; i < recordings; ++i) {
    SimulatedGpu gpu(make_other_gpu_traits(seed * 100 + static_cast<std::uint64_t>(i)),
                     seed * 10 + static_cast<std::uint64_t>(i));
    recording::merge_into_kernel_library(
        library, learn_kernel_powers_from_fit(attribute_energy(gpu.simulate_mixture(40), {}).machine));
  }
  return library;
}

struct ErrorTally {
  double sum_of_squares = 0;
  int covered_count = 0;
  int count = 0;
  double rms() const { return std::sqrt(sum_of_squares / count); }
};

void add_rows(ErrorTally& tally, const LedgerResult& ledger, const SimulatedRun& run) {
  for (const ReportRow& row : ledger.rows) {
    const double truth_j = run.joules[static_cast<std::size_t>(row.name.back() - '0')];
    tally.sum_of_squares += std::pow(*row.energy_j / truth_j - 1, 2);
    if (*row.low_j <= truth_j && truth_j <= *row.high_j) ++tally.covered_count;
    ++tally.count;
  }
}

TEST(KernelLibrary, IdentifiesKernelPowersOfEqualSteps) {
  ErrorTally library_errors;
  ErrorTally by_time;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const KernelPriors priors = KernelPriors::make_from_library(learn_kernel_library(2, seed));
    SimulatedGpu gpu(make_other_gpu_traits(seed * 1000), seed);
    const SimulatedRun run = gpu.steady_loop(20, 5);
    const LedgerResult result = attribute_energy(run, priors).ledger;
    for (const ReportRow& row : result.rows) EXPECT_EQ(row.basis, "library") << row.name;
    EXPECT_TRUE(result.diagnostics.contains("kernels_by_library"));
    EXPECT_FALSE(result.diagnostics.contains("kernels_by_time"));
    add_rows(library_errors, result, run);
    add_rows(by_time, attribute_energy(run, {}).ledger, run);
  }
  std::printf("equal steps by the library: %.1f %%, by time %.1f %%; 90 %% intervals hold in %.0f %% of %d\n",
              100 * library_errors.rms(), 100 * by_time.rms(),
              100.0 * library_errors.covered_count / library_errors.count, library_errors.count);
  EXPECT_LT(library_errors.rms(), 0.07);
  EXPECT_GT(by_time.rms(), 0.3);
  EXPECT_GE(library_errors.covered_count, library_errors.count * 85 / 100);
}

TEST(KernelLibrary, BarelyMovesPowersThatTheRunIdentifies) {
  const std::vector<KernelPower> library = learn_kernel_library(2, 3);
  SimulatedGpu gpu(make_other_gpu_traits(7), 7);
  const SimulatedRun run = gpu.simulate_mixture(60);
  ErrorTally library_errors;
  ErrorTally errors_without_library;
  add_rows(library_errors, attribute_energy(run, KernelPriors::make_from_library(library)).ledger, run);
  add_rows(errors_without_library, attribute_energy(run, {}).ledger, run);
  EXPECT_LT(library_errors.rms(), errors_without_library.rms() + 0.01);
}

// The library contains half of the classes; the other half get priors from similar classes.
TEST(KernelLibrary, UnknownClassesBorrowPowersWithWideIntervals) {
  std::vector<KernelPower> library = learn_kernel_library(2, 5);
  const auto is_dropped = [](const KernelPower& kernel_power) {
    return kernel_power.kernel_key != recording::idle_power_key() &&
           (kernel_power.kernel_key.name.back() - '0') % 2 == 1;
  };
  std::erase_if(library, is_dropped);
  SimulatedGpu gpu(make_other_gpu_traits(11), 11);
  const SimulatedRun run = gpu.steady_loop(20, 5);
  const AttributedRun result = attribute_energy(run, KernelPriors::make_from_library(library));
  ErrorTally all;
  add_rows(all, result.ledger, run);
  EXPECT_GE(all.covered_count, all.count - 2);
  for (const ReportRow& row : result.ledger.rows) {
    const double relative_half_width = (*row.high_j - *row.low_j) / 2 / *row.energy_j;
    const bool is_from_similar_kernels = (row.name.back() - '0') % 2 == 1;
    EXPECT_EQ(relative_half_width > 0.25, is_from_similar_kernels) << row.name << " " << relative_half_width;
  }
}

TEST(KernelLibrary, DoesNotLearnFromItsOwnPriors) {
  SimulatedGpu gpu({}, 4);
  const SimulatedRun run = gpu.steady_loop(20, 5);
  const AttributedRun result = attribute_energy(run, KernelPriors::make_from_library(learn_kernel_library(1, 4)));
  for (const KernelPower& learned_power : learn_kernel_powers_from_fit(result.machine))
    EXPECT_EQ(learned_power.kernel_key, recording::idle_power_key()) << learned_power.kernel_key.name;
}

TEST(KernelLibrary, AGpuAtItsPowerLimitAddsLessPrecision) {
  SimulatedGpu gpu({}, 6);
  const SimulatedRun run = gpu.simulate_mixture(40);
  const std::vector<KernelPower> unlimited_powers = learn_kernel_powers_from_fit(attribute_energy(run, {}).machine);
  const std::vector<KernelPower> limited_powers = learn_kernel_powers_from_fit(attribute_energy(run, {}, 1.0).machine);
  ASSERT_EQ(unlimited_powers.size(), limited_powers.size());
  ASSERT_GE(unlimited_powers.size(), 9U);
  for (std::size_t i = 0; i < unlimited_powers.size(); ++i) {
    if (unlimited_powers[i].kernel_key == recording::idle_power_key()) continue;
    EXPECT_GT(recording::predictive_relative_sd(limited_powers[i]),
              recording::predictive_relative_sd(unlimited_powers[i]) + 0.03);
  }
}

TEST(KernelLibrary, TheSameInputGivesTheSameBits) {
  const KernelPriors priors = KernelPriors::make_from_library(learn_kernel_library(1, 2));
  SimulatedGpu gpu({}, 2);
  const SimulatedRun run = gpu.steady_loop(10, 5);
  const LedgerResult first_ledger = attribute_energy(run, priors).ledger;
  const LedgerResult second_ledger = attribute_energy(run, priors).ledger;
  ASSERT_EQ(first_ledger.rows.size(), second_ledger.rows.size());
  for (std::size_t i = 0; i < first_ledger.rows.size(); ++i) {
    EXPECT_EQ(first_ledger.rows[i].energy_j, second_ledger.rows[i].energy_j);
    EXPECT_EQ(first_ledger.rows[i].low_j, second_ledger.rows[i].low_j);
  }
}

// For a recording that is too short for any regression.
TEST(KernelLibrary, AttributesAFewObservationsByPriorsAlone) {
  const KernelPriors priors = KernelPriors::make_from_library(learn_kernel_library(2, 8));
  SimulatedGpu gpu(make_other_gpu_traits(8), 8);
  const SimulatedRun run = gpu.steady_loop(1.2, 5);
  const LedgerResult result = attribute_energy(run, priors).ledger;
  ASSERT_EQ(result.rows.size(), run.joules.size());
  ErrorTally library_errors;
  add_rows(library_errors, result, run);
  EXPECT_LT(library_errors.rms(), 0.15);
}

}  // namespace
}  // namespace joulemap::attribution
