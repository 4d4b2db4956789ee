// SPDX-License-Identifier: Apache-2.0
//
// Walks a model call by call, into nested models and wrapped layers, propagates shapes and appends operations to a
// graph. One walk per graph; one thread; refers to the document.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/graph.h"
#include "predict/graph/keras/keras_model.h"
#include "predict/graph/keras/layer_call.h"

namespace joulemap::predict::keras {

// Properties that a layer inherits from enclosing models and wrappers.
struct InheritedTraits {
  std::string path;
  bool is_trainable = true;
  bool is_inference = false;
};

// Computing type of a Keras dtype policy such as "mixed_bfloat16", and whether weights are stored in 32 bits.
struct DtypePolicy {
  Dtype compute_dtype = Dtype::fp32;
  bool has_mixed_precision = false;
};
DtypePolicy parse_dtype_policy(const DocumentValue* dtype, Dtype default_value);

class ModelWalk {
 public:
  // `batch` replaces batch sizes that are unknown or equal to `file_batch`, the batch in the document.
  ModelWalk(Graph& graph, Dtype dtype, std::int64_t batch, std::optional<std::int64_t> file_batch);

  Result<std::vector<Tensor>> visit_model(const DocumentValue& text, const std::vector<Tensor>& inputs,
                                          const InheritedTraits& inherited);

 private:
  using TensorsOrError = Result<std::vector<Tensor>>;
  struct DeclaredShapes {  // output shapes that the document declares for a call
    std::vector<Shape> shapes;
    bool is_complete = false;
  };

  Result<const Model*> parse_cached_model(const DocumentValue& text);
  DeclaredShapes declared_shapes(const Model& model, std::size_t layer, std::size_t call) const;
  TensorsOrError visit_layer(const Layer& layer, const CallJson& call_json, std::vector<Input> inputs,
                             const InheritedTraits& inherited, const DeclaredShapes& declared);
  TensorsOrError apply_layer_rule(LayerCall& call, const DeclaredShapes& declared, const Layer& layer);
  TensorsOrError visit_time_distributed_layer(const Layer& layer, std::vector<Input> inputs,
                                              const InheritedTraits& inner_traits);
  TensorsOrError visit_bidirectional_layer(const Layer& layer, const std::vector<Input>& inputs,
                                           const InheritedTraits& inner_traits, LayerTraits traits);
  std::optional<std::size_t> merge_bidirectional_passes(std::size_t begin, const std::string& path,
                                                        std::optional<std::size_t> stack);
  TensorsOrError check_output_shapes(const LayerCall& call, const std::vector<Shape>& shapes) const;
  LayerTraits compute_layer_traits(const Layer& layer, const std::vector<Input>& inputs,
                                   const InheritedTraits& inherited, const CallJson& call_json) const;
  void cast_inputs(LayerCall& call) const;

  Graph& graph_;
  Dtype default_dtype_;
  std::int64_t batch_size_;
  std::optional<std::int64_t> batch_size_in_file_;
  std::map<const DocumentValue*, Model> parsed_models_;  // parsed once each, because a model may be called often
  std::set<std::string> layers_with_counted_weights_;    // paths of layers whose weights are counted
  std::int64_t call_count_ = 0;
};

}  // namespace joulemap::predict::keras
