// SPDX-License-Identifier: Apache-2.0
//
// ServingLedger: attributes the energy of a machine to the requests of its serving engines. Two passes over the steps:
//
//   observe(...)       second pass over the recording: the composition of each step
//   fit(...)           the energy model of a step (step_model.h)
//   add(...)           third pass: the energy of each step, divided among its requests
//   finish()           sums, distributions, intervals
//
// requests + waste + idle + outside = measured energy. Only steps within the command (or the reported part of it) have
// energy; steps outside of it show how its requests began and ended. Memory: 40 bytes for each step up to a limit, then
// neighbouring steps are merged; about 500 bytes for each request up to a limit, then about 150: these requests are in
// the sums, and not listed. Pure; joules, seconds, CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attribution/requests/step_extents.h"
#include "attribution/requests/step_model.h"
#include "model/diagnostics.h"
#include "model/serving_result.h"
#include "model/time_points.h"

namespace joulemap::attribution {

class ServingLedger {
 public:
  // At most `max_listed_requests` requests are listed one by one.
  explicit ServingLedger(TimeSpan command, std::size_t max_listed_requests = std::size_t{1} << 20)
      : command_(command), max_listed_requests_(max_listed_requests) {}

  void observe_steps(std::uint32_t source, const EngineSteps& steps);
  bool has_steps() const { return step_count_ > 0; }
  // `edges_ns`: updates of the counter that measures most of the energy. `relative_uncertainty`: standard deviation of
  // the energy of the run. Without `energy_j`, energies stay unknown.
  void fit(std::span<const std::int64_t> edges_ns, const EnergyFunction& energy_j, double relative_uncertainty);
  void add(std::uint32_t source, const EngineSteps& steps);
  // Call once.
  ServingResult finish();
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  struct LabelSums {
    LabelEnergy sums;
    StepTerms amounts{};
    StepTerms avoidable_amounts{};
  };
  static constexpr std::uint32_t kUnlistedIndex = UINT32_MAX;
  // A request that steps inside the command worked on.
  struct Request {
    std::uint32_t listed_index = kUnlistedIndex;  // index of listed_requests_
    RequestStatus status = RequestStatus::unfinished;
    bool has_begun = false;
    bool is_clipped = false;                 // steps outside the command worked on it, too
    std::uint32_t context_tokens = 0;        // last known length of its KV cache
    std::uint64_t cached_tokens = 0;         // tokens of its KV cache that came from a prefix cache
    std::uint64_t dropped_cache_tokens = 0;  // tokens whose KV cache a preemption dropped
    double prefill_j = 0;
    double decode_j = 0;
    double recomputed_j = 0;  // of prefill_j
    double rejected_j = 0;    // of decode_j
  };
  struct ListedRequest {
    ServedRequest sums;
    std::uint32_t tenant = 0;  // index of labels_
    std::uint32_t model = 0;
    StepTerms amounts{};  // scaled to the measured energy; of the fixed term: its parts of steps
  };
  struct Engine {  // one process
    StepExtents observed_step_extents;
    StepExtents attributed_step_extents;
    std::unordered_set<std::uint32_t> active_request_numbers;  // of requests that steps inside the command worked on
    std::unordered_map<std::uint32_t, std::uint32_t>
        request_index_by_number;                       // index of requests_ by number, of active requests
    std::unordered_set<std::size_t> listed_id_hashes;  // of listed requests
  };
  // A step and what its requests share.
  struct StepEnergies {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    double scale = 0;
    double energy_j = 0;
    double fixed_j = 0;
    double prompt_fixed_j = 0;  // of a step with prompts
    double tokens = 0;
    double requests = 0;  // that the step computed tokens for
    double prompts = 0;   // of them, those whose prompt it computed
    double decode_j = 0;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t output_tokens = 0;
    std::uint64_t decoded_tokens = 0;  // without first tokens
  };

  bool is_step_inside_command(const EngineStep& step) const;
  void merge_observed_steps();
  void find_steady_state();
  void register_request(Engine& engine, const EngineRequest& request);
  Request* find_request(Engine& engine, std::uint32_t number);
  ListedRequest* find_listed_request(const Request& request);
  std::uint32_t find_or_add_label(const std::string& kind, const std::string& name);
  void add_step(Engine& engine, const EngineStep& step, std::span<const StepRequest> entries);
  StepEnergies compute_step_energies(std::int64_t begin_ns, const EngineStep& step,
                                     std::span<const StepRequest> entries) const;
  void add_step_request(Request& request, const StepRequest& entry, StepEnergies& step);
  void add_request_tokens(Request& request, const StepRequest& entry, StepEnergies& step,
                          std::uint32_t recomputed_tokens);
  void add_request_energy(Request& request, const StepRequest& entry, StepEnergies& step,
                          std::uint32_t recomputed_tokens);
  void add_avoidable_fixed_terms(Engine& engine, std::span<const StepRequest> entries, double scale);
  void add_step_sums(const StepEnergies& step);
  double half_width_j(double energy_j, const StepTerms& term_amounts) const;
  EnergyInterval add_energy_interval(double energy_j, const StepTerms& term_amounts) const;
  void finish_request(const Request& request, ServingResult& result);
  void finish_requests(ServingResult& result);
  void add_model(ServingResult& result) const;
  void add_serving_diagnostics(const ServingResult& result);

  TimeSpan command_;
  std::size_t max_listed_requests_;
  std::map<std::uint32_t, Engine> engines_;  // by source
  std::vector<ObservedStep> observed_steps_;
  std::size_t steps_per_observed_step_ = 1;
  ObservedStep partial_step_ = {};  // the next observed step, until it has steps_per_observed_step_ steps
  std::size_t partial_step_count_ = 0;
  std::uint64_t step_count_ = 0;
  std::optional<TimeSpan> serving_span_;  // from the first to the last step
  std::optional<TimeSpan> steady_span_;
  FittedStepModel model_;
  bool has_energy_ = false;
  double relative_uncertainty_ = 0;
  double serving_j_ = 0;  // energy from the first to the last step
  double command_j_ = 0;

  std::vector<Request> requests_;
  std::vector<ListedRequest> listed_requests_;
  std::uint64_t unlisted_request_count_ = 0;
  std::vector<LabelSums> labels_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> label_index_;
  std::map<std::uint64_t, BatchSizeEnergy> batch_size_energies_;  // by lower end of the range
  ServingResult serving_result_;
  StepTerms prefill_amounts_{};
  StepTerms decode_amounts_{};
  StepTerms cache_saved_amounts_{};
  double steps_j_ = 0;
  std::uint64_t repeated_id_count_ = 0;
  Diagnostics diagnostics_;
};

}  // namespace joulemap::attribution
