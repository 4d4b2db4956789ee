// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/work.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/gzip.h"
#include "predict/fit/measured_operations.h"
#include "predict/fit/table.h"

namespace joulemap::predict {
namespace {

Operation make_operation_from_text(Kind kind, std::string_view text, Dtype dtype, Pass pass) {
  Operation operation;
  const Result<FormAndParameters> form_and_parameters = parse_parameters(text);
  operation.kind = kind;
  operation.form = form_and_parameters->form;
  operation.parameters = form_and_parameters->parameters;
  operation.dtype = dtype;
  operation.pass = pass;
  return operation;
}

TEST(OperationWork, ADenseLayerHasTheFlopsAndBytesOfItsSizes) {
  const Operation dense_operation =
      make_operation_from_text(Kind::dense, "rows=8;in=64;out=10;bias=1", Dtype::fp32, Pass::forward);
  const OperationWork forward = compute_work(dense_operation);
  EXPECT_EQ(forward.flops, 2 * 8 * 64 * 10);
  EXPECT_EQ(forward.bytes, 4 * (8 * 64 + 64 * 10 + 10 + 8 * 10));
  Operation backward = dense_operation;
  backward.pass = Pass::backward;
  EXPECT_EQ(compute_work(backward).flops, 2 * forward.flops);
  EXPECT_EQ(compute_work(backward).products.size(), 2U);
}

TEST(OperationWork, AConvolutionInHalfTheBytesMovesHalfAsMuch) {
  constexpr std::string_view kConvolutionParameters =
      "batch=1;channels=3;out=64;height=224;width=224;kernel=7;stride=2;padding=3;dilation=1;groups=1;bias=0";
  const OperationWork fp32_work =
      compute_work(make_operation_from_text(Kind::convolution, kConvolutionParameters, Dtype::fp32, Pass::forward));
  const OperationWork bf16_work =
      compute_work(make_operation_from_text(Kind::convolution, kConvolutionParameters, Dtype::bf16, Pass::forward));
  EXPECT_EQ(fp32_work.flops, 2.0 * 112 * 112 * 64 * 3 * 49);
  EXPECT_EQ(fp32_work.flops, bf16_work.flops);
  EXPECT_EQ(fp32_work.bytes, 2 * bf16_work.bytes);
}

TEST(OperationWork, AViewDoesNothing) {
  const OperationWork work =
      compute_work(make_operation_from_text(Kind::view, "batch=8;rows=8;width=8", Dtype::fp32, Pass::forward));
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.bytes, 0);
}

std::string read_unpacked_file(const std::string& path) {
  Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
  std::string text;
  std::vector<char> file_chunk(1 << 20);
  while (file) {
    const Result<std::size_t> count = file->read(file_chunk);
    if (!count || *count == 0) break;
    text.append(file_chunk.data(), *count);
  }
  return text;
}

// The collector (Python) and the predictor (C++) must count FLOPs and bytes in the same way.
TEST(OperationWork, MeasuredOperationsHaveTheFlopsAndBytesOfTheirTable) {
  const std::string csv = read_unpacked_file(JOULEMAP_MEASUREMENTS "/h200/operations.csv.gz");
  const Result<CsvTable> table = read_table(csv, std::array<std::string_view, 2>{"flops", "bytes"});
  ASSERT_TRUE(table);
  ASSERT_GT(table->records.size(), 7000U);
  for (const formats::CsvRecord& record : table->records) {
    const Result<Operation> operation = parse_operation(table->columns, record);
    ASSERT_TRUE(operation);
    const OperationWork work = compute_work(*operation);
    const double flops = table->columns.number(record, "flops");
    const double bytes = table->columns.number(record, "bytes");
    EXPECT_NEAR(work.flops, flops, 1e-4 * flops) << record[0] << " " << record[1];
    EXPECT_NEAR(work.bytes, bytes, 1e-4 * bytes) << record[0] << " " << record[1];
  }
}

}  // namespace
}  // namespace joulemap::predict
