// SPDX-License-Identifier: Apache-2.0
#include "scopes/module_names.h"

#include "formats/json_string_lists.h"

namespace joulemap::scopes {

Result<ModuleNames> parse_module_names(std::string_view json) {
  std::optional<formats::StringLists> lists = formats::read_string_lists(json);
  if (!lists) {
    return Error{ErrorCode::malformed, "not a JSON object with a list of paths for each class",
                 "joulemap.save_module_names(model, path) writes one"};
  }
  return *std::move(lists);
}

}  // namespace joulemap::scopes
