// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "predict/graph/training_step.h"
#include "predict/graph/work.h"

namespace joulemap::predict {
namespace {

Operation operation(Kind kind, std::string operation_form, OperationParameters parameters, std::string layer = "") {
  Operation new_operation;
  new_operation.layer = std::move(layer);
  new_operation.kind = kind;
  new_operation.form = std::move(operation_form);
  new_operation.parameters = std::move(parameters);
  return new_operation;
}

Operation tensor(Kind kind, std::string operation_form, std::string layer = "") {
  return operation(kind, std::move(operation_form), {{"batch", 8}, {"rows", 64}, {"width", 256}}, std::move(layer));
}

Operation make_norm(std::string operation_form, std::string layer = "") {
  if (operation_form == "layer") {
    return operation(Kind::normalization, "layer", {{"batch", 512}, {"channels", 256}, {"height", 1}, {"width", 1}},
                     std::move(layer));
  }
  return operation(Kind::normalization, std::move(operation_form),
                   {{"batch", 8}, {"channels", 64}, {"height", 16}, {"width", 16}}, std::move(layer));
}

Operation dense() {
  return operation(Kind::dense, "", {{"rows", 512}, {"in", 256}, {"out", 256}, {"bias", 1}}, "dense");
}

struct WorkTotals {
  double flops = 0;
  double bytes = 0;
  double products = 0;
  std::int64_t launches = 0;
};

WorkTotals totals(const std::vector<Operation>& operations) {
  WorkTotals sum;
  for (const Operation& op : operations) {
    const OperationWork work = compute_work(op);
    const auto count = static_cast<double>(op.count);
    sum.flops += work.flops * count;
    sum.bytes += work.bytes * count;
    if (is_matrix_product(op.kind)) sum.products += work.flops * count;
    if (op.kind != Kind::view) sum.launches += op.count;
  }
  return sum;
}

constexpr double kTensorBytes = 4.0 * 8 * 64 * 256;

TEST(Compiled, FusesAFixedNormAndAnActivationIntoOneKernel) {
  const std::vector<Operation> compiled_operations = to_compiled_operations(
      {dense(), make_norm("batch-inference", "norm"), tensor(Kind::activation, "relu", "act"), dense()});
  ASSERT_EQ(compiled_operations.size(), 3U);
  EXPECT_EQ(compiled_operations[1].kind, Kind::activation);
  EXPECT_EQ(compiled_operations[1].layer, "norm");
  EXPECT_DOUBLE_EQ(compute_work(compiled_operations[1]).bytes, 2 * kTensorBytes);
}

TEST(Compiled, TensorCoreConvolutionsUseChannelsLast) {
  Operation convolution;
  convolution.kind = Kind::convolution;
  convolution.dtype = Dtype::tf32;
  convolution.parameters = {{"batch", 8}, {"channels", 64}, {"out", 64}, {"height", 7}, {"width", 7}, {"kernel", 3}};
  const std::vector<Operation> compiled_operations = to_compiled_operations({convolution});
  ASSERT_EQ(compiled_operations.size(), 1U);
  EXPECT_EQ(compiled_operations[0].parameters.get("channels_last", 0), 1);
  convolution.dtype = Dtype::fp32;
  EXPECT_EQ(to_compiled_operations({convolution}).front().parameters.get("channels_last", 0), 0);
}

TEST(Compiled, AFusedAdditionStillReadsItsSecondTensor) {
  const std::vector<Operation> compiled_operations =
      to_compiled_operations({make_norm("batch-inference"), tensor(Kind::add, "same"), tensor(Kind::activation, "relu"),
                              tensor(Kind::cast, "fp32")});
  ASSERT_EQ(compiled_operations.size(), 1U);
  EXPECT_EQ(compiled_operations[0].kind, Kind::add);
  EXPECT_EQ(compiled_operations[0].form, "same");
  EXPECT_DOUBLE_EQ(compute_work(compiled_operations[0]).bytes, 3 * kTensorBytes);
}

TEST(Compiled, FusesAResidualIntoTheNormAfterIt) {
  const std::vector<Operation> compiled_operations =
      to_compiled_operations({tensor(Kind::add, "same", "residual"), make_norm("layer", "norm"), dense()});
  ASSERT_EQ(compiled_operations.size(), 2U);
  EXPECT_EQ(compiled_operations[0].kind, Kind::normalization);
  EXPECT_EQ(compiled_operations[0].layer, "residual");
  // The fused kernel reads two tensors and writes the sum and the normalized tensor.
  EXPECT_NEAR(compute_work(compiled_operations[0]).bytes / kTensorBytes, 4, 0.01);
}

TEST(Compiled, TwoNormsAreTwoKernels) {
  EXPECT_EQ(to_compiled_operations({make_norm("layer"), tensor(Kind::activation, "gelu"), make_norm("layer")}).size(),
            2U);
}

TEST(Compiled, RescalingWritesNoIntermediate) {
  const std::vector<Operation> compiled_operations = to_compiled_operations({tensor(Kind::rescaling, "")});
  ASSERT_EQ(compiled_operations.size(), 1U);
  EXPECT_DOUBLE_EQ(compute_work(compiled_operations[0]).bytes, 2 * kTensorBytes);
}

TEST(Compiled, ViewsAreRemovedAndDoNotPreventFusion) {
  const Operation view_operation = operation(Kind::view, "", {{"batch", 1}, {"rows", 1}, {"width", 1}});
  EXPECT_EQ(to_compiled_operations({view_operation, tensor(Kind::activation, "relu"), view_operation,
                                    tensor(Kind::multiply, "scalar"), view_operation})
                .size(),
            1U);
}

TEST(Compiled, TensorsOfDifferentSizesAreSeparateKernels) {
  Operation small_batch_activation = tensor(Kind::activation, "relu");
  small_batch_activation.parameters.set("batch", 4);
  EXPECT_EQ(to_compiled_operations({tensor(Kind::activation, "relu"), small_batch_activation}).size(), 2U);
  Operation repeated_activation = tensor(Kind::activation, "relu");
  repeated_activation.count = 3;
  EXPECT_EQ(to_compiled_operations({tensor(Kind::activation, "relu"), repeated_activation}).size(), 2U);
}

TEST(Compiled, DoesNotFuseSoftmaxWithProducts) {
  const std::vector<Operation> compiled_operations =
      to_compiled_operations({tensor(Kind::activation, "relu"), tensor(Kind::activation, "softmax"), dense()});
  ASSERT_EQ(compiled_operations.size(), 3U);
  EXPECT_EQ(compiled_operations[2].parameters, dense().parameters);
}

TEST(Compiled, DoesNotFuseAcrossPassesAndFusesTheOptimizer) {
  Operation backward = tensor(Kind::activation, "relu");
  backward.pass = Pass::backward;
  Operation step = operation(Kind::optimizer, "adamw", {{"tensors", 4}, {"elements", 1000}});
  step.pass = Pass::optimizer;
  const std::vector<Operation> compiled_operations =
      to_compiled_operations({tensor(Kind::activation, "relu"), backward, tensor(Kind::reshape, "heads"), step});
  ASSERT_EQ(compiled_operations.size(), 3U);
  EXPECT_EQ(compiled_operations[1].pass, Pass::backward);
  EXPECT_EQ(compiled_operations[2].parameters.get("fused", 0), 1);
}

// Generates random lists of operations with valid tensor sizes.
class RandomOperations {
 public:
  explicit RandomOperations(std::uint64_t seed) : random_(seed) {}

  std::vector<Operation> make_operations() {
    std::vector<Operation> random_operations;
    for (std::int64_t remaining_count = random_below(30); remaining_count >= 0; --remaining_count)
      random_operations.push_back(op());
    return random_operations;
  }

 private:
  std::int64_t random_below(std::int64_t upper_bound) {
    return std::uniform_int_distribution<std::int64_t>(0, upper_bound - 1)(random_);
  }

  std::string random_form(Kind kind) {
    static const std::vector<std::string> kBinaryForms = {"same", "row", "last", "scalar"};
    static const std::vector<std::string> kNormForms = {"batch", "batch-inference", "layer", "group", "rms"};
    static const std::vector<std::string> kDtypeNames = {"fp32", "fp16", "bf16"};
    static const std::vector<std::string> kActivationForms = {"relu", "gelu", "softmax", "exp"};
    const auto random_choice = [this](const std::vector<std::string>& operation_forms) {
      return operation_forms[static_cast<std::size_t>(random_below(static_cast<std::int64_t>(operation_forms.size())))];
    };
    if (kind == Kind::add || kind == Kind::multiply) return random_choice(kBinaryForms);
    if (kind == Kind::normalization) return random_choice(kNormForms);
    if (kind == Kind::cast) return random_choice(kDtypeNames);
    if (kind == Kind::activation) return random_choice(kActivationForms);
    return kind == Kind::padding ? "constant" : kind == Kind::reduce ? "mean" : kind == Kind::optimizer ? "sgd" : "";
  }

  Operation op() {
    Operation random_operation;
    random_operation.kind = static_cast<Kind>(random_below(static_cast<int>(kOperationKindCount)));
    random_operation.form = random_form(random_operation.kind);
    const std::int64_t size = random_below(4) == 0 ? 1 + random_below(40) : 16;
    for (const char* name : {"batch", "rows", "width", "channels", "height", "in", "out", "kernel", "stride", "tokens",
                             "classes", "elements", "m", "k", "n", "heads", "queries", "keys", "vocabulary"}) {
      random_operation.parameters.set(name, random_below(5) == 0 ? 1 : size);
    }
    random_operation.parameters.set("padding", random_below(3));
    random_operation.parameters.set("from_bytes", random_below(2));
    random_operation.dtype = static_cast<Dtype>(random_below(4));
    random_operation.pass =
        random_operation.kind == Kind::optimizer ? Pass::optimizer : static_cast<Pass>(random_below(2));
    random_operation.count = 1 + random_below(2);
    return random_operation;
  }

  std::mt19937_64 random_;
};

TEST(Compiled, CompilationNeverIncreasesTrafficFlopsOrLaunchesAndPreservesProducts) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const std::vector<Operation> eager_operations = RandomOperations(seed).make_operations();
    const WorkTotals eager_totals = totals(eager_operations);
    const WorkTotals compiled_totals = totals(to_compiled_operations(eager_operations));
    EXPECT_LE(compiled_totals.bytes, eager_totals.bytes * (1 + 1e-12)) << "seed " << seed;
    EXPECT_LE(compiled_totals.flops, eager_totals.flops * (1 + 1e-12)) << "seed " << seed;
    EXPECT_LE(compiled_totals.launches, eager_totals.launches) << "seed " << seed;
    EXPECT_EQ(compiled_totals.products, eager_totals.products) << "seed " << seed;
  }
}

}  // namespace
}  // namespace joulemap::predict
