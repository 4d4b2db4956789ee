// SPDX-License-Identifier: Apache-2.0
//
// How the rows of a report stand in a tree: a row's path is the way down to it, and where a path holds a module, the
// module's dots are branches, too: "layer4.0.conv2" lies in "layer4.0", which lies in "layer4". And which rows a
// filter means. Pure.
//
//   tree_path({"train", "backward", "layer4.0.conv2"}, "layer")  ->  train, backward, layer4, .0, .conv2
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

// `by` is the level of the report. What follows a dot keeps it, so that a branch says whether it is a module within
// one. Only where paths hold modules are dots branches: a kernel's name may hold any.
std::vector<std::string> tree_path(std::span<const std::string> path, std::string_view by);

// Whether a row of that path, on that device, holds the text; upper and lower case are alike. Empty: all do.
// Elements are joined by blanks: "backward layer4" finds what is in layer4 on the way back; "conv1|fc" finds both.
bool path_holds(std::span<const std::string> path, std::string_view device, std::string_view text);

// The name of a branch and of one within it, as one: "layer4.0", "train backward".
std::string joined_branches(std::string_view outer, std::string_view inner);

}  // namespace joulemap
