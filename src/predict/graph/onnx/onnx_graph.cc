// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/onnx_graph.h"

#include <fmt/format.h>

#include "base/text.h"
#include "predict/graph/onnx/fusions.h"
#include "predict/graph/onnx/input_sizes.h"
#include "predict/graph/onnx/onnx_model.h"
#include "predict/graph/onnx/to_operations.h"
#include "predict/graph/onnx/walk.h"

namespace joulemap::predict {
namespace {

constexpr std::int64_t kOldestSupportedOpset = 13;
constexpr std::int64_t kNewestTestedOpset = 25;  // newest opset that was tested

Error opset_too_old_error(std::int64_t opset) {
  return {ErrorCode::unsupported, fmt::format("the file has ONNX opset {}; joulemap reads opset 13 and newer", opset),
          "convert it: onnx.save(onnx.version_converter.convert_version(onnx.load(\"model.onnx\"), 17), \"new.onnx\")"};
}

}  // namespace

Result<Graph> read_onnx(std::string_view bytes, const GraphOptions& options) {
  const Result<onnx::Model> model = onnx::read_model(bytes);
  if (!model) return model.error();
  if (model->opset_version < kOldestSupportedOpset) return opset_too_old_error(model->opset_version);
  const Result<onnx::InputSizes> inputs = onnx::input_sizes(model->graph, options);
  if (!inputs) return inputs.error();

  Graph graph{.name = to_valid_utf8(model->graph.name), .format = "onnx", .notes = inputs->notes};
  // The leading size is the batch of most networks, but not of all: reported only where the caller set it.
  if (!options.inputs.empty() && !inputs->resolved_sizes.empty() && inputs->resolved_sizes.front().size() > 1)
    graph.batch = inputs->resolved_sizes.front().front();
  if (model->opset_version > kNewestTestedOpset) {
    graph.notes.push_back(fmt::format("opset {} is newer than {}, the newest that joulemap supports",
                                      model->opset_version, kNewestTestedOpset));
  }
  Result<onnx::Program> program_at_file_batch = onnx::Program{};
  if (!inputs->sizes_in_file.empty())
    program_at_file_batch = onnx::build_program(*model, *inputs, inputs->sizes_in_file, nullptr);
  if (!program_at_file_batch) return program_at_file_batch.error();
  Result<onnx::Program> program = onnx::build_program(
      *model, *inputs, inputs->resolved_sizes, inputs->sizes_in_file.empty() ? nullptr : &*program_at_file_batch);
  if (!program) return program.error();
  onnx::fuse_known_patterns(*program);
  onnx::add_operations(*program, options, graph);
  return graph;
}

}  // namespace joulemap::predict
