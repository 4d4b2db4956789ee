// SPDX-License-Identifier: Apache-2.0
#include "base/process_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace joulemap {
namespace {

TEST(ProcessParents, ParsesTheParentBehindAnyName) {
  EXPECT_EQ(parse_parent("12 (python) S 7 12 12"), 7);
  EXPECT_EQ(parse_parent("12 (a) S 9 (b)) R 8 1"), 8);
  for (const char* text : {"", "12", "12 (a", "12 (a)", "12 (a) S", "12 (a) S ", "12 (a) S x", "12 (a) S -3 "}) {
    EXPECT_EQ(parse_parent(text), std::nullopt) << text;
  }
}

TEST(ProcessParents, KnowsItsOwnAncestors) {
  EXPECT_EQ(parent_of(::getpid()), ::getppid());
  EXPECT_TRUE(descends_from(::getpid(), ::getpid()));
  EXPECT_TRUE(descends_from(::getpid(), ::getppid()));
  EXPECT_FALSE(descends_from(::getppid(), ::getpid()));
}

TEST(ProcessParents, AProcessThatIsGoneDescendsFromNobody) {
  constexpr pid_t kNobody = 0x3FFF'FFFF;  // above the most that Linux gives
  EXPECT_EQ(parent_of(kNobody), std::nullopt);
  EXPECT_FALSE(descends_from(kNobody, ::getpid()));
  EXPECT_FALSE(descends_from(0, ::getpid()));
}

}  // namespace
}  // namespace joulemap
