// SPDX-License-Identifier: Apache-2.0
#include "predict/model/tree_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>

namespace joulemap::predict {
namespace {

constexpr int kMaxTreeDepth = 64;
constexpr std::size_t kMaxTreeNodes = 4'000'000;

void write_node(const RegressionTrees& trees, std::int32_t node_index, std::string& text) {
  const TreeNode& node = trees.nodes[static_cast<std::size_t>(node_index)];
  if (node.feature < 0) {
    fmt::format_to(std::back_inserter(text), "{:.3g} ", node.value);
    return;
  }
  fmt::format_to(std::back_inserter(text), "{}<{:.7g} ", node.feature, node.value);
  write_node(trees, node.left, text);
  write_node(trees, node.right, text);
}

class RegressionTreeReader {
 public:
  RegressionTreeReader(std::string_view text, std::size_t features) : text_(text), feature_count_(features) {}

  bool at_end() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    return text_.empty();
  }

  bool read_node(RegressionTrees& trees, int depth, std::int32_t& index) {
    if (depth > kMaxTreeDepth || trees.nodes.size() >= kMaxTreeNodes || at_end()) return false;
    const std::string_view word = text_.substr(0, text_.find(' '));
    text_.remove_prefix(word.size());
    index = static_cast<std::int32_t>(trees.nodes.size());
    trees.nodes.emplace_back();
    const std::size_t sign = word.find('<');
    if (sign == std::string_view::npos) return parse_entire_number(word, trees.nodes.back().value);
    TreeNode node;
    if (!parse_entire_number(word.substr(0, sign), node.feature) ||
        !parse_entire_number(word.substr(sign + 1), node.value))
      return false;
    if (node.feature < 0 || static_cast<std::size_t>(node.feature) >= feature_count_) return false;
    if (!read_node(trees, depth + 1, node.left) || !read_node(trees, depth + 1, node.right)) return false;
    trees.nodes[static_cast<std::size_t>(index)] = node;
    return true;
  }

 private:
  template <class Number>
  static bool parse_entire_number(std::string_view word, Number& value) {
    const auto [end, parse_error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return parse_error == std::errc() && end == word.data() + word.size() && std::isfinite(static_cast<double>(value));
  }

  std::string_view text_;
  std::size_t feature_count_;
};

}  // namespace

std::string trees_text(const RegressionTrees& trees) {
  std::string text;
  for (const std::int32_t root : trees.roots) write_node(trees, root, text);
  return text;
}

Result<RegressionTrees> read_trees(std::string_view text, std::size_t features) {
  RegressionTrees trees;
  RegressionTreeReader reader(text, features);
  while (!reader.at_end()) {
    std::int32_t root = 0;
    if (!reader.read_node(trees, 0, root))
      return Error{ErrorCode::malformed, "invalid trees", "create the profile again: joulemap model fit"};
    trees.roots.push_back(root);
  }
  return trees;
}

}  // namespace joulemap::predict
