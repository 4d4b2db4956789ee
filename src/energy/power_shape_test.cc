// SPDX-License-Identifier: Apache-2.0
#include "energy/power_shape.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

constexpr std::int64_t kShapeSecond_ns = 1'000'000'000;
constexpr std::int64_t kShapeMs = kShapeSecond_ns / 1000;

TEST(PowerShape, SumsWhatEachValueHoldsSinceTheOneBefore) {
  PowerShape shape;
  for (std::int64_t at_ms = 0; at_ms <= 2000; at_ms += 20) shape.add({at_ms * kShapeMs, at_ms <= 1000 ? 100.0 : 300.0});
  EXPECT_NEAR(shape.joules({0, 2 * kShapeSecond_ns}).value(), 400, 1e-9);
  EXPECT_NEAR(shape.joules({500 * kShapeMs, 1500 * kShapeMs}).value(), 50 + 150, 1e-9);
  EXPECT_NEAR(shape.joules({1'005 * kShapeMs, 1'010 * kShapeMs}).value(), 1.5, 1e-9);
}

TEST(PowerShape, KnowsNothingOfAHoleNorOfWhatLiesOutside) {
  PowerShape shape;
  EXPECT_FALSE(shape.joules({0, kShapeSecond_ns}));
  for (const std::int64_t at_ms : {0, 20, 40, 1900, 1920, 2000}) shape.add({at_ms * kShapeMs, 700});
  EXPECT_TRUE(shape.joules({0, 40 * kShapeMs}));
  EXPECT_FALSE(shape.joules({0, 2 * kShapeSecond_ns}));
  EXPECT_FALSE(shape.joules({40 * kShapeMs, 1900 * kShapeMs}));
  EXPECT_FALSE(shape.joules({1900 * kShapeMs, 3000 * kShapeMs}));
}

TEST(PowerShape, DropsAValueThatIsNotInOrderOfTime) {
  PowerShape shape;
  shape.add({0, 100});
  shape.add({100 * kShapeMs, 100});
  shape.add({50 * kShapeMs, 900});
  shape.add({200 * kShapeMs, 100});
  EXPECT_NEAR(shape.joules({0, 200 * kShapeMs}).value(), 20, 1e-9);
}

TEST(PowerShape, ALongHistoryKeepsItsSums) {
  PowerShape shape;
  constexpr std::int64_t kValues = 600'000;
  for (std::int64_t i = 0; i <= kValues; ++i) shape.add({i * 20 * kShapeMs, 250});
  EXPECT_NEAR(shape.joules({0, kValues * 20 * kShapeMs}).value(), 250 * 0.02 * kValues, 1e-3);
  EXPECT_NEAR(shape.joules({1000 * kShapeSecond_ns, 1002 * kShapeSecond_ns}).value(), 500, 1e-6);
}

}  // namespace
}  // namespace joulemap
