// SPDX-License-Identifier: Apache-2.0
//
// ServingResult: the energy of the requests of a serving engine, for `report --by request` and `--by token`. Plain data;
// joules, seconds, tokens. Field names follow the public JSON.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace joulemap {

enum class RequestStatus : std::uint8_t { unfinished, finished, aborted };

// How the energy of a step is divided among its requests (docs/explanation/requests.md).
struct RequestShares {
  double shapley_j = 0;      // variable energy of its own tokens, and an equal part of the fixed energy of its steps
  double token_share_j = 0;  // in proportion to its tokens in each step
  double step_share_j = 0;   // an equal part of the energy of each of its steps
  double saved_without_request_j =
      0;  // what the steps would save without it: fixed energy only of steps that it was alone in
};

struct ServedRequest {
  std::string id;
  std::string tenant;
  std::string model;
  RequestStatus status = RequestStatus::unfinished;
  bool is_clipped = false;          // steps outside the reported part worked on it, too
  std::uint64_t prompt_tokens = 0;  // computed
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t rejected_tokens = 0;
  std::uint64_t steps = 0;
  double begin_s = 0;                   // since the command began: begin of its first step
  double end_s = 0;                     // end of its last step
  std::optional<double> first_token_s;  // from begin_s to its first token
  double step_s = 0;                    // sum of the durations of its steps
  RequestShares shares;
  double low_j = 0;  // interval of shares.shapley_j
  double high_j = 0;
  double prefill_j = 0;  // prefill_j + decode_j = shapley_j; both contain their part of the fixed energy
  double decode_j = 0;
  double fixed_j = 0;          // of shapley_j: part of the fixed energy of its steps
  double kv_cache_read_j = 0;  // of shapley_j: reading the KV cache
  double wasted_j = 0;         // of shapley_j
};

// An energy with its 90 % interval.
struct EnergyInterval {
  double energy_j = 0;
  double low_j = 0;
  double high_j = 0;
};

// A percentile table of J per request in a range of lengths.
struct RequestDistribution {
  std::uint64_t from = 0;  // range of lengths in tokens, inclusive
  std::uint64_t to = 0;
  std::uint64_t requests = 0;
  double mean_j = 0;
  double p50_j = 0;
  double p90_j = 0;
  double p99_j = 0;
};

// Steps whose number of requests is in a range.
struct BatchSizeEnergy {
  std::uint64_t from = 0;  // range of requests in a step, inclusive
  std::uint64_t to = 0;
  std::uint64_t steps = 0;
  double time_s = 0;
  double energy_j = 0;
  double decode_j = 0;
  std::uint64_t decoded_tokens = 0;
  std::optional<double> j_per_output_token;  // decode_j / decoded_tokens
};

struct LabelEnergy {
  std::string kind;  // "tenant" or "model"
  std::string name;
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  double energy_j = 0;
  double low_j = 0;
  double high_j = 0;
  double avoidable_j = 0;  // what the steps would save without all requests of this label
  double avoidable_low_j = 0;
  double avoidable_high_j = 0;
};

// A part of the run: ramps, when the batch fills and drains, or the steady state between them.
struct ServingPhase {
  double time_s = 0;
  double energy_j = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::optional<double> j_per_output_token;  // energy_j / output_tokens
  std::optional<double> output_tokens_per_s;
};

// Energy model of a step: energy = fixed + sum of (coefficient x amount). J per step, per prompt token, per pair of a
// prompt token and a token before it, per decoded token, and per token of KV cache that a decode reads.
struct StepModel {
  EnergyInterval energy_per_step;
  EnergyInterval energy_per_prompt_step;  // of a step that computes prompts, beyond energy_per_step
  EnergyInterval energy_per_prompt_token;
  EnergyInterval energy_per_prompt_token_pair;
  EnergyInterval energy_per_decoded_token;
  EnergyInterval energy_per_context_token;
  std::optional<double> idle_w;  // power between steps
  std::uint64_t observations = 0;
  double relative_error = 0;  // standard deviation of measured / modelled energy of an observation, minus 1
  bool is_regressed = false;  // false: too few observations; energy follows the duration of steps
};

struct ServingResult {
  std::uint64_t steps = 0;
  std::uint64_t requests = 0;  // also those that are not listed
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;
  std::uint64_t unfinished = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t rejected_tokens = 0;
  std::uint64_t recomputed_tokens = 0;  // prompt tokens computed again after preemption; not part of prompt_tokens
  std::uint64_t decoded_tokens = 0;     // of output_tokens: all but the first token of each request
  double begin_s = 0;                   // of the first step, since the command began
  double end_s = 0;                     // of the last step
  double busy_s = 0;                    // time in steps

  bool has_energy = false;
  // requests_j + wasted_j + idle_j + outside_steps_j = energy of the run. requests_j + wasted_j is the energy of all
  // steps.
  double requests_j = 0;
  double wasted_preempted_j = 0;  // recomputation after preemption
  double wasted_aborted_j = 0;
  double wasted_aborted_prefill_j = 0;  // of wasted_aborted_j; the rest is decode
  double wasted_rejected_j = 0;         // rejected speculative tokens
  double idle_j = 0;                    // between steps, from the first step to the last one
  double outside_steps_j = 0;           // before the first and after the last step: loading, shutdown

  EnergyInterval prefill;  // energy of prefill and decode, including their waste
  EnergyInterval decode;
  EnergyInterval all_steps;    // of prefill and decode together: their errors nearly cancel
  double fixed_j = 0;          // of prefill and decode
  double kv_cache_read_j = 0;  // of prefill and decode: reading the KV cache
  double cached_j = 0;         // of prefill: reading cached prompt tokens
  // Estimate, not part of any sum: what computing the cached prompt tokens would have cost.
  EnergyInterval energy_saved_by_cache;

  StepModel model;
  std::vector<ServedRequest> listed_requests;  // in order of their first step
  RequestDistribution distribution;            // of all listed requests that finished, and are not clipped
  std::vector<RequestDistribution> by_prompt_length;
  std::vector<RequestDistribution> by_output_length;
  std::vector<BatchSizeEnergy> by_batch_size;
  std::vector<LabelEnergy> labels;
  ServingPhase steady_phase;
  ServingPhase ramp_phases;

  double wasted_j() const { return wasted_preempted_j + wasted_aborted_j + wasted_rejected_j; }
};

}  // namespace joulemap
