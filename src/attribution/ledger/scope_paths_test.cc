// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/scope_paths.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace joulemap::attribution {
namespace {

// Modules of a chain, outermost first, below one scope of the phase "forward". Returns the id of the innermost scope.
std::uint32_t add_modules(ScopePaths& scopes, std::uint32_t first_id, const std::vector<std::string>& names) {
  scopes.add({1, 0, ScopeKind::phase, "forward"});
  std::uint32_t parent = 1, id = first_id;
  for (const std::string& name : names) {
    scopes.add({id, parent, ScopeKind::module, name});
    parent = id++;
  }
  return parent;
}

TEST(ScopePaths, ModulesAreNamedByTheirPathWithinTheModel) {
  ScopePaths scopes;
  const std::uint32_t inner_module = add_modules(scopes, 10, {"Encoder", "layers", "layers.0"});
  EXPECT_EQ(scopes.resolved_scope(inner_module).module, "layers.0");
  EXPECT_EQ(scopes.resolved_scope(10).module, "Encoder");
}

TEST(ScopePaths, ModelsOfDifferentClassesDoNotShareARow) {
  ScopePaths scopes;
  const std::uint32_t encoder = add_modules(scopes, 10, {"Encoder", "embedding"});
  const std::uint32_t decoder = add_modules(scopes, 20, {"Decoder#2", "embedding"});
  const std::uint32_t attention = add_modules(scopes, 30, {"Decoder#2", "attention"});
  const std::uint32_t head = add_modules(scopes, 40, {"Head", "fc"});
  EXPECT_EQ(scopes.resolved_scope(encoder).module, "Encoder.embedding");
  EXPECT_EQ(scopes.resolved_scope(decoder).module, "Decoder.embedding");
  EXPECT_EQ(scopes.resolved_scope(attention).module, "Decoder.attention") << "all modules of such a model";
  EXPECT_EQ(scopes.resolved_scope(20).module, "Decoder#2");
  EXPECT_EQ(scopes.resolved_scope(head).module, "fc");
}

TEST(ScopePaths, ModelsOfOneClassShareTheirRows) {
  ScopePaths scopes;
  const std::uint32_t first_net_layer = add_modules(scopes, 10, {"Net", "fc"});
  const std::uint32_t second_net_layer = add_modules(scopes, 20, {"Net#2", "fc"});
  EXPECT_EQ(scopes.resolved_scope(first_net_layer).module, "fc");
  EXPECT_EQ(scopes.resolved_scope(second_net_layer).module, "fc");
}

TEST(ScopePaths, ModelsThatAreAmbiguousInAnotherProcessAreNamedInAll) {
  ScopePaths scopes;
  const std::uint32_t encoder = add_modules(scopes, 10, {"Encoder", "embedding"});
  scopes.add_ambiguous_models({"Encoder", "Decoder"});
  EXPECT_EQ(scopes.resolved_scope(encoder).module, "Encoder.embedding");
}

// In an imported trace, a module that is called directly has its full path.
TEST(ScopePaths, AModuleThatIsCalledDirectlyIsNoOtherModel) {
  ScopePaths scopes;
  const std::uint32_t directly_called_module = add_modules(scopes, 10, {"encoder", "encoder.block"});
  const std::uint32_t nested_module = add_modules(scopes, 20, {"T5", "encoder", "encoder.block"});
  EXPECT_EQ(scopes.resolved_scope(directly_called_module).module, "encoder.block");
  EXPECT_EQ(scopes.resolved_scope(nested_module).module, "encoder.block");
}

TEST(ScopePaths, RegionsWithReservedNamesAreMarked) {
  ScopePaths scopes;
  scopes.add({1, 0, ScopeKind::region, "background"});
  scopes.add({2, 1, ScopeKind::region, "probe"});
  EXPECT_EQ(scopes.resolved_scope(2).layer_path(), (std::vector<std::string>{"region background", "probe"}));
}

// A framework trace contains paths without the model; the program's own calls have it.
TEST(ScopePaths, AModuleWithoutAModelSharesTheRowOfItsPath) {
  ScopePaths scopes;
  const std::uint32_t traced_module = add_modules(scopes, 10, {"fc"});
  const std::uint32_t called_module = add_modules(scopes, 20, {"Net", "fc"});
  EXPECT_EQ(scopes.resolved_scope(traced_module).module, "fc");
  EXPECT_EQ(scopes.resolved_scope(called_module).module, "fc");
}

TEST(ScopePaths, AnUndefinedParentHasNoName) {
  ScopePaths scopes;
  scopes.add({5, 99, ScopeKind::module, "fc"});
  EXPECT_EQ(scopes.resolved_scope(5).module, "fc");
  EXPECT_EQ(scopes.resolved_scope(7).module, "");
}

}  // namespace
}  // namespace joulemap::attribution
