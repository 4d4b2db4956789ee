// SPDX-License-Identifier: Apache-2.0
#include "scopes/scope_interner.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

TEST(ScopeInterner, GivesTheSameIdToTheSameParentKindAndName) {
  ScopeInterner scopes;
  const std::uint32_t forward = scopes.find_or_add_child_scope(0, ScopeKind::phase, "forward");
  EXPECT_EQ(forward, 1u) << "0 is the root";
  EXPECT_EQ(scopes.find_or_add_child_scope(0, ScopeKind::phase, "forward"), forward);
  EXPECT_NE(scopes.find_or_add_child_scope(0, ScopeKind::region, "forward"), forward);
  EXPECT_NE(scopes.find_or_add_child_scope(forward, ScopeKind::phase, "forward"), forward);
  EXPECT_EQ(scopes.find_or_add_child_scope(0, ScopeKind::phase, scopes.intern_text("forward")), forward);
}

TEST(ScopeInterner, ReturnsNewScopesOnceAndAllOfThemAgain) {
  ScopeInterner scopes;
  for (int i = 0; i < 5000; ++i) scopes.find_or_add_child_scope(0, ScopeKind::region, std::to_string(i));
  EXPECT_EQ(scopes.take_new_scopes().size(), 5000u);
  const std::uint32_t layer_id = scopes.find_or_add_child_scope(17, ScopeKind::module, "layer");
  const std::vector<Scope> new_scopes = scopes.take_new_scopes();
  ASSERT_EQ(new_scopes.size(), 1u);
  EXPECT_EQ(new_scopes[0].id, layer_id);
  EXPECT_EQ(new_scopes[0].parent, 17u);
  EXPECT_EQ(new_scopes[0].name, "layer");
  EXPECT_EQ(scopes.all_scopes().size(), 5001u);
  EXPECT_EQ(scopes.all_scopes()[16].name, "16");
}

TEST(ScopeInterner, ReturnsTheParentAndCountsWhenThereAreTooManyScopes) {
  ScopeInterner scopes;
  for (std::size_t i = 0; i < ScopeInterner::kMaxScopes; ++i)
    scopes.find_or_add_child_scope(static_cast<std::uint32_t>(i), ScopeKind::region, "nested");
  EXPECT_EQ(scopes.find_or_add_child_scope(7, ScopeKind::region, "another"), 7u);
  EXPECT_EQ(scopes.refused_scope_count(), 1u);
  EXPECT_EQ(scopes.find_or_add_child_scope(0, ScopeKind::region, "nested"), 1u) << "known ones are still found";
}

}  // namespace
}  // namespace joulemap
