// SPDX-License-Identifier: Apache-2.0
#include "predict/model/physics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "predict/model/explanation.h"
#include "predict/model/launch_counts.h"
#include "predict/model/operation_model.h"

namespace joulemap::predict {
namespace {

Operation make_relu(std::int64_t width) {
  Operation operation;
  operation.kind = Kind::activation;
  operation.form = "relu";
  operation.parameters = {{"batch", 1}, {"rows", 1}, {"width", width}};
  return operation;
}

Operation dense(std::int64_t rows, std::int64_t in, std::int64_t out, Dtype dtype) {
  Operation operation;
  operation.kind = Kind::dense;
  operation.parameters = {{"rows", rows}, {"in", in}, {"out", out}, {"bias", 0}};
  operation.dtype = dtype;
  return operation;
}

Operation convolution(std::int64_t groups, Dtype dtype) {
  Operation operation;
  operation.kind = Kind::convolution;
  operation.parameters = {{"batch", 4},  {"channels", 768}, {"out", 768},   {"height", 1},      {"width", 128},
                          {"kernel", 1}, {"stride", 1},     {"padding", 0}, {"groups", groups}, {"bias", 1}};
  operation.dtype = dtype;
  return operation;
}

PhysicsObservation make_observation(const Operation& operation, const Datasheet& datasheet) {
  return {coefficient_group_names(operation), time_terms(operation, compute_work(operation), datasheet, false), 0, 0};
}

TEST(Physics, FindsTheCoefficientsThatMadeTheTimes) {
  const Datasheet datasheet = *find_datasheet("h200");
  std::vector<PhysicsObservation> rows;
  for (std::int64_t width = 1000; width < 400'000'000; width = width * 3 / 2) {
    PhysicsObservation row = make_observation(make_relu(width), datasheet);
    row.time_s =
        2 * row.terms[PhysicsTerm::launch] + 1.1 * row.terms[PhysicsTerm::cache] + 1.3 * row.terms[PhysicsTerm::memory];
    rows.push_back(row);
  }
  const TimeCoefficients fitted_coefficients = fit_time_coefficients(rows);
  for (const PhysicsObservation& row : rows)
    EXPECT_NEAR(physical_time_s(fitted_coefficients, row) / row.time_s, 1, 0.12);
}

TEST(Physics, AnUnobservedTermOfAGroupStaysBounded) {
  const Datasheet datasheet = *find_datasheet("h200");
  std::vector<PhysicsObservation> rows;
  for (std::int64_t width = 1000; width < 2'000'000; width = width * 5 / 4) {  // fits the cache
    PhysicsObservation row = make_observation(make_relu(width), datasheet);
    row.time_s = 2 * row.terms[PhysicsTerm::launch] + 1.1 * row.terms[PhysicsTerm::cache];
    row.time_s *= width % 2 == 0 ? 1.1 : 0.9;
    rows.push_back(row);
  }
  const TimeCoefficients fitted_coefficients = fit_time_coefficients(rows);
  const PhysicsObservation large_observation = make_observation(make_relu(400'000'000), datasheet);
  const double ideal_s = large_observation.terms[PhysicsTerm::memory];
  EXPECT_GT(physical_time_s(fitted_coefficients, large_observation), 0.3 * ideal_s);
  EXPECT_LT(physical_time_s(fitted_coefficients, large_observation), 5 * ideal_s);
}

TEST(Physics, MisalignedWidthsFormSeparateGroups) {
  EXPECT_EQ(alignment_class(dense(64, 1024, 1024, Dtype::bf16)), 0);
  EXPECT_EQ(alignment_class(dense(64, 1024, 30522, Dtype::bf16)), 2);
  EXPECT_EQ(alignment_class(dense(64, 1395, 1024, Dtype::bf16)), 3);
  EXPECT_EQ(alignment_class(dense(64, 1395, 1024, Dtype::fp32)), 0);
}

TEST(Physics, GroupedConvolutionsShareDataAcrossTypes) {
  const Operation fp32 = convolution(4, Dtype::fp32);
  const Operation tf32 = convolution(4, Dtype::tf32);
  EXPECT_NE(coefficient_group_names(fp32)[0], coefficient_group_names(tf32)[0]);
  EXPECT_EQ(coefficient_group_names(fp32)[1], coefficient_group_names(tf32)[1]);
  EXPECT_NE(coefficient_group_names(fp32)[1], coefficient_group_names(convolution(1, Dtype::fp32))[1]);
  const Datasheet datasheet = *find_datasheet("h200");
  EXPECT_GT(make_observation(convolution(1, Dtype::fp32), datasheet).terms[PhysicsTerm::arithmetic],
            5 * make_observation(convolution(1, Dtype::tf32), datasheet).terms[PhysicsTerm::arithmetic]);
}

TEST(Physics, SequentialGroupsTakeOneLaunchEach) {
  const Datasheet datasheet = *find_datasheet("h200");
  const TimeTerms few_group_terms = make_observation(convolution(4, Dtype::fp32), datasheet).terms;
  const TimeTerms many_group_terms = make_observation(convolution(64, Dtype::fp32), datasheet).terms;
  EXPECT_GE(few_group_terms[PhysicsTerm::serial_groups], 4e-6);
  EXPECT_GE(many_group_terms[PhysicsTerm::serial_groups], 64e-6);
  EXPECT_LT(make_observation(convolution(1, Dtype::fp32), datasheet).terms[PhysicsTerm::serial_groups], 1e-6);
}

TEST(Physics, SequentialGroupsAreComputeBound) {
  OperationModel model;
  model.datasheet = *find_datasheet("h200");
  model.times[""][PhysicsTerm::elements] = 1;
  model.times[""][PhysicsTerm::serial_groups] = 1;
  EXPECT_EQ(explain_operation(model, convolution(4, Dtype::fp32), {}).bound, LimitingResource::compute);
  EXPECT_EQ(explain_operation(model, make_relu(1 << 20), {}).bound, LimitingResource::memory);
}

TEST(Physics, TensorCoresDoNotSpeedUpDepthwiseConvolutions) {
  const Datasheet datasheet = *find_datasheet("h200");
  const TimeTerms bf16_terms = make_observation(convolution(768, Dtype::bf16), datasheet).terms;
  const TimeTerms fp32_terms = make_observation(convolution(768, Dtype::fp32), datasheet).terms;
  EXPECT_DOUBLE_EQ(bf16_terms[PhysicsTerm::arithmetic], fp32_terms[PhysicsTerm::arithmetic]);
  EXPECT_LT(make_observation(convolution(4, Dtype::bf16), datasheet).terms[PhysicsTerm::arithmetic],
            make_observation(convolution(4, Dtype::fp32), datasheet).terms[PhysicsTerm::arithmetic]);
}

TEST(LaunchCounts, OutliersWithHundredsOfLaunchesHaveLittleWeight) {
  std::vector<MeasuredOperation> rows(10);
  for (MeasuredOperation& row : rows) {
    row.operation = convolution(4, Dtype::bf16);
    row.launches = 4;
  }
  rows.back().launches = 400;
  const double launches = launch_count(fit_launch_counts(rows), convolution(4, Dtype::bf16));
  EXPECT_GT(launches, 4);
  EXPECT_LT(launches, 8);
}

TEST(Physics, HostCopiesIdentifyTheBusAndPinnedOnesHaveLittleWeight) {
  const Datasheet datasheet = *find_datasheet("h200");
  std::vector<PhysicsObservation> rows;
  const auto make_host_copy = [](std::int64_t batch, bool pinned) {
    Operation operation;
    operation.kind = Kind::input;
    operation.parameters = {
        {"batch", batch}, {"channels", 3}, {"height", 224}, {"width", 224}, {"pinned", pinned ? 1 : 0}};
    return operation;
  };
  for (std::int64_t batch = 4; batch <= 256; batch += 4) {
    for (const bool pinned : {false, true}) {
      rows.push_back(make_observation(make_host_copy(batch, pinned), datasheet));
      rows.back().time_s = compute_work(make_host_copy(batch, pinned)).bytes / (pinned ? 55e9 : 9e9);
    }
  }
  const TimeCoefficients fitted_coefficients = fit_time_coefficients(rows);
  for (const PhysicsObservation& row : rows)
    EXPECT_NEAR(physical_time_s(fitted_coefficients, row) / row.time_s, 1, 0.35);
}

TEST(Physics, PadsProductsToWholeTilesAndWaves) {
  const Datasheet datasheet = *find_datasheet("h200");
  const MatrixProduct small_product{64, 64, 512, 1};
  const MatrixProduct large_product{8192, 8192, 4096, 1};
  EXPECT_GT(padded_flops(small_product, datasheet), 10 * 2 * small_product.m * small_product.n * small_product.k);
  EXPECT_LT(padded_flops(large_product, datasheet), 1.3 * 2 * large_product.m * large_product.n * large_product.k);
}

TEST(Physics, PowerStaysBetweenIdleAndTheLimit) {
  const Datasheet datasheet = *find_datasheet("h200");
  PhysicsObservation row = make_observation(make_relu(1'000'000), datasheet);
  row.time_s = 1;
  EXPECT_EQ(physical_power_w({{"", {0, 0, 0, 0, 0, 0, 0}}}, row, datasheet), datasheet.idle_w);
  EXPECT_LE(physical_power_w({{"", {0, 0, 0, 0, 0, 0, 99}}}, row, datasheet), 1.2 * datasheet.power_limit_w);
}

std::string found_name(std::string_view name) {
  const std::optional<Datasheet> datasheet = find_datasheet(name);
  return datasheet ? datasheet->name : "";
}

TEST(Datasheet, NamesOfTheDriverAreFound) {
  EXPECT_EQ(found_name("NVIDIA A100-SXM4-80GB"), "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(found_name("NVIDIA A100-SXM-80GB"), "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(found_name("NVIDIA A100 80GB PCIe"), "NVIDIA A100 PCIe 80GB");
  EXPECT_EQ(found_name("NVIDIA H100 80GB HBM3"), "NVIDIA H100 SXM");
  EXPECT_EQ(found_name("NVIDIA L4"), "NVIDIA L4");
  EXPECT_EQ(found_name("NVIDIA A10"), "NVIDIA A10");
  EXPECT_EQ(found_name("Tesla T4"), "NVIDIA T4");
  EXPECT_EQ(found_name("Tesla V100-SXM2-16GB"), "NVIDIA V100 SXM2");
  EXPECT_EQ(found_name("Quadro P5000"), "NVIDIA Quadro P5000");
}

TEST(Datasheet, EveryDatasheetIsFoundByItsOwnName) {
  for (const Datasheet& datasheet : known_datasheets()) EXPECT_EQ(found_name(datasheet.name), datasheet.name);
}

TEST(Datasheet, ShortNamesMatchWholeWords) {
  EXPECT_EQ(found_name("h200"), "NVIDIA H200");
  EXPECT_EQ(found_name("a100"), "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(found_name("a100-40gb"), "NVIDIA A100 SXM4 40GB");
  EXPECT_EQ(found_name("h100"), "NVIDIA H100 SXM");
  EXPECT_EQ(found_name("h100pcie"), "NVIDIA H100 PCIe");
  EXPECT_EQ(found_name("H100 SXM5"), "NVIDIA H100 SXM");
  EXPECT_EQ(found_name("h100sxm5"), "NVIDIA H100 SXM");
  EXPECT_EQ(found_name("h100sxm"), "NVIDIA H100 SXM");
  EXPECT_EQ(found_name("H100 GPU"), "NVIDIA H100 SXM");
  EXPECT_EQ(found_name("NVIDIA H200 SXM"), "NVIDIA H200");
  EXPECT_EQ(found_name("NVIDIA H200 141GB HBM3e"), "NVIDIA H200");
  EXPECT_EQ(found_name("a100sxm"), "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(found_name("a100sxm-40gb"), "NVIDIA A100 SXM4 40GB");
  EXPECT_EQ(found_name("a100sxm440gb"), "NVIDIA A100 SXM4 40GB");
  EXPECT_EQ(found_name("a100 80"), "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(found_name("a100 40 GB"), "NVIDIA A100 SXM4 40GB");
  EXPECT_EQ(found_name("a100 pcie 40"), "NVIDIA A100 PCIe 40GB");
  EXPECT_EQ(found_name("l4"), "NVIDIA L4");
  EXPECT_EQ(found_name("a10"), "NVIDIA A10");
  EXPECT_EQ(found_name("rtx4090"), "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(found_name("p5000"), "NVIDIA Quadro P5000");
}

TEST(Datasheet, OtherGpusAndPartsOfNamesAreUnknown) {
  for (const char* const name : {"",
                                 "Voodoo 2",
                                 "a",
                                 "0",
                                 "h20",
                                 "L40",
                                 "nvidia",
                                 "nvidia rtx",
                                 "80gb",
                                 "80",
                                 "sxm",
                                 "gpu",
                                 "A10G",
                                 "a100 30",
                                 "a100sxm5",
                                 "v100sxm4",
                                 "NVIDIA T400",
                                 "NVIDIA H100 NVL",
                                 "NVIDIA A100-SXM-64GB",
                                 "NVIDIA GH200 480GB",
                                 "Tesla V100-PCIE-16GB",
                                 "NVIDIA GeForce RTX 4090 Laptop GPU",
                                 "NVIDIA GeForce RTX 3080 Ti"}) {
    EXPECT_EQ(found_name(name), "") << name;
  }
}

}  // namespace
}  // namespace joulemap::predict
