// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/energy_basis.h"

#include <gtest/gtest.h>

#include "experiment/analysis/synthetic_experiment.h"

namespace joulemap::experiment {
namespace {

using Names = std::vector<std::string>;

ExperimentRow make_row_with_domains(std::vector<DomainEnergy> domains) {
  ExperimentRow row;
  row.state = ExperimentRowState::done;
  row.domains = std::move(domains);
  return row;
}

DomainEnergy estimate(std::string name, double joules) {
  return make_domain_energy(std::move(name), joules, Provenance::estimated);
}

TEST(EnergyBasis, EnergyBasisIsMeasuredWhereAnyRowHasAMeasurement) {
  const std::vector<ExperimentRow> rows = {
      make_row_with_domains({estimate("package-0", 5)}),
      make_row_with_domains({make_domain_energy("package-0", 7), estimate("dram-0", 2)})};
  const EnergyBasis basis = energy_basis(rows);
  EXPECT_EQ(basis.provenance, Provenance::measured);
  EXPECT_EQ(basis.domains, Names{"package-0"});
  EXPECT_FALSE(comparable_energy_j(basis, rows[0])) << "an estimate does not stand in for a measurement";
  EXPECT_EQ(comparable_energy_j(basis, rows[1]), 7);
}

TEST(EnergyBasis, EnergyBasisHasTheDomainsOfAllRows) {
  const std::vector<ExperimentRow> rows = {
      make_row_with_domains({make_domain_energy("package-0", 5), make_domain_energy("gpu0", 9)}),
      make_row_with_domains({make_domain_energy("gpu0", 8), make_domain_energy("gpu1", 8)})};
  const EnergyBasis basis = energy_basis(rows);
  EXPECT_EQ(basis.domains, Names{"gpu0"});
  EXPECT_EQ(basis.excluded_domains, (Names{"package-0", "gpu1"}));
  EXPECT_EQ(comparable_energy_j(basis, rows[0]), 9);
  EXPECT_EQ(comparable_energy_j(basis, rows[1]), 8);
  EXPECT_FALSE(has_domains_of_basis(basis, rows[0])) << "its epochs and functions hold package-0, too";
  EXPECT_TRUE(energy_basis(rows, "gpu").is_comparable());
  EXPECT_EQ(energy_basis(rows, "package").domains, Names{"package-0"});
}

TEST(EnergyBasis, EnergyBasisOfRowsWithoutACommonDomainIsEmpty) {
  const std::vector<ExperimentRow> rows = {make_row_with_domains({make_domain_energy("psys", 5)}),
                                           make_row_with_domains({make_domain_energy("gpu0", 8)})};
  const EnergyBasis basis = energy_basis(rows);
  EXPECT_FALSE(basis.is_comparable());
  EXPECT_EQ(basis.excluded_domains, (Names{"psys", "gpu0"}));
  EXPECT_FALSE(comparable_energy_j(basis, rows[0]));
}

TEST(EnergyBasis, ARowWithAnUnreadableDomainHasNoEnergyAndDoesNotAffectOtherRows) {
  const std::vector<ExperimentRow> rows = {
      make_row_with_domains({make_domain_energy("package-0", 5), make_domain_energy("gpu0", 9)}),
      make_row_with_domains({make_domain_energy("package-0", 5), make_domain_energy("gpu0", {})})};
  const EnergyBasis basis = energy_basis(rows);
  EXPECT_EQ(basis.domains, (Names{"package-0", "gpu0"}));
  EXPECT_EQ(comparable_energy_j(basis, rows[0]), 14);
  EXPECT_FALSE(comparable_energy_j(basis, rows[1]));
}

TEST(EnergyBasis, EnergyBasisIgnoresADomainThatNoRowCouldRead) {
  const std::vector<ExperimentRow> rows = {
      make_row_with_domains({make_domain_energy("gpu0", 9), make_domain_energy("gpu1", {})}),
      make_row_with_domains({make_domain_energy("gpu0", 8), make_domain_energy("gpu1", {})})};
  const EnergyBasis basis = energy_basis(rows);
  EXPECT_EQ(basis.domains, Names{"gpu0"});
  EXPECT_EQ(comparable_energy_j(basis, rows[1]), 8);
}

TEST(EnergyBasis, EnergyBasisIgnoresFailedRows) {
  std::vector<ExperimentRow> rows = {make_row_with_domains({make_domain_energy("gpu0", 9)}),
                                     make_row_with_domains({make_domain_energy("psys", 8)})};
  rows[1].state = ExperimentRowState::failed;
  EXPECT_EQ(energy_basis(rows).domains, Names{"gpu0"});
}

TEST(EnergyBasis, EnergyBasisOfRowsWithoutEnergyIsUnknown) {
  const std::vector<ExperimentRow> rows = {make_row_with_domains({})};
  const EnergyBasis basis = energy_basis(rows);
  EXPECT_FALSE(basis.has_energy || basis.is_comparable());
}

}  // namespace
}  // namespace joulemap::experiment
