// SPDX-License-Identifier: Apache-2.0
//
// Linear model of a factorial experiment: fixed effects of factors and of their interactions, and a random intercept of
// each block. Without blocks it is the ordinary linear model. Answers which factors matter, and whether the effect of
// one depends on another.
//
// Factors have sum contrasts, so that a main effect is the mean over the levels of the other factors, each with the
// same weight. The variance of blocks is estimated by REML, profiled to one parameter: the ratio of the variances of
// blocks and of residuals. Tests are type III: Wald F tests of all coefficients of a term. Their denominator degrees of
// freedom are by containment: the number of values minus the rank of all fixed and block columns. Every factor must
// vary within blocks. For ratios pass logarithms. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "statistics/effect_size.h"

namespace joulemap::statistics {

// Values of an experiment, with the level of each factor. Missing cells and missing values are allowed.
struct FactorialData {
  std::vector<double> values;
  std::vector<std::vector<std::size_t>> levels;  // [value][factor]
  std::vector<std::size_t> blocks;               // [value]: any numbers; empty: no blocks
};

// A main effect (one factor) or an interaction (several), as indices of factors.
using ModelTerm = std::vector<std::size_t>;
// The terms of a comparison of one factor's levels: all main effects and interactions of the other factors, so that
// each of their combinations has its own mean; then the main effect of the factor, and with `has_interactions` its
// interaction with each of the others. Factors of interactions are in ascending order.
std::vector<ModelTerm> make_comparison_terms(std::size_t factors, std::size_t factor, bool has_interactions);

struct FTestResult {
  double f = 0;
  double numerator_df = 0;
  double denominator_df = 0;
  double p = 1;
};

// A column of the model: the product of one sum contrast of each factor of a term.
struct ModelColumn {
  std::optional<std::size_t> term;     // none: the intercept
  std::vector<std::size_t> contrasts;  // for each factor of the term
};

struct FactorialFit {
  std::vector<ModelTerm> terms;
  std::vector<std::vector<std::size_t>> levels;  // by factor: the levels that have values
  std::vector<ModelColumn> columns;              // linearly independent columns
  std::vector<bool> has_all_contrasts;           // by term: missing cells remove none of its columns
  std::vector<double> coefficients;              // by column
  std::vector<double> covariance;                // of the coefficients, row by row
  double residual_variance = 0;
  double block_variance = 0;
  double degrees_of_freedom = 0;
  std::vector<double> fitted_values;  // fixed part for each value
  std::vector<double> residuals;      // value - fitted, including the deviation of its block
};

// Nothing if there are too few values for the terms, or if they have no variation besides the terms.
std::optional<FactorialFit> fit_factorial_model(const FactorialData& data, std::span<const ModelTerm> terms);

// Whether all effects of a term are zero. Nothing if the data have no information about the term.
std::optional<FTestResult> wald_f_test(const FactorialFit& fit, std::size_t term);

// Difference a - b of two levels of a factor, averaged over the levels of the other factors, with an interval by
// Student's t. Nothing if missing cells leave it undetermined.
std::optional<EffectEstimate> estimate_level_difference(const FactorialFit& fit, std::size_t factor,
                                                        std::size_t first_level, std::size_t second_level,
                                                        double confidence);

// Rank-based version of wald_f_test(): the aligned rank transform (Wobbrock and others 2011). Removes the estimated
// effects of all other terms from the values, ranks the result, and tests the term in a fit of the ranks.
std::optional<FTestResult> aligned_rank_test(const FactorialData& data, const FactorialFit& fit, std::size_t term);

}  // namespace joulemap::statistics
