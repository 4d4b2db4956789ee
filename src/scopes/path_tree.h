// SPDX-License-Identifier: Apache-2.0
//
// Arranges the rows of a report in a tree. The path of a row leads from the root to it; the dots of a module name in a
// path are branches, too: "layer4.0.conv2" is a child of "layer4.0", which is a child of "layer4". Also matches rows
// against a filter. Pure functions.
//
//   tree_path({"train", "backward", "layer4.0.conv2"}, "layer")  ->  train, backward, layer4, .0, .conv2
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::scopes {

// `level_name` is the level of the report. An element that follows a dot keeps the dot, which marks it as a submodule.
// Dots are branches only at levels whose paths contain modules: kernel names may contain any dots.
std::vector<std::string> tree_path(std::span<const std::string> path, std::string_view level_name);

// Whether the device and path of a row contain the text, ignoring case. An empty text matches every row. Elements are
// joined by spaces: "backward layer4" finds layer4 in the backward pass; "conv1|fc" finds rows with either text.
bool path_matches_filter(std::span<const std::string> path, std::string_view device, std::string_view text);

// Joins the names of a branch and its only child: "layer4.0", "train backward".
std::string join_branch_names(std::string_view parent_name, std::string_view child_name);

}  // namespace joulemap::scopes
