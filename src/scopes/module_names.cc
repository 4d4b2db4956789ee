// SPDX-License-Identifier: Apache-2.0
#include "scopes/module_names.h"

#include "formats/json_string_lists.h"

namespace joulemap::scopes {

Result<ModuleNames> parse_module_names_json(std::string_view json) {
  std::optional<formats::StringLists> lists = formats::read_string_lists(json);
  if (!lists) {
    return Error{ErrorCode::malformed, "not a JSON object that maps each class to a list of paths",
                 "write it with joulemap.save_module_names(model, path)"};
  }
  return *std::move(lists);
}

}  // namespace joulemap::scopes
