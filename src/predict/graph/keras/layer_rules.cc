// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/layer_rules.h"

#include <algorithm>

namespace joulemap::predict::keras {

LayerRule find_rule(std::string_view class_name) {
  for (const std::span<const LayerClassRule> rules :
       {convolution_rules(), normalization_rules(), elementwise_layer_rules(), merge_rules(), dense_rules(),
        pooling_rules(), image_rules(), shape_rules(), attention_rules(), recurrent_rules(),
        elementwise_function_rules()}) {
    const auto matching_rule = std::find_if(rules.begin(), rules.end(),
                                            [&](const LayerClassRule& rule) { return rule.class_name == class_name; });
    if (matching_rule != rules.end()) return matching_rule->apply_rule;
  }
  return nullptr;
}

}  // namespace joulemap::predict::keras
