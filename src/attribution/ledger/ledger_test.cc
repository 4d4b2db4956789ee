// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/ledger.h"

#include "attribution/gpu/lost_kernels.h"
#include "base/clock.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

constexpr TimeSpan kSpan{0, 10 * kNanosecondsPerSecond};
constexpr std::uint32_t kProcess = 3;

TimeCurve make_constant_rate_curve(double curve_total) {
  TimeCurve curve(kSpan, cell_count_for_span(kSpan));
  curve.add(kSpan.begin_ns, kSpan.end_ns, curve_total);
  curve.finish();
  return curve;
}

// train > forward > conv (> conv2d), train > backward > conv, a region of the program's own, and two kernels.
Activity names() {
  Activity activity;
  activity.scopes = {{1, 0, ScopeKind::mode, "train"},      {2, 1, ScopeKind::phase, "forward"},
                     {3, 2, ScopeKind::module, "net"},      {4, 3, ScopeKind::module, "net.conv"},
                     {5, 4, ScopeKind::op, "torch.conv2d"}, {6, 1, ScopeKind::phase, "backward"},
                     {7, 6, ScopeKind::module, "net.conv"}, {8, 0, ScopeKind::region, "setup"},
                     {9, 4, ScopeKind::op, "torch.relu"}};
  activity.classes = {{0, KernelKind::kernel, "_Z4gemmv", {}, {}}, {1, KernelKind::copy, "HtoD", {}, {}}};
  activity.queues = {{0, "GPU-1", 0, 1, 7}};
  return activity;
}

ScopeTally cpu(std::uint32_t scope, double cpu_s, std::uint64_t count = 1, std::uint64_t sampled_count = 0) {
  const auto cpu_ns = static_cast<std::int64_t>(cpu_s * 1e9);
  return {scope, count, sampled_count, cpu_ns, cpu_ns / 2, cpu_ns - cpu_ns / 2};
}

struct LedgerOutcome {
  LedgerResult result;
  const ReportRow* row(const std::vector<std::string>& path, const std::string& device = "cpu") const {
    for (const ReportRow& row : result.rows) {
      if (row.path == path && row.device == device) return &row;
    }
    return nullptr;
  }
  double energy(const std::vector<std::string>& path, const std::string& device = "cpu") const {
    const ReportRow* const matching_row = row(path, device);
    return matching_row != nullptr && matching_row->energy_j ? *matching_row->energy_j : -1;
  }
};

LedgerOutcome attribute_energy(RowLevel level, const MachineEnergy& energy, const std::vector<Activity>& activities) {
  ActivitySums sums(kSpan);
  for (const Activity& activity : activities) sums.add(kProcess, activity);
  sums.finish();
  Ledger ledger(level, energy, sums);
  for (const Activity& activity : activities) ledger.add(kProcess, activity);
  LedgerOutcome outcome{ledger.finish()};
  double rows_j = 0;
  for (const ReportRow& row : outcome.result.rows) rows_j += row.energy_j.value_or(0);
  EXPECT_NEAR(rows_j, outcome.result.attributed_j.value_or(rows_j), 1e-6);
  return outcome;
}

LedgerOutcome attribute_energy(RowLevel level, const MachineEnergy& energy, Activity activity,
                               TimeSpan active = kSpan) {
  activity.begin_ns = active.begin_ns;
  activity.end_ns = active.end_ns;
  return attribute_energy(level, energy, std::vector{std::move(activity)});
}

TEST(Ledger, SplitsCpuEnergyByCpuTime) {
  Activity activity = names();
  activity.scope_tallies = {cpu(4, 6), cpu(7, 3), cpu(0, 1)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::layer, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(outcome.energy({"train", "forward", "net.conv"}), 600, 1e-6);
  EXPECT_NEAR(outcome.energy({"train", "backward", "net.conv"}), 300, 1e-6);
  EXPECT_NEAR(*outcome.result.unattributed_j, 100, 1e-6);  // CPU time in the root scope
  EXPECT_NEAR(*outcome.result.idle_j, 0, 1e-6);
}

TEST(Ledger, WhileNothingRunsTheEnergyIsIdle) {
  Activity activity = names();
  activity.scope_tallies = {cpu(4, 2.5)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::phase, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(outcome.energy({"train", "forward"}), 250, 1e-6);
  EXPECT_NEAR(*outcome.result.idle_j, 750, 1e-6);
}

TEST(Ledger, EnergyOfOtherProcessesIsBackground) {
  Activity activity = names();
  activity.scope_tallies = {cpu(4, 5)};
  MachineEnergy energy{.cpu_energy_j = make_constant_rate_curve(1000)};
  energy.machine_cpu_s = make_constant_rate_curve(20);
  energy.command_cpu_s = 10;  // s, of which five were not captured
  const LedgerOutcome outcome = attribute_energy(RowLevel::layer, energy, activity);
  EXPECT_NEAR(outcome.energy({"train", "forward", "net.conv"}), 250, 1e-6);
  EXPECT_NEAR(outcome.energy({"background"}), 500, 1e-6);
  EXPECT_NEAR(*outcome.result.unattributed_j, 250, 1e-6);
}

TEST(Ledger, OperationsShareTheEnergyOfTheirLayerInAllSteps) {
  Activity activity = names();
  // One step of ten was sampled. In that step, the time of the layer is the sum of its operations.
  activity.scope_tallies = {cpu(4, 9, 20, 2), cpu(5, 0.75, 3, 3), cpu(9, 0.25, 1, 1)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::op, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(outcome.energy({"train", "forward", "net.conv", "torch.conv2d"}), 750, 1e-6);
  EXPECT_NEAR(outcome.energy({"train", "forward", "net.conv", "torch.relu"}), 250, 1e-6);
  EXPECT_EQ(outcome.row({"train", "forward", "net.conv", "torch.conv2d"})->count, 30u);
  EXPECT_EQ(outcome.row({"train", "forward", "net.conv"}), nullptr);
}

TEST(Ledger, OperationsOutsideOfLayersGetOnlyTheirOwnTime) {
  Activity activity = names();
  activity.scopes.push_back({12, 1, ScopeKind::op, "Tensor.item"});
  // One step of ten was sampled. The program read its files for nine seconds, and called item() once in a step.
  activity.scope_tallies = {cpu(4, 1, 20, 2), cpu(1, 9, 0), cpu(12, 0.1, 1, 1)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::op, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  const ReportRow* const item = outcome.row({"train", "Tensor.item"});
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(item->count, 10u);
  EXPECT_NEAR(item->time_s, 1.0, 1e-6);
  EXPECT_NEAR(
      outcome.energy({"train", "Tensor.item"}) / (outcome.energy({"train"}) + outcome.energy({"train", "Tensor.item"})),
      1.0 / 9.1, 1e-3);
}

TEST(Ledger, OperationsOfAPhaseExcludeItsWaitingTime) {
  Activity activity = names();
  for (const Scope& scope : {Scope{12, 1, ScopeKind::phase, "dataloader"}, Scope{13, 12, ScopeKind::op, "torch.empty"}})
    activity.scopes.push_back(scope);
  ScopeTally waits = cpu(12, 0.001, 20, 2);  // two of twenty calls were in sampled steps
  waits.wall_ns = 7'000'000'000;
  activity.scope_tallies = {cpu(4, 1, 20, 2), waits, cpu(13, 0.0001, 1, 1)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::op, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  const ReportRow* const torch_empty_row = outcome.row({"train", "dataloader", "torch.empty"});
  const ReportRow* const loader = outcome.row({"train", "dataloader"});
  ASSERT_TRUE(torch_empty_row != nullptr && loader != nullptr && torch_empty_row->cause && loader->cause);
  EXPECT_NEAR(torch_empty_row->time_s, 0.001, 1e-6);
  EXPECT_EQ(torch_empty_row->count, 10u);
  EXPECT_NEAR(loader->time_s, 6.9991, 1e-3);
  EXPECT_EQ(loader->cause->largest_class, EnergyCauseClass::synchronization);
}

TEST(Ledger, OperationsOfAModuleThatAlsoComputesGetTheirOwnTimeOnly) {
  Activity activity = names();
  activity.scope_tallies = {cpu(4, 9.9, 20, 2), cpu(5, 0.01, 2, 2)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::op, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(outcome.row({"train", "forward", "net.conv", "torch.conv2d"})->time_s, 0.1, 1e-6);
  EXPECT_NEAR(outcome.row({"train", "forward", "net.conv"})->time_s, 9.81, 1e-6);
}

TEST(Ledger, SplitsOperationsByShapeAtLevelTensorOnly) {
  Activity activity = names();
  activity.scopes.push_back({10, 5, ScopeKind::tensors, "[64,3,224,224] [64,3,7,7]"});
  activity.scopes.push_back({11, 5, ScopeKind::tensors, "[64,64,56,56] [64,64,3,3]"});
  activity.scope_tallies = {cpu(4, 9, 20, 2), cpu(10, 0.5, 2, 2), cpu(11, 0.25, 1, 1), cpu(9, 0.25, 1, 1)};
  const LedgerOutcome tensors =
      attribute_energy(RowLevel::tensor, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  const ReportRow* const first_shape_row =
      tensors.row({"train", "forward", "net.conv", "torch.conv2d [64,3,224,224] [64,3,7,7]"});
  ASSERT_NE(first_shape_row, nullptr);
  EXPECT_NEAR(first_shape_row->energy_j.value_or(0), 500, 1e-6);
  EXPECT_EQ(first_shape_row->count, 20u);
  EXPECT_NEAR(tensors.energy({"train", "forward", "net.conv", "torch.conv2d [64,64,56,56] [64,64,3,3]"}), 250, 1e-6);
  EXPECT_NEAR(tensors.energy({"train", "forward", "net.conv", "torch.relu"}), 250, 1e-6);  // its shapes are unknown
  const LedgerOutcome operations =
      attribute_energy(RowLevel::op, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(operations.energy({"train", "forward", "net.conv", "torch.conv2d"}), 750, 1e-6);
  EXPECT_EQ(operations.row({"train", "forward", "net.conv", "torch.conv2d"})->count, 30u);
}

TEST(Ledger, WhileKernelsAreLostGpuEnergyIsUnattributedAndNotIdle) {
  Activity activity = names();
  activity.kernel_tallies = {{0, 0, 4, 100, 5 * kNanosecondsPerSecond}};
  activity.begin_ns = 0;
  activity.end_ns = 5 * kNanosecondsPerSecond;
  MachineEnergy energy;
  energy.gpus["GPU-1"] = {"gpu0", make_constant_rate_curve(1000), {}};
  for (const bool is_lost : {false, true}) {
    ActivitySums sums(kSpan);
    sums.add(kProcess, activity);
    const Mark mark{7 * kNanosecondsPerSecond, MarkKind::kernels_lost, 3 * kNanosecondsPerSecond, 0, {}};
    if (is_lost) sums.add(kProcess, lost_kernel_activity(mark, sums.process_activity(kProcess)));
    sums.finish();
    for (const RowLevel level : {RowLevel::layer, RowLevel::kernel}) {
      Ledger ledger(level, energy, sums);
      ledger.add(kProcess, activity);
      const LedgerOutcome outcome{ledger.finish()};
      ASSERT_EQ(outcome.result.rows.size(), 1u);
      EXPECT_NEAR(outcome.result.rows[0].energy_j.value_or(0), 500, 1);
      EXPECT_NEAR(*outcome.result.idle_j, is_lost ? 200 : 500, 1);
      EXPECT_NEAR(*outcome.result.unattributed_j, is_lost ? 300 : 0, 1);
    }
  }
}

TEST(Ledger, AnIdleGapRecordedWhileKernelsWereLostLeavesTheirTimeBusy) {
  Activity activity = names();
  activity.kernel_tallies = {{0, 0, 4, 100, 5 * kNanosecondsPerSecond}};
  activity.begin_ns = 0;
  activity.end_ns = 5 * kNanosecondsPerSecond;
  Activity gap;
  gap.begin_ns = 7 * kNanosecondsPerSecond + kNanosecondsPerSecond / 100;
  gap.end_ns = 10 * kNanosecondsPerSecond;
  gap.waits = {{0, 4, WaitKind::host, 1, gap.end_ns - gap.begin_ns}};
  MachineEnergy energy;
  energy.gpus["GPU-1"] = {"gpu0", make_constant_rate_curve(1000), {}};
  ActivitySums sums(kSpan);
  sums.add(kProcess, activity);
  sums.add(kProcess, gap);
  const Mark mark{7 * kNanosecondsPerSecond, MarkKind::kernels_lost, 3 * kNanosecondsPerSecond, 0, {}};
  sums.add(kProcess, lost_kernel_activity(mark, sums.process_activity(kProcess)));
  sums.finish();
  EXPECT_NEAR(sums.gpu_busy_s().at("GPU-1").amount_between(7 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond), 3,
              0.01);
  Ledger ledger(RowLevel::kernel, energy, sums);
  ledger.add(kProcess, activity);
  ledger.add(kProcess, gap);
  EXPECT_NEAR(*ledger.finish().unattributed_j, 300, 1);
}

TEST(Ledger, AModuleHasTheEnergyOfAllItsPasses) {
  Activity activity = names();
  activity.scopes.push_back({10, 1, ScopeKind::phase, "optimizer"});
  activity.scope_tallies = {cpu(4, 1), cpu(7, 2), cpu(10, 1)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::module, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  const auto backward = [](const LedgerOutcome& ledger_outcome) {
    return ledger_outcome.row({"train", "backward", "net.conv"});
  };
  EXPECT_EQ(backward(outcome), nullptr);
  EXPECT_NEAR(outcome.energy({"net.conv"}), 3 * outcome.energy({"train", "optimizer"}), 1e-6);
  const LedgerOutcome layer_outcome =
      attribute_energy(RowLevel::layer, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  ASSERT_NE(backward(layer_outcome), nullptr);
  EXPECT_NEAR(outcome.energy({"net.conv"}),
              layer_outcome.energy({"train", "forward", "net.conv"}) + *backward(layer_outcome)->energy_j, 1e-6);
}

TEST(Ledger, CodeOfADataLoaderIsNoModule) {
  Activity activity = names();
  activity.scopes.push_back({10, 1, ScopeKind::phase, "dataloader"});
  activity.scopes.push_back({11, 10, ScopeKind::module, "worker.preprocessing"});
  activity.scope_tallies = {cpu(4, 1), cpu(11, 2)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::module, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(outcome.energy({"train", "dataloader", "worker.preprocessing"}), 2 * outcome.energy({"net.conv"}), 1e-6);
}

TEST(Ledger, AModuleNamedLikeASpecialRowHasARowOfItsOwn) {
  for (const std::string name : {"probe", "background", "background.density"}) {
    Activity activity = names();
    activity.scopes.push_back({10, 2, ScopeKind::module, name});
    activity.scope_tallies = {cpu(4, 1), cpu(10, 2)};
    const LedgerOutcome outcome =
        attribute_energy(RowLevel::module, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
    EXPECT_NEAR(outcome.energy({"module " + name}), 2 * outcome.energy({"net.conv"}), 1e-6) << name;
  }
}

TEST(ScopePaths, CountsOperationsWithUnknownInputs) {
  ScopePaths paths;
  for (const Scope& scope : names().scopes) paths.add(scope);
  paths.add({10, 5, ScopeKind::tensors, "[2]"});
  EXPECT_EQ(paths.count_operations().operation_count, 2u);
  EXPECT_EQ(paths.count_operations().tensorless_operation_count, 1u);
}

TEST(Ledger, WithAllCallsRecordedOperationsHaveTheirTimeAndTheLayerTheRest) {
  Activity activity = names();
  activity.scope_tallies = {cpu(4, 9, 20), cpu(5, 0.75, 3), cpu(9, 0.25, 1), cpu(7, 0, 1)};
  const LedgerOutcome outcome = attribute_energy(
      RowLevel::op, {.cpu_energy_j = make_constant_rate_curve(1000), .has_sampled_operations = false}, activity);
  const std::vector<std::string> layer = {"train", "forward", "net.conv"};
  const ReportRow* const conv = outcome.row({"train", "forward", "net.conv", "torch.conv2d"});
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->count, 3u);
  EXPECT_NEAR(conv->energy_j.value_or(0), 75, 1e-6);
  EXPECT_NEAR(outcome.energy({"train", "forward", "net.conv", "torch.relu"}), 25, 1e-6);
  EXPECT_NEAR(outcome.energy(layer), 900, 1e-6);
  EXPECT_EQ(outcome.row(layer)->count, 20u);
}

TEST(Ledger, AFunctionIsTheSameWhereverItIsCalledFrom) {
  Activity activity = names();
  activity.scopes.push_back({10, 7, ScopeKind::op, "torch.relu"});
  activity.scope_tallies = {cpu(4, 4.5, 20, 2), cpu(5, 0.75, 3, 3), cpu(9, 0.25, 1, 1),
                            cpu(7, 4, 20, 2),   cpu(10, 0.5, 2, 2), cpu(8, 1)};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::function, {.cpu_energy_j = make_constant_rate_curve(1100)}, activity);
  EXPECT_NEAR(outcome.energy({"torch.conv2d"}), 412.5, 1e-6);
  EXPECT_NEAR(outcome.energy({"torch.relu"}), 137.5 + 450, 1e-6);
  EXPECT_EQ(outcome.row({"torch.relu"})->count, 10u + 20u);
  EXPECT_NEAR(*outcome.result.unattributed_j, 100, 1e-6);  // the region, whose functions are unknown
}

TEST(Ledger, WithoutOperationsFunctionsAreSampledFunctions) {
  Activity activity = names();
  activity.scopes.push_back({10, 0, ScopeKind::function, "__main__.augment"});
  activity.scopes.push_back({11, 8, ScopeKind::function, "json.loads"});
  activity.scopes.push_back({12, 4, ScopeKind::function, "torch.nn.functional.conv2d"});
  activity.scope_tallies = {cpu(0, 2), cpu(8, 3), cpu(4, 4.5, 20, 2), cpu(5, 0.5, 3, 3)};
  activity.shares = {{0, 10, 2, 1000}, {8, 11, 5, 1000}, {4, 12, 9, 1000}};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::function, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(outcome.energy({"__main__.augment"}), 200, 1e-6);
  EXPECT_NEAR(outcome.energy({"json.loads"}), 300, 1e-6);
  EXPECT_NEAR(outcome.energy({"torch.conv2d"}), 500, 1e-6);  // its operation was recorded
  EXPECT_EQ(outcome.row({"json.loads"})->count, 0u);
  const LedgerOutcome layer_outcome =
      attribute_energy(RowLevel::layer, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_EQ(layer_outcome.row({"train", "forward", "net.conv"})->count, 20u);
}

TEST(Ledger, ProfilerSharesSplitACoarseScope) {
  Activity activity = names();
  activity.scope_tallies = {cpu(1, 10)};
  activity.shares = {{1, 4, 2, 3'000'000}, {1, 7, 1, 1'000'000}};
  const LedgerOutcome outcome =
      attribute_energy(RowLevel::layer, {.cpu_energy_j = make_constant_rate_curve(1000)}, activity);
  EXPECT_NEAR(outcome.energy({"train", "forward", "net.conv"}), 750, 1e-6);
  EXPECT_NEAR(outcome.energy({"train", "backward", "net.conv"}), 250, 1e-6);
  EXPECT_EQ(outcome.row({"train"}), nullptr);
}

// Energy of an idle device by cause.
std::map<IdleCause, double> sum_idle_by_cause(const LedgerResult& result) {
  std::map<IdleCause, double> causes;
  for (const IdleEntry& entry : result.idle) causes[entry.cause] += entry.energy_j.value_or(0);
  return causes;
}

TEST(Ledger, IdleEnergyOfAGpuBelongsToTheScopesThatItWaitedFor) {
  Activity activity = names();
  activity.kernel_tallies = {{0, 0, 4, 100, 4 * kNanosecondsPerSecond}};
  activity.waits = {{0, 4, WaitKind::host, 100, 3 * kNanosecondsPerSecond},
                    {0, 7, WaitKind::synchronization, 10, 2 * kNanosecondsPerSecond},
                    {0, 0, WaitKind::host, 1, 1 * kNanosecondsPerSecond}};
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const LedgerOutcome outcome = attribute_energy(RowLevel::layer, energy, activity);
  const ReportRow* const layer = outcome.row({"train", "forward", "net.conv"}, "gpu0");
  ASSERT_NE(layer, nullptr);
  EXPECT_NEAR(*layer->energy_j, 400, 1e-6);
  EXPECT_NEAR(*layer->waiting_j, 300, 1e-6);
  EXPECT_NEAR(*layer->waiting_s, 3, 1e-9);
  std::map<IdleCause, double> causes = sum_idle_by_cause(outcome.result);
  EXPECT_NEAR(causes[IdleCause::launch], 300, 1e-6);
  EXPECT_NEAR(causes[IdleCause::synchronization], 200, 1e-6);
  EXPECT_NEAR(causes[IdleCause::host], 100, 1e-6) << "in no scope, and there are no steps";
  double idle_j = 0;
  double idle_in_rows_j = 0;
  for (const IdleEntry& entry : outcome.result.idle) {
    idle_j += *entry.energy_j;
    if (entry.is_included_in_rows) idle_in_rows_j += *entry.energy_j;
  }
  EXPECT_NEAR(idle_j, *outcome.result.idle_j, 1e-6);
  double waiting_j = 0;
  for (const ReportRow& row : outcome.result.rows) waiting_j += row.waiting_j.value_or(0);
  EXPECT_NEAR(waiting_j, idle_in_rows_j, 1e-6);
}

TEST(Ledger, IdleEnergyOutsideOfScopesIsThatOfStepsOrLiesBetweenThem) {
  const auto make_activity_during = [](int begin_s, int end_s, Activity activity = {}) {
    activity.begin_ns = kSpan.begin_ns + begin_s * kNanosecondsPerSecond;
    activity.end_ns = kSpan.begin_ns + end_s * kNanosecondsPerSecond;
    activity.waits = {{0, 0, WaitKind::host, 1, 2 * kNanosecondsPerSecond}};
    return activity;
  };
  std::vector<Activity> activities = {make_activity_during(0, 4, names()), make_activity_during(4, 6),
                                      make_activity_during(6, 10)};
  for (Activity* const activity_with_step : {&activities[0], &activities[2]}) {
    activity_with_step->kernel_tallies = {{0, 0, 4, 100, 2 * kNanosecondsPerSecond}};
    StepRecord& step = activity_with_step->steps.emplace_back();
    step.begin_ns = activity_with_step->begin_ns;
    step.end_ns = activity_with_step->end_ns;
    step.is_traced = true;
    step.kernels = 100;
  }
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  std::map<IdleCause, double> causes = sum_idle_by_cause(attribute_energy(RowLevel::layer, energy, activities).result);
  EXPECT_NEAR(causes[IdleCause::between], 200, 1);
  EXPECT_NEAR(causes[IdleCause::host], 400, 1);
}

TEST(Ledger, IdleEnergyOfUntracedStepsBelongsToTheScopesOfTheHost) {
  Activity activity = names();
  activity.scopes.push_back({10, 1, ScopeKind::phase, "dataloader"});
  for (std::int64_t step = 0; step < 5; ++step) {
    StepRecord& record = activity.steps.emplace_back();
    record.number = step;
    record.begin_ns = kSpan.begin_ns + 2 * step * kNanosecondsPerSecond;
    record.end_ns = record.begin_ns + 2 * kNanosecondsPerSecond;
    record.is_traced = step == 0;
    record.kernels = step == 0 ? 10 : 0;
  }
  activity.scope_tallies = {cpu(4, 4), cpu(10, 6)};
  activity.kernel_tallies = {{0, 0, 4, 10, kNanosecondsPerSecond / 5}};
  activity.waits = {{0, 4, WaitKind::host, 1, kNanosecondsPerSecond / 100}};
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const LedgerOutcome outcome = attribute_energy(RowLevel::layer, energy, activity);
  std::map<IdleCause, double> causes = sum_idle_by_cause(outcome.result);
  EXPECT_NEAR(causes[IdleCause::unknown], 0, 1e-6);
  EXPECT_NEAR(causes[IdleCause::data], 0.6 * *outcome.result.idle_j, 0.02 * *outcome.result.idle_j);
  EXPECT_NEAR(causes[IdleCause::data] + causes[IdleCause::launch], *outcome.result.idle_j, 1e-6);
  EXPECT_GT(*outcome.row({"train", "dataloader"}, "gpu0")->waiting_j, 0);
}

// Kernels of light mode are extrapolated before a part of the run is added: all its steps count as traced.
TEST(Ledger, IdleEnergyInAPartOfALightRunBelongsToTheScopesOfTheHost) {
  Activity part = names();
  part.scopes.push_back({10, 1, ScopeKind::phase, "checkpoint_save"});
  part.begin_ns = kSpan.begin_ns;
  part.end_ns = kSpan.end_ns;
  part.scope_tallies = {cpu(4, 2), cpu(10, 8)};
  part.kernel_tallies = {{0, 0, 4, 10, 2 * kNanosecondsPerSecond}};
  part.waits = {{0, 4, WaitKind::host, 1, kNanosecondsPerSecond / 100}};
  ActivitySums sums(kSpan);
  sums.process_activity(kProcess).step_counts = {.traced_steps = 10, .all_steps = 100};
  sums.add(kProcess, part);
  sums.finish();
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  Ledger ledger(RowLevel::layer, energy, sums);
  ledger.add(kProcess, part);
  const LedgerResult result = ledger.finish();
  std::map<IdleCause, double> causes = sum_idle_by_cause(result);
  EXPECT_NEAR(causes[IdleCause::unknown], 0, 1e-6);
  EXPECT_NEAR(causes[IdleCause::checkpoint], 0.8 * *result.idle_j, 0.02 * *result.idle_j);
}

TEST(Ledger, IdleEnergyWithoutKnownWaitsIsStartupShutdownOrUnknown) {
  Activity activity = names();
  activity.kernel_tallies = {{0, 0, 4, 100, 4 * kNanosecondsPerSecond}};
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const TimeSpan active{kSpan.begin_ns + 2 * kNanosecondsPerSecond, kSpan.end_ns - 1 * kNanosecondsPerSecond};
  const LedgerOutcome outcome = attribute_energy(RowLevel::layer, energy, activity, active);
  std::map<IdleCause, double> causes = sum_idle_by_cause(outcome.result);
  EXPECT_NEAR(causes[IdleCause::startup], 200, 1);
  EXPECT_NEAR(causes[IdleCause::shutdown], 100, 1);
  EXPECT_NEAR(causes[IdleCause::unknown], 300, 1);
  EXPECT_FALSE(outcome.row({"train", "forward", "net.conv"}, "gpu0")->waiting_j) << "not known, and not zero";
}

// Kernels run for 2 s, then a checkpoint takes 8 s. The sum of the kernels was recorded for all 10 s.
TEST(Ledger, KernelsRanOutsideOfTheGapsInWhichTheGpuIsKnownToBeIdle) {
  Activity kernels = names();
  kernels.begin_ns = kSpan.begin_ns;
  kernels.end_ns = kSpan.end_ns;
  kernels.kernel_tallies = {{0, 0, 4, 100, 2 * kNanosecondsPerSecond}};
  Activity gap;
  gap.begin_ns = kSpan.begin_ns + 2 * kNanosecondsPerSecond;
  gap.end_ns = kSpan.end_ns;
  gap.waits = {{0, 4, WaitKind::host, 1, 8 * kNanosecondsPerSecond}};
  TimeCurve joules(kSpan, 1000);
  joules.add(gap.begin_ns, gap.end_ns, 800);
  joules.add(kSpan.begin_ns, gap.begin_ns, 1400);
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", joules});
  const LedgerOutcome outcome = attribute_energy(RowLevel::layer, energy, std::vector{kernels, gap});
  EXPECT_NEAR(outcome.energy({"train", "forward", "net.conv"}, "gpu0"), 1400, 1);
  EXPECT_NEAR(*outcome.row({"train", "forward", "net.conv"}, "gpu0")->waiting_j, 800, 1);
  EXPECT_NEAR(sum_idle_by_cause(outcome.result)[IdleCause::unknown], 0, 1);
}

// Gaps of 30 ms are too short to cut an interval of kernels, which then seems equally busy everywhere.
TEST(Ledger, IdleEnergyOfShortGapsInAnIntervalOfKernelsHasItsCauses) {
  std::vector<Activity> activities = {names()};
  activities.front().begin_ns = kSpan.begin_ns;
  activities.front().end_ns = kSpan.end_ns;
  activities.front().kernel_tallies = {{0, 0, 4, 100, 7 * kNanosecondsPerSecond}};
  for (std::int64_t gap = 0; gap < 100; ++gap) {
    Activity& activity = activities.emplace_back();
    activity.begin_ns = kSpan.begin_ns + gap * 100 * kNanosecondsPerMillisecond + 40 * kNanosecondsPerMillisecond;
    activity.end_ns = activity.begin_ns + 30 * kNanosecondsPerMillisecond;
    activity.waits = {{0, 4, WaitKind::host, 1, 30 * kNanosecondsPerMillisecond}};
  }
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const LedgerOutcome outcome = attribute_energy(RowLevel::layer, energy, activities);
  std::map<IdleCause, double> causes = sum_idle_by_cause(outcome.result);
  EXPECT_NEAR(causes[IdleCause::unknown], 0, 1e-6);
  EXPECT_NEAR(causes[IdleCause::launch], 300, 1e-6);
  EXPECT_NEAR(*outcome.row({"train", "forward", "net.conv"}, "gpu0")->waiting_j, 300, 1e-6);
}

// No kernel ran in the analysed part; the first and the last kernel of the run lie before, after, or around it.
TEST(Ledger, APartOfARunWithoutKernelsIsNeitherItsStartNorItsEnd) {
  const auto make_kernel_activity = [](int begin_s, int end_s) {
    Activity activity = names();
    activity.begin_ns = kSpan.begin_ns + begin_s * kNanosecondsPerSecond;
    activity.end_ns = kSpan.begin_ns + end_s * kNanosecondsPerSecond;
    activity.kernel_tallies = {{0, 0, 4, 100, kNanosecondsPerSecond}};
    return activity;
  };
  const auto sum_idle_causes_between = [&](int first_s, int last_s) {
    ActivitySums sums(kSpan);
    sums.add(kProcess, names());
    sums.add_activity_outside_span(kProcess, make_kernel_activity(first_s, first_s + 1));
    sums.add_activity_outside_span(kProcess, make_kernel_activity(last_s - 1, last_s));
    sums.finish();
    EXPECT_TRUE(sums.has_activity());
    MachineEnergy energy;
    energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
    return sum_idle_by_cause(Ledger(RowLevel::layer, energy, sums).finish());
  };
  EXPECT_NEAR(sum_idle_causes_between(-5, 20)[IdleCause::unknown], 1000, 1);
  EXPECT_NEAR(sum_idle_causes_between(15, 20)[IdleCause::startup], 1000, 1);
  EXPECT_NEAR(sum_idle_causes_between(-5, -2)[IdleCause::shutdown], 1000, 1);
}

TEST(Ledger, GpuEnergyBelongsToRunningKernelsAndIsIdleBetween) {
  Activity activity = names();
  activity.kernel_tallies = {{0, 0, 4, 100, 6 * kNanosecondsPerSecond}, {1, 0, 0, 10, 2 * kNanosecondsPerSecond}};
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const LedgerOutcome layer_outcome = attribute_energy(RowLevel::layer, energy, activity);
  EXPECT_NEAR(layer_outcome.energy({"train", "forward", "net.conv"}, "gpu0"), 600, 1e-6);
  EXPECT_NEAR(*layer_outcome.result.idle_j, 200, 1e-6);
  EXPECT_NEAR(layer_outcome.energy({"program"}, "gpu0"), 200, 1e-6) << "launched in no scope";
  EXPECT_NEAR(*layer_outcome.result.unattributed_j, 0, 1e-6);
  const LedgerOutcome by_kernel = attribute_energy(RowLevel::kernel, energy, activity);
  EXPECT_NEAR(by_kernel.energy({"_Z4gemmv"}, "gpu0"), 600, 1e-6);
  EXPECT_EQ(by_kernel.row({"_Z4gemmv"}, "gpu0")->display_name, "gemm()");
  EXPECT_NEAR(by_kernel.energy({"HtoD"}, "gpu0"), 200, 1e-6);
}

TEST(Ledger, AStackHasLayersAndEndsInTheirKernels) {
  Activity activity = names();
  activity.scope_tallies = {cpu(4, 2)};
  activity.kernel_tallies = {{0, 0, 4, 100, 6 * kNanosecondsPerSecond}, {1, 0, 4, 10, 2 * kNanosecondsPerSecond}};
  MachineEnergy energy{.cpu_energy_j = make_constant_rate_curve(100)};
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const LedgerOutcome stacks = attribute_energy(RowLevel::stack, energy, activity);
  EXPECT_NEAR(stacks.energy({"train", "forward", "net.conv", "gemm()"}, "gpu0"), 600, 1e-6);
  EXPECT_NEAR(stacks.energy({"train", "forward", "net.conv", "HtoD"}, "gpu0"), 200, 1e-6);
  EXPECT_NEAR(stacks.energy({"train", "forward", "net.conv"}), 20, 1e-6);
  EXPECT_NEAR(*stacks.result.attributed_j, *attribute_energy(RowLevel::layer, energy, activity).result.attributed_j,
              1e-6);
}

TEST(Ledger, ConcurrentKernelsShareTheEnergy) {
  Activity activity = names();
  activity.kernel_tallies = {{0, 0, 4, 100, 15 * kNanosecondsPerSecond}, {1, 0, 4, 10, 5 * kNanosecondsPerSecond}};
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const LedgerOutcome outcome = attribute_energy(RowLevel::kernel, energy, activity);
  EXPECT_NEAR(outcome.energy({"_Z4gemmv"}, "gpu0"), 750, 1e-6);
  EXPECT_NEAR(*outcome.result.idle_j, 0, 1e-6);
}

TEST(Ledger, UntracedStepsEqualTracedOnes) {
  Activity activity = names();
  activity.kernel_tallies = {{0, 0, 4, 100, kNanosecondsPerSecond}};
  for (int i = 0; i < 10; ++i) {
    activity.steps.push_back({i, i * kNanosecondsPerSecond, (i + 1) * kNanosecondsPerSecond, 0, 0, 0, i == 0, i == 0});
  }
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  const LedgerOutcome outcome = attribute_energy(RowLevel::kernel, energy, activity);
  EXPECT_EQ(outcome.row({"_Z4gemmv"}, "gpu0")->count, 1000u);
  EXPECT_NEAR(outcome.row({"_Z4gemmv"}, "gpu0")->time_s, 10, 1e-6);
  EXPECT_NEAR(outcome.energy({"_Z4gemmv"}, "gpu0"), 1000, 1e-6);
}

TEST(Ledger, WithoutSamplesTimesRemain) {
  Activity activity = names();
  activity.scope_tallies = {cpu(8, 4)};
  activity.kernel_tallies = {{0, 0, 4, 100, kNanosecondsPerSecond}};
  const LedgerOutcome outcome = attribute_energy(RowLevel::layer, {}, activity);
  ASSERT_NE(outcome.row({"setup"}), nullptr);
  EXPECT_FALSE(outcome.row({"setup"})->energy_j);
  EXPECT_NEAR(outcome.row({"setup"})->time_s, 4, 1e-9);
  ASSERT_NE(outcome.row({"train", "forward", "net.conv"}, "GPU-1"), nullptr);
  EXPECT_FALSE(outcome.result.attributed_j);
}

// 1000 steps of 10 ms; two were traced, and their kernels are reported for the 20 ms in which they ran.
TEST(Ledger, KernelsOfTwoTracedStepsGetTheEnergyOfAllSteps) {
  Activity activity = names();
  activity.begin_ns = 0;
  activity.end_ns = kNanosecondsPerSecond / 50;
  activity.kernel_tallies = {{0, 0, 4, 20, 4'000'000}};  // 2 ms of each step
  for (std::int64_t i = 0; i < 1000; ++i) {
    activity.steps.push_back({.number = i,
                              .begin_ns = i * kNanosecondsPerSecond / 100,
                              .end_ns = (i + 1) * kNanosecondsPerSecond / 100,
                              .kernels = i < 2 ? 10U : 0U,
                              .is_traced = i < 2});
  }
  MachineEnergy energy;
  energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
  ActivitySums sums(kSpan);
  sums.add(kProcess, activity);
  sums.finish();
  Ledger ledger(RowLevel::layer, energy, sums);
  ledger.add(kProcess, activity);
  const LedgerOutcome outcome{ledger.finish()};
  const ReportRow* const row = outcome.row({"train", "forward", "net.conv"}, "gpu0");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->count, 10'000u);
  EXPECT_NEAR(row->time_s, 2, 1e-6);
  EXPECT_NEAR(*row->energy_j, 200, 1e-6);
  EXPECT_NEAR(*outcome.result.idle_j, 800, 1e-6);
  EXPECT_NEAR(*outcome.result.unattributed_j, 0, 1e-6);
}

}  // namespace
}  // namespace joulemap::attribution
