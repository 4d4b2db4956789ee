// SPDX-License-Identifier: Apache-2.0
#include "scopes/path_tree.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace joulemap::scopes {
namespace {

bool is_identifier(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Accepts "layer4.0.conv2", rejects "train.py line 3" and "1.5 W".
bool is_module_path(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), is_identifier);
}

// Number of leading path elements that may be modules. In rows of operations and functions the last element is none.
std::size_t count_module_elements(std::span<const std::string> path, std::string_view level_name) {
  if (level_name == "layer" || level_name == "module" || level_name == "stack") return path.size();
  if (level_name == "op" || level_name == "tensor" || level_name == "function")
    return path.empty() ? 0 : path.size() - 1;
  return 0;
}

std::string to_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

std::vector<std::string> tree_path(std::span<const std::string> path, std::string_view level_name) {
  std::vector<std::string> out;
  const std::size_t modules = count_module_elements(path, level_name);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i >= modules || !is_module_path(path[i])) {
      out.push_back(path[i]);
      continue;
    }
    bool is_first = true;
    for (const std::string_view part : split(path[i], '.')) {
      out.push_back((is_first ? "" : ".") + std::string(part));
      is_first = false;
    }
  }
  return out;
}

bool path_matches_filter(std::span<const std::string> path, std::string_view device, std::string_view text) {
  if (text.empty()) return true;
  std::string whole(device);
  for (const std::string& element : path) whole += " " + element;
  const std::string searched_text = to_lower_case(whole);
  const std::string filter_text = to_lower_case(text);
  for (std::size_t begin = 0; begin <= filter_text.size();) {
    const std::size_t end = std::min(filter_text.find('|', begin), filter_text.size());
    if (end > begin && searched_text.find(filter_text.substr(begin, end - begin)) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

std::string join_branch_names(std::string_view parent_name, std::string_view child_name) {
  return std::string(parent_name) + (child_name.starts_with('.') ? "" : " ") + std::string(child_name);
}

}  // namespace joulemap::scopes
