// SPDX-License-Identifier: Apache-2.0
//
// ModuleNames: paths of a model's modules by class, in the order of their first call. They complete PyTorch traces,
// which only contain "nn.Module: Conv2d_3". `joulemap.save_module_names(model, path)` writes them as JSON:
//
//   {"ResNet": ["ResNet"], "Conv2d": ["conv1", "layer1.0.conv1", ...], ...}
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulemap::scopes {

using ModuleNames = std::map<std::string, std::vector<std::string>, std::less<>>;

Result<ModuleNames> parse_module_names_json(std::string_view json);

}  // namespace joulemap::scopes
