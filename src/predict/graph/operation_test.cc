// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/operation.h"

#include <gtest/gtest.h>

namespace joulemap::predict {
namespace {

TEST(Operation, NamesOfKindsTypesAndPassesRoundTrip) {
  for (int number = 0; number < static_cast<int>(kOperationKindCount); ++number) {
    const auto kind = static_cast<Kind>(number);
    EXPECT_EQ(kind_from_name(name_of(kind)), kind);
  }
  EXPECT_EQ(dtype_from_name("bf16"), Dtype::bf16);
  EXPECT_EQ(pass_from_name("backward-weights"), Pass::backward_weights);
  EXPECT_FALSE(kind_from_name("Conv"));
}

TEST(Operation, ReadsParametersAsInMeasurementTables) {
  const Result<FormAndParameters> form_and_parameters =
      parse_parameters("form=relu;batch=1;rows=192;width=361;rate=0.1");
  ASSERT_TRUE(form_and_parameters);
  EXPECT_EQ(form_and_parameters->form, "relu");
  EXPECT_EQ(form_and_parameters->parameters, (OperationParameters{{"batch", 1}, {"rows", 192}, {"width", 361}}));
  Operation operation;
  operation.form = form_and_parameters->form;
  operation.parameters = form_and_parameters->parameters;
  EXPECT_EQ(parameters_text(operation), "form=relu;batch=1;rows=192;width=361");
}

TEST(Operation, DistinguishesDepthwiseAndGroupedConvolutions) {
  Operation operation;
  operation.kind = Kind::convolution;
  operation.parameters = {{"channels", 96}, {"out", 96}, {"groups", 1}};
  EXPECT_EQ(classify_convolution_grouping(operation), ConvolutionGrouping::none);
  operation.parameters.set("groups", 96);
  EXPECT_EQ(classify_convolution_grouping(operation), ConvolutionGrouping::depthwise);
  operation.parameters.set("out", 192);
  EXPECT_EQ(classify_convolution_grouping(operation), ConvolutionGrouping::groups);
  operation.parameters.set("groups", 8);
  EXPECT_EQ(classify_convolution_grouping(operation), ConvolutionGrouping::groups);
}

TEST(Operation, RefusesTextThatIsNoParameterList) { EXPECT_FALSE(parse_parameters("rows=3;nonsense")); }

}  // namespace
}  // namespace joulemap::predict
