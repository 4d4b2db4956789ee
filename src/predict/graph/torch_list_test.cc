// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/torch_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace joulemap::predict {
namespace {

constexpr std::string_view kDenseOperation =
    R"({"layer": "head", "source": "aten.addmm", "kind": "dense", "form": "", "dtype": "bf16", "pass": "backward",
        "phase": "backward", "count": 2, "parameters": {"rows": 8, "in": 64, "out": 10, "bias": 1}})";

std::string operation_list_json(std::string_view operations, std::string_view unknown = "[]") {
  return fmt::format(R"({{"schema": "joulemap.operations/1", "name": "Net", "format": "torch", "pass": "training",
      "operations": [{}], "unknown": {}, "weight_tensors": 2, "weight_elements": 650, "notes": ["small"]}})",
                     operations, unknown);
}

// A list of the operation `kDenseOperation` with one member changed.
std::string change_dense_operation(std::string_view old_text, std::string_view new_text) {
  std::string text(kDenseOperation);
  text.replace(text.find(old_text), old_text.size(), new_text);
  return operation_list_json(text);
}

std::string read_error_message(std::string_view json) {
  const Result<Graph> graph = read_torch_list(json);
  return graph ? "" : graph.error().message;
}

TEST(TorchList, TorchListIsReadAsItWasTraced) {
  const Result<Graph> graph = read_torch_list(operation_list_json(kDenseOperation));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->name, "Net");
  EXPECT_EQ(graph->format, "torch");
  EXPECT_EQ(graph->weight_tensor_count, 2);
  EXPECT_EQ(graph->weight_element_count, 650);
  EXPECT_EQ(graph->notes, std::vector<std::string>{"small"});
  ASSERT_EQ(graph->operations.size(), 1U);
  const Operation& dense_operation = graph->operations[0];
  EXPECT_EQ(dense_operation.layer, "head");
  EXPECT_EQ(dense_operation.source, "aten.addmm");
  EXPECT_EQ(dense_operation.kind, Kind::dense);
  EXPECT_EQ(dense_operation.dtype, Dtype::bf16);
  EXPECT_EQ(dense_operation.pass, Pass::backward);
  EXPECT_EQ(dense_operation.count, 2);
  EXPECT_EQ(dense_operation.parameters, (OperationParameters{{"rows", 8}, {"in", 64}, {"out", 10}, {"bias", 1}}));
}

TEST(TorchList, TheOptimizerStepIsASeparateLayer) {
  const Result<Graph> graph = read_torch_list(operation_list_json(
      R"({"layer": "", "source": "adamw", "kind": "optimizer", "form": "adamw", "dtype": "fp32", "pass": "optimizer",
          "parameters": {"tensors": 2, "elements": 650, "fused": 0, "foreach": 1}})"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->operations[0].layer, "optimizer");
  EXPECT_EQ(graph->operations[0].count, 1);
}

TEST(TorchList, ListsUnknownOperationsThatTheListOmits) {
  constexpr std::string_view kUnknownOperation =
      R"({"layer": "x", "source": "acme.fast", "kind": "unknown", "form": "", "dtype": "fp32", "pass": "forward",
          "count": 1, "parameters": {"batch": 1, "rows": 1, "width": 9, "in": 9, "out": 3}})";
  const Result<Graph> graph_with_unknown_list = read_torch_list(operation_list_json(
      kUnknownOperation,
      R"([{"layer": "x", "source": "acme.fast", "reason": "an operation of acme", "bounded": true}])"));
  ASSERT_TRUE(graph_with_unknown_list) << graph_with_unknown_list.error().message;
  ASSERT_EQ(graph_with_unknown_list->unknown_operations.size(), 1U);
  EXPECT_EQ(graph_with_unknown_list->unknown_operations[0].reason, "an operation of acme");
  EXPECT_TRUE(graph_with_unknown_list->unknown_operations[0].has_lower_bound);
  const Result<Graph> graph_without_unknown_list = read_torch_list(operation_list_json(kUnknownOperation));
  ASSERT_TRUE(graph_without_unknown_list);
  ASSERT_EQ(graph_without_unknown_list->unknown_operations.size(), 1U);
  EXPECT_EQ(graph_without_unknown_list->unknown_operations[0].source, "acme.fast");
}

TEST(TorchList, RefusesOtherContentWithARemedy) {
  EXPECT_FALSE(read_torch_list(""));
  EXPECT_FALSE(read_torch_list("{"));
  EXPECT_FALSE(read_torch_list("[]"));
  const Result<Graph> other_schema_graph = read_torch_list(R"({"schema": "joulemap.operations/2", "operations": []})");
  ASSERT_FALSE(other_schema_graph);
  EXPECT_EQ(other_schema_graph.error().message,
            R"(list of operations: its schema is "joulemap.operations/2", not joulemap.operations/1)");
  EXPECT_FALSE(other_schema_graph.error().remedy.empty());
  EXPECT_NE(read_error_message(operation_list_json("")).find("is empty"), std::string::npos);
}

TEST(TorchList, ReportsUnknownNamesWithTheirOperation) {
  EXPECT_EQ(read_error_message(change_dense_operation(R"("dense")", R"("Conv")")),
            R"(list of operations: operation 0, aten.addmm: unknown kind "Conv")");
  EXPECT_NE(read_error_message(change_dense_operation("bf16", "int8")).find(R"(unknown dtype "int8")"),
            std::string::npos);
  EXPECT_NE(
      read_error_message(change_dense_operation(R"("pass": "backward")", R"("pass": "sideways")")).find("unknown pass"),
      std::string::npos);
}

TEST(TorchList, RefusesImpossibleNumbers) {
  EXPECT_NE(read_error_message(change_dense_operation(R"("rows": 8)", R"("rows": -8)")).find(R"("rows" is -8)"),
            std::string::npos);
  EXPECT_NE(read_error_message(change_dense_operation(R"("rows": 8)", R"("rows": 0.5)")).find("not an integer"),
            std::string::npos);
  EXPECT_NE(
      read_error_message(change_dense_operation(R"("rows": 8)", R"("rows": 99999999999999999)")).find("not between"),
      std::string::npos);
  EXPECT_NE(
      read_error_message(change_dense_operation(R"("rows": 8)", R"("rows": 60000000000000)")).find("which fits no GPU"),
      std::string::npos);
  EXPECT_NE(read_error_message(change_dense_operation(R"("count": 2)", R"("count": 0)")).find(R"("count" is 0)"),
            std::string::npos);
}

TEST(TorchList, AMissingSizeIsNotOne) {
  EXPECT_NE(
      read_error_message(change_dense_operation(R"("rows": 8, )", "")).find(R"(dense needs the parameter "rows")"),
      std::string::npos);
  std::string text = operation_list_json(kDenseOperation);
  text.replace(text.find("weight_elements"), 15, "weight_numbers");
  EXPECT_NE(read_error_message(text).find(R"("weight_elements" is missing)"), std::string::npos);
}

}  // namespace
}  // namespace joulemap::predict
