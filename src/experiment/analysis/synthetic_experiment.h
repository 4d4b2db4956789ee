// SPDX-License-Identifier: Apache-2.0
//
// Synthetic experiments for tests of the analysis: two factors, any number of repetitions, energies from a function of
// the row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/experiment_data.h"

namespace joulemap::experiment {

inline DomainEnergy make_domain_energy(std::string name, std::optional<double> joules,
                                       Provenance provenance = Provenance::measured) {
  DomainEnergy domain;
  domain.name = std::move(name);
  domain.joules = joules;
  if (joules) domain.provenance = provenance;
  domain.counted = true;
  return domain;
}

// Makes a measured package the row's only domain; nullopt: the domain could not be read.
inline void set_energy(ExperimentRow& row, std::optional<double> joules) {
  row.domains = {make_domain_energy("package-0", joules)};
}

// `energy_j` takes (level of the first factor, level of the second, repetition). Time is energy / 10. Blocks run in
// order.
inline ExperimentData synthetic_experiment(
    std::vector<std::string> first, std::vector<std::string> second, std::size_t repetitions,
    const std::function<double(std::size_t, std::size_t, std::size_t)>& energy_j) {
  ExperimentData data;
  data.name = "made";
  data.factors = {{"framework", std::move(first), true}, {"model", std::move(second), false}};
  data.is_blocked = true;
  for (std::size_t block = 0; block < repetitions; ++block) {
    for (std::size_t a = 0; a < data.factors[0].levels.size(); ++a) {
      for (std::size_t b = 0; b < data.factors[1].levels.size(); ++b) {
        ExperimentRow row;
        row.number = data.rows.size();
        row.levels = {a, b};
        row.block = block;
        row.state = RowState::done;
        row.attempts = 1;
        set_energy(row, energy_j(a, b, block));
        row.elapsed_s = energy_j(a, b, block) / 10;
        data.rows.push_back(std::move(row));
      }
    }
  }
  return data;
}

}  // namespace joulemap::experiment
