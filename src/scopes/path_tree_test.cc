// SPDX-License-Identifier: Apache-2.0
#include "scopes/path_tree.h"

#include <gtest/gtest.h>

namespace joulemap::scopes {
namespace {

using Path = std::vector<std::string>;

TEST(PathTree, DotsOfAModuleAreBranches) {
  EXPECT_EQ(tree_path(Path{"train", "backward", "layer4.0.conv2"}, "layer"),
            (Path{"train", "backward", "layer4", ".0", ".conv2"}));
  EXPECT_EQ(tree_path(Path{"train", "forward", "fc"}, "layer"), (Path{"train", "forward", "fc"}));
}

TEST(PathTree, DotsOfOtherNamesAreNot) {
  EXPECT_EQ(tree_path(Path{"train", "h.0", "dot.3"}, "op"), (Path{"train", "h", ".0", "dot.3"}));
  EXPECT_EQ(tree_path(Path{"sm90_gemm.v1"}, "kernel"), (Path{"sm90_gemm.v1"}));
  EXPECT_EQ(tree_path(Path{"draw 1.5 digits", "a..b", ".hidden"}, "layer"),
            (Path{"draw 1.5 digits", "a..b", ".hidden"}));
}

TEST(PathTree, MergesBranchesWithASingleChild) {
  EXPECT_EQ(join_branch_names("transformer", ".h"), "transformer.h");
  EXPECT_EQ(join_branch_names("train", "backward"), "train backward");
}

TEST(PathTree, AFilterMatchesPartOfDeviceAndPath) {
  const Path path = {"train", "backward", "layer4.0.conv2"};
  EXPECT_TRUE(path_matches_filter(path, "gpu0", ""));
  EXPECT_TRUE(path_matches_filter(path, "gpu0", "CONV"));
  EXPECT_TRUE(path_matches_filter(path, "gpu0", "gpu0 train"));
  EXPECT_TRUE(path_matches_filter(path, "gpu0", "backward layer4"));
  EXPECT_FALSE(path_matches_filter(path, "gpu0", "forward"));
  EXPECT_TRUE(path_matches_filter(path, "gpu0", "forward|layer4"));
  EXPECT_FALSE(path_matches_filter(path, "gpu0", "forward|"));
}

}  // namespace
}  // namespace joulemap::scopes
