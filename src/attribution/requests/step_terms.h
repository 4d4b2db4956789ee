// SPDX-License-Identifier: Apache-2.0
//
// Terms of the energy model of a forward step: how much of each kind of work a step did. A step costs a fixed energy
// (reading the weights, launching kernels, waiting for the scheduler), and energy in proportion to each other term.
// Plain data; pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/engine_step.h"

namespace joulemap::attribution {

enum StepTerm : std::size_t {
  kFixedTerm,            // 1 for each step
  kPromptStepTerm,       // 1 for each step that computes prompts: their kernels are launched, and weights read again
  kPromptTerm,           // prompt tokens
  kPromptAttentionTerm,  // pairs of a prompt token and a token before it: attention within a prompt is quadratic
  kDecodeTerm,           // decoded and rejected tokens
  kContextTerm,          // tokens of KV cache that decoding requests read
  kStepTermCount
};

using StepTerms = std::array<double, kStepTermCount>;

// Tokens that the step decoded for the request. The first token of a request comes with its prompt, at no cost.
inline double decoded_token_count(const StepRequest& entry) {
  const std::uint64_t decoded = std::uint64_t{entry.decoded_tokens} + entry.rejected_tokens;
  return static_cast<double>(entry.prompt_tokens > 0 && decoded > 0 ? decoded - 1 : decoded);
}

// The terms of one request in a step; its fixed terms are 0, because fixed energies belong to the whole step.
inline StepTerms request_step_terms(const StepRequest& entry) {
  const double prompt = entry.prompt_tokens;
  const double context = entry.context_tokens;
  const double previous_context = std::max(context - prompt, 0.0);
  const double decoded = decoded_token_count(entry);
  return {0, 0, prompt, prompt * (previous_context + prompt / 2), decoded, decoded > 0 ? context : 0};
}

inline void add_scaled_terms(StepTerms& sum, const StepTerms& terms, double factor = 1) {
  for (std::size_t i = 0; i < kStepTermCount; ++i) sum[i] += factor * terms[i];
}

inline double dot_product(const StepTerms& left_terms, const StepTerms& right_terms) {
  double sum = 0;
  for (std::size_t i = 0; i < kStepTermCount; ++i) sum += left_terms[i] * right_terms[i];
  return sum;
}

}  // namespace joulemap::attribution
