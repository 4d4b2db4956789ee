// SPDX-License-Identifier: Apache-2.0
//
// EnergyBasis: which energy of an experiment's rows can be compared. Rows are compared by one provenance (measured if
// any row has a measurement, else estimated) and over the same domains: those that every row has. Pure; joules.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/experiment_data.h"

namespace joulemap::experiment {

struct EnergyBasis {
  Provenance provenance = Provenance::measured;
  std::vector<std::string> domains;  // domains that are summed, in row order; empty: the rows have none in common
  std::vector<std::string> excluded_domains;  // domains of that provenance that only some rows have; not summed
  bool has_energy = false;                    // at least one row has an energy

  bool is_comparable() const { return !domains.empty(); }
};

// Basis of the rows that are done. `kind` ("gpu") restricts it to domains of that kind; empty: all kinds.
EnergyBasis energy_basis(std::span<const ExperimentRow> rows, std::string_view kind = {});

// Sum over the domains of the basis. None if the row lacks one of them or could not read a domain that other rows have.
std::optional<double> comparable_energy_j(const EnergyBasis& basis, const ExperimentRow& row);

// Whether the row's recording covers exactly the domains of the basis, so that its epochs and functions are comparable.
bool has_domains_of_basis(const EnergyBasis& basis, const ExperimentRow& row);

// "package-1" -> "package", "gpu0" -> "gpu".
std::string_view kind_of_domain(std::string_view name);

}  // namespace joulemap::experiment
