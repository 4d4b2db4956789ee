// SPDX-License-Identifier: Apache-2.0
#include "predict/evaluation/operation_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "predict/graph/names.h"

namespace joulemap::predict {
namespace {

TEST(OperationTable, AnOperationHasItsNamesInAllFrameworks) {
  for (const char* name : {"torch.nn.Linear", "keras.layers.Dense", "Gemm", "dense", "torch.nn.functional.linear"}) {
    const Result<NamedOperation> subject = find_operation(name);
    ASSERT_TRUE(subject) << name;
    EXPECT_EQ(subject->kind, Kind::dense) << name;
  }
  EXPECT_EQ(find_operation("torch.nn.functional.leaky_relu")->form, "leaky_relu");
  EXPECT_EQ(find_operation("aten::convolution")->kind, Kind::convolution);
  EXPECT_EQ(find_operation("torch.optim.AdamW")->kind, Kind::optimizer);
  EXPECT_EQ(find_operation("tf.keras.layers.DepthwiseConv2D")->variant, "depthwise");
}

TEST(OperationTable, EveryMeasuredKindHasATable) {
  for (int number = 0; number < static_cast<int>(Kind::view); ++number) {
    const auto kind = static_cast<Kind>(number);
    const Result<NamedOperation> subject = find_operation(name_of(kind));
    ASSERT_TRUE(subject) << name_of(kind);
    EXPECT_EQ(subject->kind, kind);
    EXPECT_GE(list_example_sizes(*subject).size(), 3U) << name_of(kind);
  }
}

TEST(OperationTable, SuggestsNearNamesForAnUnknownName) {
  const Result<NamedOperation> subject = find_operation("torch.nn.Conv2dd");
  ASSERT_FALSE(subject);
  EXPECT_EQ(subject.error().code, ErrorCode::usage);
  EXPECT_NE(subject.error().remedy.find("Conv2d"), std::string::npos) << subject.error().remedy;
  EXPECT_FALSE(find_operation(""));
  EXPECT_FALSE(find_operation("..."));
}

TEST(OperationTable, SuggestsEachNearNameOnceNearestFirst) {
  const std::vector<std::string_view> known_names = {"relu", "gelu", "silu", "relu", "convolution"};
  const std::vector<std::string_view> suggested_names = nearest_names("ReLu", known_names, 2);
  EXPECT_EQ(suggested_names, (std::vector<std::string_view>{"relu", "gelu"}));
}

TEST(OperationTable, RowsAreFiniteAndAdviceHasNumbers) {
  DeviceProfile profile;
  profile.device = "NVIDIA H200";
  profile.operation_model.datasheet = *find_datasheet("h200");
  for (const char* name : {"torch.nn.Linear", "torch.nn.Conv2d", "torch.nn.ReLU", "torch.optim.AdamW", "add", "cast"}) {
    const OperationTable table = make_operation_table(profile, *find_operation(name));
    ASSERT_FALSE(table.rows.empty()) << name;
    for (const OperationRow& row : table.rows) {
      EXPECT_TRUE(std::isfinite(row.energy_j) && row.energy_j > 0) << name << " " << row.size;
      EXPECT_TRUE(std::isfinite(row.time_s) && row.time_s > 0) << name << " " << row.size;
    }
    EXPECT_FALSE(table.advice.empty()) << name;
  }
}

OperationRow row(std::string size, Dtype dtype, double energy_j, bool is_unaligned = false) {
  Operation operation;
  operation.kind = Kind::dense;
  operation.dtype = dtype;
  return {std::move(size),
          is_unaligned,
          operation,
          1e-3,
          energy_j,
          1e9,
          dtype == Dtype::fp32 ? 4e6 : 2e6,
          LimitingResource::compute,
          1};
}

TEST(OperationTable, AdviceComparesPrecisionsAndOddSizes) {
  const std::vector<OperationRow> rows = {row("large", Dtype::fp32, 4.1), row("large", Dtype::bf16, 1),
                                          row("odd", Dtype::fp32, 4.1, true), row("odd", Dtype::bf16, 2.3, true)};
  const std::vector<std::string> advice = operation_advice(rows);
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_EQ(advice[0], "At large bf16 takes 4.1 times less energy than fp32.");
  EXPECT_EQ(advice[1], "Sizes that are not a multiple of 8 cost 2.3 times as much in bf16: odd compared with large.");
}

}  // namespace
}  // namespace joulemap::predict
