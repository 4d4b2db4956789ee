// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes lists of operations traced from PyTorch. The reader must not crash. FLOPs and bytes must be finite, autocast
// and the training step must keep all operations, and the compiled step must not move more bytes than the eager one.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "predict/graph/torch_list.h"
#include "predict/graph/training_step.h"
#include "predict/graph/work.h"
#include "predict/model/predictor.h"

namespace {

using namespace joulemap;

double total_bytes(const std::vector<predict::Operation>& operations) {
  double bytes = 0;
  for (const predict::Operation& operation : operations) {
    const predict::OperationWork work = predict::compute_work(operation);
    JOULEMAP_CHECK(std::isfinite(work.flops) && work.flops >= 0, "no amount of arithmetic");
    JOULEMAP_CHECK(std::isfinite(work.bytes) && work.bytes >= 0, "no amount of memory");
    bytes += work.bytes * static_cast<double>(operation.count);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<predict::Graph> graph = predict::read_torch_list({reinterpret_cast<const char*>(data), size});
  if (!graph) return 0;
  JOULEMAP_CHECK(!graph->operations.empty(), "a list without operations");
  for (const predict::Operation& operation : graph->operations) JOULEMAP_CHECK(operation.count >= 1, "no times");
  const predict::Graph cast = predict::apply_precision(*graph, predict::Precision::amp_bf16);
  JOULEMAP_CHECK(cast.operations.size() >= graph->operations.size(), "autocast lost an operation");
  const std::vector<predict::Operation> step = predict::make_training_step(cast, "adamw");
  JOULEMAP_CHECK(step.size() >= cast.operations.size(), "a step without its forward pass");
  const double eager = total_bytes(step);
  JOULEMAP_CHECK(total_bytes(predict::to_compiled_operations(step)) <= eager * (1 + 1e-9),
                 "a compiler that moves more");
  return 0;
}
