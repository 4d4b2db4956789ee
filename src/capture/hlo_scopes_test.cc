// SPDX-License-Identifier: Apache-2.0
#include "capture/hlo_scopes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace joulemap::capture {
namespace {

// Names on the path from the root to `scope`.
std::vector<std::string> scope_path_of(const ScopeTable& scopes, std::uint32_t scope) {
  const std::vector<Scope> all_scopes = scopes.all_scopes();
  std::vector<std::string> path;
  for (; scope != 0; scope = all_scopes.at(scope - 1).parent) path.push_back(all_scopes.at(scope - 1).name);
  std::reverse(path.begin(), path.end());
  return path;
}

TEST(HloRange, AnHloRangeIsReadFromTheTextThatXlaPushes) {
  const auto thunk = parse_hlo_range("Thunk:#hlo_op=fusion.3,hlo_module=jit_step,program_id=12#");
  ASSERT_TRUE(thunk.has_value());
  EXPECT_EQ(thunk->instruction, "fusion.3");
  EXPECT_EQ(thunk->module, "jit_step");
  const auto module = parse_hlo_range("XlaModule:#prefix=jit(step),hlo_module=jit_step,program_id=12#");
  ASSERT_TRUE(module.has_value());
  EXPECT_TRUE(module->instruction.empty());
}

TEST(HloRange, RejectsRangesOfOtherLibraries) {
  for (const char* text : {"", "step", "#", "##", "#a=b#", "colour #3", "#hlo_op=", "hlo_op=x"}) {
    EXPECT_FALSE(parse_hlo_range(text).has_value()) << text;
  }
}

TEST(HloRange, RecognizesRangesOfTheCompiler) {
  EXPECT_TRUE(is_xla_compiler_range("XlaPass:#name=fusion,module=jit_step,program_id=3#"));
  EXPECT_FALSE(is_xla_compiler_range("XlaModule:#hlo_module=jit_step,program_id=3#"));
  EXPECT_FALSE(is_xla_compiler_range("Xla"));
  EXPECT_FALSE(is_xla_compiler_range("ncclAllReduce"));
}

TEST(HloScopes, AnUnannouncedProgramIsACompilerTrial) {
  HloScopes programs;
  EXPECT_FALSE(programs.is_autotuning("gemm_fusion_dot.5"));  // no program is registered
  programs.register_op("", "", "");
  programs.register_op("jit_step", "fusion", "jit(step)/tanh");
  EXPECT_TRUE(programs.is_autotuning("gemm_fusion_dot.5"));
  EXPECT_FALSE(programs.is_autotuning("jit_step"));
  EXPECT_FALSE(programs.is_autotuning(""));
}

TEST(HloScopes, AnInstructionHasTheScopeOfItsOperation) {
  HloScopes programs;
  ScopeTable scopes;
  programs.register_op("jit_step", "fusion.3", "jit(step)/transpose(jvp(Net))/Dense_0/dot_general");
  programs.register_op("jit_step", "add.1", "jit(step)/sgd/add");
  programs.register_op("jit_predict", "dot.1", "jit(predict)/Net/Dense_0/dot_general");
  EXPECT_EQ(scope_path_of(scopes, programs.find_scope("jit_step", "fusion.3", scopes).value()),
            (std::vector<std::string>{"train", "backward", "Dense_0", "dot_general"}));
  EXPECT_EQ(scope_path_of(scopes, programs.find_scope("jit_step", "add.1", scopes).value()),
            (std::vector<std::string>{"train", "optimizer", "sgd", "add"}));
  EXPECT_EQ(scope_path_of(scopes, programs.find_scope("jit_predict", "dot.1", scopes).value()),
            (std::vector<std::string>{"inference", "forward", "Dense_0", "dot_general"}));
}

TEST(HloScopes, UnannouncedInstructionsHaveNoScope) {
  HloScopes programs;
  ScopeTable scopes;
  programs.register_op("jit_step", "fusion.3", "jit(step)/mul");
  EXPECT_FALSE(programs.find_scope("jit_step", "fusion.4", scopes).has_value());
  EXPECT_FALSE(programs.find_scope("jit_other", "fusion.3", scopes).has_value());
}

TEST(HloScopes, ARecompiledProgramReplacesItsScopes) {
  HloScopes programs;
  ScopeTable scopes;
  programs.register_op("jit_step", "fusion.3", "jit(step)/Net/a/mul");
  const std::uint32_t initial_scope = programs.find_scope("jit_step", "fusion.3", scopes).value();
  programs.register_op("jit_step", "fusion.3", "jit(step)/Net/b/mul");
  EXPECT_NE(programs.find_scope("jit_step", "fusion.3", scopes).value(), initial_scope);
}

}  // namespace
}  // namespace joulemap::capture
