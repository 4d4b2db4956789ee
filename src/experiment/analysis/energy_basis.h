// SPDX-License-Identifier: Apache-2.0
//
// EnergyBasis: which energy of an experiment's rows can be compared. Rows are compared by one provenance (measured where any
// row has a measurement, else estimated) and by the same domains: those that every row has. Pure; joules.
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
  std::vector<std::string> domains;   // summed, in the order of the rows; empty: rows have none in common
  std::vector<std::string> left_out;  // of that provenance in some rows only: in no sum
  bool is_known = false;              // some row has an energy

  bool is_comparable() const { return !domains.empty(); }
};

// Of the rows that are done. `kind` ("gpu") restricts it to the domains of that kind; empty: all.
EnergyBasis energy_basis(std::span<const ExperimentRow> rows, std::string_view kind = {});

// Of the basis's domains. None where the row lacks one of them, or could not read a domain that other rows have.
std::optional<double> energy_on(const EnergyBasis& basis, const ExperimentRow& row);

// Whether what the row's recording shows (epochs, functions) is of exactly these domains.
bool shows_basis(const EnergyBasis& basis, const ExperimentRow& row);

// "package" of "package-1", "gpu" of "gpu0".
std::string_view kind_of_domain(std::string_view name);

}  // namespace joulemap::experiment
