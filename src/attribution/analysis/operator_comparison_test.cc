// SPDX-License-Identifier: Apache-2.0
//
// Matches the work of two programs whose modules and kernels have different names.
#include "attribution/analysis/operator_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "statistics/random.h"
#include "support/ledger_example.h"

namespace joulemap::attribution {
namespace {

using Path = std::vector<std::string>;

constexpr std::uint64_t kMatchingSeed = 20261118;
constexpr char kLinearOperation[] = "torch.nn.functional.linear [8,16,32] [64,32]";
constexpr char kGemmKernelName[] = "nvjet_tst_128x256";

ReportRow operation_row(Path path, double energy_j, std::uint64_t count = 400, const std::string& device = "gpu0") {
  ReportRow row;
  row.name = path.back();
  row.path = std::move(path);
  row.device = device;
  row.count = count;
  row.time_s = energy_j / 300;
  row.energy_j = energy_j;
  row.low_j = 0.99 * energy_j;
  row.high_j = 1.01 * energy_j;
  return row;
}

ReportResult report_of_rows(std::vector<ReportRow> rows) {
  ReportResult result;
  result.rows = std::move(rows);
  return result;
}

// A run of 400 steps with these rows; nothing else used energy.
OperatorRecording make_operator_recording(std::vector<ReportRow> rows, std::vector<IdleEntry> idle = {}) {
  double sum_j = 0;
  for (const ReportRow& row : rows) sum_j += *row.energy_j;
  for (const IdleEntry& entry : idle) sum_j += *entry.energy_j;
  ReportResult result = make_training_report();
  result.by = "operator";
  result.domains.resize(1);
  result.domains.front().joules = sum_j;
  result.domains.front().uncertainty_j = 0;
  result.totals = total_energy(result.domains);
  result.rows = std::move(rows);
  result.idle = idle;
  OperatorRecording recording{{.rows = result, .elapsed_s = 10, .energy_j = sum_j}, {}};
  recording.work = {collect_operator_work(result, result), std::move(idle)};
  return recording;
}

RunDifference compare(const OperatorRecording& a, const OperatorRecording& b) {
  Result<RunDifference> run_difference =
      compare_operators({&a, 1}, {&b, 1}, {.per = "step", .run_sd = 0.002, .whole_run = true});
  EXPECT_TRUE(run_difference) << run_difference.error().message;
  return run_difference ? *run_difference : RunDifference();
}

const DifferenceEntry& entry(const RunDifference& difference, const Path& path) {
  for (const DifferenceEntry& difference_entry : difference.entries) {
    if (difference_entry.path == path) return difference_entry;
  }
  ADD_FAILURE() << "no entry " << path.front();
  static const DifferenceEntry empty_entry;
  return empty_entry;
}

TEST(OperatorComparison, EqualWorkUnderOtherNamesIsOneGroup) {
  const RunDifference difference =
      compare(make_operator_recording(
                  {operation_row({"train", "forward", "encoder.0.mlp", kGemmKernelName, kLinearOperation}, 400)}),
              make_operator_recording({operation_row(
                  {"train", "forward", "Dense_1", "sm90_xmma_gemm_bf16bf16", "dot_general [128,32] [32,64]"}, 600)}));
  const DifferenceEntry& matmul_entry = entry(difference, {"matmul", "forward", "128x64x32"});
  EXPECT_NEAR(*matmul_entry.difference_j, 0.5, 1e-9);
  EXPECT_EQ(matmul_entry.verdict, ChangeVerdict::grew);
  ASSERT_TRUE(matmul_entry.group);
  EXPECT_EQ(matmul_entry.group->a.operations, Path{"torch.nn.functional.linear"});
  EXPECT_EQ(matmul_entry.group->b.operations, Path{"dot_general"});
  EXPECT_EQ(matmul_entry.group->a.kernels.front().name, kGemmKernelName);
}

TEST(OperatorComparison, ShapesThatShareMostSizesAreMatched) {
  const RunDifference difference =
      compare(make_operator_recording(
                  {operation_row({"train", "forward", "m", kGemmKernelName, "torch.mm [128,32] [32,64]"}, 400),
                   operation_row({"train", "forward", "m", kGemmKernelName, "torch.mm [128,32] [32,999]"}, 300)}),
              make_operator_recording(
                  {operation_row({"train", "forward", "m", kGemmKernelName, "torch.mm [512,32] [32,64]"}, 1600),
                   operation_row({"train", "forward", "m", kGemmKernelName, "torch.mm [512,32] [32,999]"}, 1200)}));
  const DifferenceEntry& matmul_entry = entry(difference, {"matmul", "forward", "128x64x32 -> 512x64x32"});
  EXPECT_NEAR(matmul_entry.a->energy_j, 1, 1e-9);
  EXPECT_NEAR(matmul_entry.b->energy_j, 4, 1e-9);
  EXPECT_TRUE(matmul_entry.group->has_different_shapes);
  EXPECT_NEAR(entry(difference, {"matmul", "forward", "128x999x32 -> 512x999x32"}).b->energy_j, 3, 1e-9);
}

TEST(OperatorComparison, KernelsWithoutOperationAreMatchedByKindAndPhase) {
  const RunDifference difference = compare(
      make_operator_recording(
          {operation_row({"train", "backward", "m", "vectorized_elementwise_kernel", "MulBackward0 [64]"}, 400),
           operation_row({"train", "backward", "m", "vectorized_elementwise_kernel", "AddBackward0 [8,64]"}, 400)}),
      make_operator_recording({operation_row({"train", "backward", "", "triton_poi_fused_add_mul_0"}, 400)}));
  const DifferenceEntry& elementwise_entry = entry(difference, {"elementwise", "backward", "several shapes"});
  EXPECT_NEAR(elementwise_entry.a->energy_j, 2, 1e-9);
  EXPECT_NEAR(elementwise_entry.b->energy_j, 1, 1e-9);
}

TEST(OperatorComparison, WorkOfOneSideKeepsItsShapeAndWaitingItsCause) {
  const RunDifference difference = compare(
      make_operator_recording({operation_row({"train", "forward", "m", kGemmKernelName, kLinearOperation}, 400)}),
      make_operator_recording(
          {operation_row({"train", "forward", "m", kGemmKernelName, kLinearOperation}, 400),
           operation_row({"train", "forward", "m", "softmax_kernel", "torch.softmax [8,8]"}, 400)},
          {{.cause = IdleCause::data, .device = "gpu0", .energy_j = 80.0, .low_j = 79.0, .high_j = 81.0}}));
  EXPECT_EQ(entry(difference, {"softmax", "forward", "[8,8]"}).verdict, ChangeVerdict::appeared);
  EXPECT_NEAR(*entry(difference, {"waiting", "data"}).difference_j, 0.2, 1e-9);
}

TEST(OperatorComparison, WaitingWithoutEnergyHasNoCount) {
  const RecordedWork waiting_only_work{{}, {{.cause = IdleCause::data, .device = "gpu0", .energy_j = 0.0}}};
  const MatchedWork matched = match_operator_work({&waiting_only_work, 1}, {&waiting_only_work, 1});
  ASSERT_EQ(matched.a.size(), 1u);
  ASSERT_EQ(matched.a[0].size(), 1u);
  EXPECT_EQ(matched.a[0][0].count, std::nullopt);
}

// Products of different shapes: `rows` x 64 x 32, (rows + 1) x 64 x 32 ..., with less and less energy.
RecordedWork make_matmuls_of_shapes(int shapes, int rows) {
  RecordedWork recorded_work;
  for (int i = 0; i < shapes; ++i) {
    OperatorWork& work = recorded_work.work.emplace_back();
    work.device = "gpu0";
    work.phase = "forward";
    work.kind = scopes::OperationKind::matmul;
    work.shape.key = work.shape.text = std::to_string(rows + i) + "x64x32";
    work.shape.sizes = {rows + i, 64, 32};
    work.energy_j = 1e6 - i;
  }
  return recorded_work;
}

TEST(OperatorComparison, OnlyTheLargestOfManyShapesAreMatchedOneToOne) {
  constexpr int kShapes = 1500;
  const RecordedWork work_a = make_matmuls_of_shapes(kShapes, 10000);
  const RecordedWork work_b = make_matmuls_of_shapes(kShapes, 20000);
  const MatchedWork matched = match_operator_work({&work_a, 1}, {&work_b, 1});
  ASSERT_EQ(matched.b[0].size(), 1001u) << "1000 groups of one shape each, and one of the rest";
  const auto is_several_shapes_row = [](const ReportRow& row) { return row.path.back() == "several shapes"; };
  EXPECT_EQ(std::ranges::count_if(matched.b[0], is_several_shapes_row), 1);
  double energy_j = 0;
  for (const ReportRow& row : matched.b[0]) energy_j += *row.energy_j;
  EXPECT_NEAR(energy_j, kShapes * 1e6 - kShapes * (kShapes - 1) / 2.0, 1e-3);
}

TEST(OperatorComparison, KernelsOfUnsampledStepsHaveTheOperationsOfSampledOnes) {
  const ReportResult whole_run_report =
      report_of_rows({operation_row({"train", "forward", "m", kGemmKernelName, kLinearOperation}, 30),
                      operation_row({"train", "forward", "m", kGemmKernelName, "torch.mm [8,8] [8,8]"}, 10)});
  const std::vector<OperatorWork> work = collect_operator_work(
      report_of_rows({operation_row({"train", "forward", "m", kGemmKernelName}, 100)}), whole_run_report);
  ASSERT_EQ(work.size(), 2u);
  const auto linear_work = std::ranges::find(work, "torch.nn.functional.linear", &OperatorWork::operation);
  ASSERT_NE(linear_work, work.end());
  EXPECT_NEAR(linear_work->energy_j, 75, 1e-9);
  EXPECT_EQ(linear_work->shape.key, "128x64x32");
}

TEST(OperatorComparison, RecomputedModulesHaveTheOperationsOfTheirForwardPass) {
  const ReportResult whole_run_report =
      report_of_rows({operation_row({"train", "forward", "m", kGemmKernelName, kLinearOperation}, 30)});
  const std::vector<OperatorWork> work = collect_operator_work(
      report_of_rows({operation_row({"train", "recompute", "m", kGemmKernelName}, 100)}), whole_run_report);
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(work.front().phase, "recompute");
  EXPECT_EQ(work.front().shape.key, "128x64x32");
}

TEST(OperatorComparison, ProbingIsNoPartOfTheRun) {
  EXPECT_TRUE(collect_operator_work(report_of_rows({operation_row({"probe"}, 100)}), {}).empty());
}

// Rows with random phases, operations, shapes and kernels.
std::vector<ReportRow> random_rows(statistics::Random& random) {
  const auto pick_random = [&](const Path& choices) { return choices[random.uniform_below(choices.size())]; };
  std::vector<ReportRow> rows;
  const std::size_t count = 1 + random.uniform_below(20);
  for (std::size_t i = 0; i < count; ++i) {
    Path path = {
        "train", pick_random({"forward", "backward", "recompute", "optimizer", ""}), pick_random({"", "a", "b.c"}),
        pick_random({kGemmKernelName, "vectorized_elementwise_kernel", "HtoD", "CatArrayBatchedCopy", "unnamed"})};
    const std::string operation = pick_random({"", "torch.mm", "torch.add", "torch.cat", "torch.relu"});
    const std::string size = std::to_string(1 << random.uniform_below(4));
    if (!operation.empty()) path.push_back(operation + pick_random({"", " [" + size + ",8] [8," + size + "]", " ()"}));
    rows.push_back(operation_row(std::move(path), 100 * random.uniform(), 1 + random.uniform_below(900)));
  }
  return rows;
}

TEST(OperatorComparison, DifferencesOfGroupsAddUpToTheDifferenceOfTheTotals) {
  statistics::Random random(kMatchingSeed);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kMatchingSeed) + ", round " + std::to_string(round));
    const std::vector<IdleEntry> idle = {{.cause = IdleCause::launch, .device = "gpu0", .energy_j = random.uniform()}};
    OperatorRecording a = make_operator_recording(random_rows(random), idle);
    const OperatorRecording b = make_operator_recording(random_rows(random));
    a.reports.energy_j = *a.reports.energy_j + 50;
    a.reports.rows.domains.front().joules = *a.reports.energy_j;  // 50 J that no row has
    a.reports.rows.totals = total_energy(a.reports.rows.domains);
    const RunDifference difference = compare(a, b);
    double sum_j = 0;
    double energy_a_j = 0;
    double matched_energy_a_j = 0;
    for (const DifferenceEntry& difference_entry : difference.entries) {
      sum_j += *difference_entry.difference_j;
      energy_a_j += difference_entry.a ? difference_entry.a->energy_j : 0;
      if (difference_entry.path.front() != kUnassignedGroupKind && difference_entry.a)
        matched_energy_a_j += difference_entry.a->energy_j;
    }
    EXPECT_NEAR(sum_j, *difference.total.difference_j, 1e-9);
    EXPECT_NEAR(energy_a_j, difference.total.a->energy_j, 1e-9);
    EXPECT_NEAR(400 * matched_energy_a_j, *a.reports.energy_j - 50, 1e-6) << "matching neither loses nor repeats work";
    EXPECT_NEAR(entry(difference, {std::string(kUnassignedGroupKind)}).a->energy_j, 50.0 / 400, 1e-9);
  }
}

TEST(OperatorComparison, AProgramComparedWithItselfHasNoCause) {
  statistics::Random random(kMatchingSeed);
  const OperatorRecording run = make_operator_recording(random_rows(random));
  const RunDifference difference = compare(run, run);
  EXPECT_TRUE(difference.causes.empty());
  for (const DifferenceEntry& difference_entry : difference.entries)
    EXPECT_NEAR(*difference_entry.difference_j, 0, 1e-12);
}

}  // namespace
}  // namespace joulemap::attribution
