// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace joulemap::simulated {
namespace {

LawSettings noiseless_settings() {
  LawSettings settings;
  settings.noise = 0;
  return settings;
}

class OperationsTest : public testing::Test {
 protected:
  OperationsTest() { page_[0] = 11, page_[1] = 1; }
  std::array<std::uint32_t, 128> page_{};
  Operations operations_{{{"conv", 1.4, 0.5}, {"relu", 0.6, 2}}, page_.data()};
};

TEST_F(OperationsTest, ARunningOperationHasThePowerOfItsKind) {
  operations_.update({{11, 0.001}});
  EXPECT_DOUBLE_EQ(operations_.factors().power, 0.6);
  EXPECT_DOUBLE_EQ(operations_.factors().memory, 2);
  page_[1] = 0;
  operations_.update({{11, 0.001}, {12, 0.001}});  // the operation of 12 is unknown
  EXPECT_DOUBLE_EQ(operations_.factors().power, 1.2);
}

TEST_F(OperationsTest, AllEnergyOfATickIsAttributed) {
  PowerLaw law(noiseless_settings());
  operations_.update({{11, 0.0003}, {12, 0.0002}});
  const MachinePower& power = law.step(0.25, 0.001, operations_.factors());
  operations_.attribute_energy(power, 0.001);
  double sum_j = 0;
  for (const OperationEnergy& energy : operations_.energies()) sum_j += energy.energy_j;
  EXPECT_NEAR(sum_j, 0.001 * (power.sockets[0].package_w + power.sockets[0].dram_w), 1e-12);
  EXPECT_NEAR(operations_.energies()[3].energy_j, 0.5 * 0.001 * 21, 1e-12);  // half of the tick is idle
  EXPECT_EQ(operations_.energies()[0].energy_j, 0);
}

TEST_F(OperationsTest, RefusesUnreadableKinds) {
  EXPECT_EQ(parse_operation_kinds("conv 1.4 0.5\nrelu 0.6 2\n")->size(), 2u);
  EXPECT_FALSE(parse_operation_kinds("conv much\n").has_value());
  EXPECT_FALSE(parse_operation_kinds("conv -1 0\n").has_value());
}

}  // namespace
}  // namespace joulemap::simulated
