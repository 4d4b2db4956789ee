// SPDX-License-Identifier: Apache-2.0
//
// Synthetic experiments for tests of the analysis: two or three factors, any number of repetitions, energies from a
// function of the row.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/experiment_data.h"
#include "statistics/random.h"

namespace joulemap::experiment {

inline DomainEnergy make_domain_energy(std::string name, std::optional<double> joules,
                                       Provenance provenance = Provenance::measured) {
  DomainEnergy domain;
  domain.name = std::move(name);
  domain.joules = joules;
  if (joules) domain.provenance = provenance;
  domain.is_counted = true;
  return domain;
}

// Makes a measured package the row's only domain; nullopt: the domain could not be read.
inline void set_package_energy(ExperimentRow& row, std::optional<double> joules) {
  row.domains = {make_domain_energy("package-0", joules)};
}

// `energy_j` takes (level of the first factor, level of the second, repetition). Time is energy / 10. Blocks run in
// order.
inline ExperimentData synthetic_experiment(
    std::vector<std::string> framework_names, std::vector<std::string> model_names, std::size_t repetitions,
    const std::function<double(std::size_t, std::size_t, std::size_t)>& energy_j) {
  ExperimentData data;
  data.name = "made";
  data.factors = {{"framework", std::move(framework_names), true}, {"model", std::move(model_names), false}};
  data.is_blocked = true;
  for (std::size_t block = 0; block < repetitions; ++block) {
    for (std::size_t framework_level = 0; framework_level < data.factors[0].levels.size(); ++framework_level) {
      for (std::size_t model_level = 0; model_level < data.factors[1].levels.size(); ++model_level) {
        ExperimentRow row;
        row.number = data.rows.size();
        row.levels = {framework_level, model_level};
        row.block = block;
        row.state = ExperimentRowState::done;
        row.attempts = 1;
        set_package_energy(row, energy_j(framework_level, model_level, block));
        row.elapsed_s = energy_j(framework_level, model_level, block) / 10;
        data.rows.push_back(std::move(row));
      }
    }
  }
  return data;
}

struct FactorialDesign {
  std::size_t framework_count = 2;
  std::size_t model_count = 9;
  std::size_t batch_count = 4;
  std::size_t repetitions = 2;
  double noise = 0.03;  // standard deviation of the logarithm of an energy
  bool is_blocked = false;
};

// Framework (compared) x model x batch. Every combination of model and batch has its own energy; blocks differ by 10 %.
// `effect(model, batch)` is the logarithm of the ratio between a framework and the one before it.
inline ExperimentData make_synthetic_factorial(std::uint64_t seed, const FactorialDesign& design,
                                               const std::function<double(std::size_t, std::size_t)>& effect) {
  statistics::Random random(seed);
  ExperimentData data;
  data.name = "made";
  data.factors = {{"framework", {}, true}, {"model", {}, false}, {"batch", {}, false}};
  const std::size_t counts[] = {design.framework_count, design.model_count, design.batch_count};
  for (std::size_t factor = 0; factor < 3; ++factor) {
    for (std::size_t i = 0; i < counts[factor]; ++i)
      data.factors[factor].levels.push_back(data.factors[factor].name + std::to_string(i));
  }
  data.is_blocked = design.is_blocked;
  std::vector<double> sizes(design.model_count * design.batch_count);
  for (double& size : sizes) size = 6 + random.normal();
  for (std::size_t block = 0; block < design.repetitions; ++block) {
    const double block_effect = design.is_blocked ? 0.1 * random.normal() : 0;
    for (std::size_t framework = 0; framework < design.framework_count; ++framework) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const double log_ratio =
            static_cast<double>(framework) * effect(i / design.batch_count, i % design.batch_count);
        ExperimentRow row;
        row.number = data.rows.size();
        row.levels = {framework, i / design.batch_count, i % design.batch_count};
        row.block = block;
        row.state = ExperimentRowState::done;
        row.attempts = 1;
        set_package_energy(row, std::exp(sizes[i] + block_effect + log_ratio + design.noise * random.normal()));
        data.rows.push_back(std::move(row));
      }
    }
  }
  return data;
}

}  // namespace joulemap::experiment
