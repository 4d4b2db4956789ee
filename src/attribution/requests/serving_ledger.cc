// SPDX-License-Identifier: Apache-2.0
#include "attribution/requests/serving_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/clock.h"
#include "statistics/normal.h"

namespace joulemap::attribution {
namespace {

constexpr std::size_t kMaxObservedSteps = std::size_t{1} << 22;

bool has_computed_tokens(const StepRequest& entry) {
  return entry.prompt_tokens > 0 || entry.decoded_tokens > 0 || entry.rejected_tokens > 0;
}

double count_computed_tokens(const StepRequest& entry) {
  return double{1} * entry.prompt_tokens + entry.decoded_tokens + entry.rejected_tokens;
}

std::array<float, kStepTermCount> sum_step_terms(std::span<const StepRequest> entries) {
  StepTerms sum{1};
  for (const StepRequest& entry : entries) {
    add_scaled_terms(sum, request_step_terms(entry));
    if (entry.prompt_tokens > 0) sum[kPromptStepTerm] = 1;
  }
  std::array<float, kStepTermCount> terms{};
  std::ranges::transform(sum, terms.begin(), [](double value) { return static_cast<float>(value); });
  return terms;
}

// Calls use(step, its entries) for each step of a batch.
template <class Use>
void for_each_step(const EngineSteps& batch, const Use& use) {
  std::span<const StepRequest> entries = batch.entries;
  for (EngineStep step : batch.steps) {
    step.end_ns = std::max(step.end_ns, step.begin_ns);  // a damaged recording may contain any times
    const std::size_t count = std::min<std::size_t>(step.requests, entries.size());
    use(step, entries.first(count));
    entries = entries.subspan(count);
  }
}

// Ranges of lengths: 0, 1, 2-3, 4-7 ... The lower end of the range of `length`.
std::uint64_t length_range_begin(std::uint64_t length) { return length == 0 ? 0 : std::bit_floor(length); }
std::uint64_t length_range_end(std::uint64_t begin) { return begin == 0 ? 0 : 2 * begin - 1; }

double percentile(const std::vector<double>& sorted_values, double fraction) {
  const double position = fraction * static_cast<double>(sorted_values.size() - 1);
  const auto lower_index = static_cast<std::size_t>(position);
  const std::size_t upper_index = std::min(lower_index + 1, sorted_values.size() - 1);
  return sorted_values[lower_index] +
         (position - static_cast<double>(lower_index)) * (sorted_values[upper_index] - sorted_values[lower_index]);
}

RequestDistribution make_request_distribution(std::vector<double> joules, std::uint64_t length_begin,
                                              std::uint64_t length_end) {
  RequestDistribution distribution{length_begin, length_end, joules.size(), 0, 0, 0, 0};
  if (joules.empty()) return distribution;
  std::ranges::sort(joules);
  for (const double energy_j : joules) distribution.mean_j += energy_j / static_cast<double>(joules.size());
  distribution.p50_j = percentile(joules, 0.5);
  distribution.p90_j = percentile(joules, 0.9);
  distribution.p99_j = percentile(joules, 0.99);
  return distribution;
}

// Its energy is that of the whole request.
bool is_completely_recorded(const ServedRequest& request) {
  return request.status == RequestStatus::finished && !request.is_clipped;
}

template <class GetLength>
std::vector<RequestDistribution> energy_distributions_by_length(const std::vector<ServedRequest>& requests,
                                                                GetLength get_length) {
  std::map<std::uint64_t, std::vector<double>> energies_by_length;
  for (const ServedRequest& request : requests) {
    if (is_completely_recorded(request))
      energies_by_length[length_range_begin(get_length(request))].push_back(request.shares.shapley_j);
  }
  std::vector<RequestDistribution> distributions;
  for (auto& [begin, joules] : energies_by_length)
    distributions.push_back(make_request_distribution(std::move(joules), begin, length_range_end(begin)));
  return distributions;
}

std::optional<double> divide_by_count(double energy_j, std::uint64_t count) {
  return count > 0 ? std::optional(energy_j / static_cast<double>(count)) : std::nullopt;
}

// Follows the KV cache of a request through an entry. Returns how many of the prompt tokens of the entry were computed
// before, and dropped by a preemption.
template <class Request>
std::uint32_t update_cached_tokens(Request& request, const StepRequest& entry) {
  if (entry.context_tokens > 0) request.context_tokens = entry.context_tokens;  // an event need not contain the length
  request.cached_tokens += entry.cached_tokens;
  request.dropped_cache_tokens -= std::min<std::uint64_t>(entry.cached_tokens, request.dropped_cache_tokens);
  const auto recomputed_tokens =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(entry.prompt_tokens, request.dropped_cache_tokens));
  request.dropped_cache_tokens -= recomputed_tokens;
  return recomputed_tokens;
}

template <class Request>
void apply_request_events(Request& request, const StepRequest& entry) {
  if ((entry.events & kRequestPreempted) != 0) {
    // Tokens that an earlier preemption dropped and no step has computed since remain dropped.
    request.dropped_cache_tokens += request.context_tokens;
    request.context_tokens = 0;
    request.cached_tokens = 0;
  }
  if ((entry.events & kRequestFinished) != 0) request.status = RequestStatus::finished;
  if ((entry.events & kRequestAborted) != 0) request.status = RequestStatus::aborted;
}

void set_phase_rates(ServingPhase& phase) {
  phase.j_per_output_token = divide_by_count(phase.energy_j, phase.output_tokens);
  if (phase.time_s > 0) phase.output_tokens_per_s = static_cast<double>(phase.output_tokens) / phase.time_s;
}

}  // namespace

// A step that a report of a part of the run cuts is left out.
bool ServingLedger::is_step_inside_command(const EngineStep& step) const {
  return step.begin_ns >= command_.begin_ns && step.end_ns <= command_.end_ns;
}

void ServingLedger::observe_steps(std::uint32_t source, const EngineSteps& batch) {
  Engine& engine = engines_[source];
  for_each_step(batch, [&](const EngineStep& step, std::span<const StepRequest> entries) {
    const std::int64_t begin_ns =
        std::max(engine.observed_step_extents.extended_begin_ns(step, entries), command_.begin_ns);
    if (!is_step_inside_command(step) || std::ranges::none_of(entries, has_computed_tokens)) return;
    for (const StepRequest& entry : entries) {
      if (has_computed_tokens(entry)) engine.active_request_numbers.insert(entry.request);
    }
    ++step_count_;
    if (!serving_span_) serving_span_ = {begin_ns, step.end_ns};
    serving_span_ = {std::min(serving_span_->begin_ns, begin_ns), std::max(serving_span_->end_ns, step.end_ns)};
    const std::array<float, kStepTermCount> terms = sum_step_terms(entries);
    if (partial_step_count_ == 0) partial_step_ = {begin_ns, step.end_ns, {}};
    partial_step_.begin_ns = std::min(partial_step_.begin_ns, begin_ns);
    partial_step_.end_ns = std::max(partial_step_.end_ns, step.end_ns);
    for (std::size_t i = 0; i < kStepTermCount; ++i) partial_step_.terms[i] += terms[i];
    if (++partial_step_count_ < steps_per_observed_step_) return;
    observed_steps_.push_back(partial_step_);
    partial_step_count_ = 0;
    if (observed_steps_.size() >= kMaxObservedSteps) merge_observed_steps();
  });
}

// Halves the number of observed steps. Steps of several engines may alternate: their times overlap then.
void ServingLedger::merge_observed_steps() {
  for (std::size_t i = 0; i + 1 < observed_steps_.size(); i += 2) {
    ObservedStep merged_step = observed_steps_[i];
    merged_step.begin_ns = std::min(merged_step.begin_ns, observed_steps_[i + 1].begin_ns);
    merged_step.end_ns = std::max(merged_step.end_ns, observed_steps_[i + 1].end_ns);
    for (std::size_t k = 0; k < kStepTermCount; ++k) merged_step.terms[k] += observed_steps_[i + 1].terms[k];
    observed_steps_[i / 2] = merged_step;
  }
  observed_steps_.resize(observed_steps_.size() / 2);
  steps_per_observed_step_ *= 2;
}

// The steady state: from the first to the last step that decodes at least half as many tokens as the median decoding
// step, by time.
void ServingLedger::find_steady_state() {
  std::vector<std::pair<float, double>> decoded;  // tokens, s
  double decoding_s = 0;
  const auto rate = [](const ObservedStep& step) { return step.terms[kDecodeTerm] / step.terms[kFixedTerm]; };
  for (const ObservedStep& step : observed_steps_) {
    if (step.terms[kDecodeTerm] <= 0) continue;
    decoded.emplace_back(rate(step), seconds(step.end_ns - step.begin_ns));
    decoding_s += decoded.back().second;
  }
  if (decoded.empty()) return;
  std::ranges::sort(decoded);
  double cumulative_s = 0;
  float median = decoded.back().first;
  for (const auto& [tokens, time_s] : decoded) {
    cumulative_s += time_s;
    if (cumulative_s < decoding_s / 2) continue;
    median = tokens;
    break;
  }
  for (const ObservedStep& step : observed_steps_) {
    if (step.terms[kDecodeTerm] <= 0 || rate(step) < median / 2) continue;
    if (!steady_span_) steady_span_ = {step.begin_ns, step.end_ns};
    steady_span_ = {std::min(steady_span_->begin_ns, step.begin_ns), std::max(steady_span_->end_ns, step.end_ns)};
  }
}

void ServingLedger::fit(std::span<const std::int64_t> edges_ns, const EnergyFunction& energy_j,
                        double relative_uncertainty) {
  if (partial_step_count_ > 0) observed_steps_.push_back(partial_step_);
  partial_step_count_ = 0;
  find_steady_state();
  relative_uncertainty_ = relative_uncertainty;
  has_energy_ = bool{energy_j} && serving_span_.has_value();
  if (has_energy_) {
    serving_j_ = energy_j(serving_span_->begin_ns, serving_span_->end_ns);
    command_j_ = energy_j(command_.begin_ns, command_.end_ns);
    model_ = fit_step_model(std::move(observed_steps_), edges_ns, energy_j);
  }
  observed_steps_ = {};
}

std::uint32_t ServingLedger::find_or_add_label(const std::string& kind, const std::string& name) {
  const auto [label_entry, is_new] = label_index_.try_emplace({kind, name}, static_cast<std::uint32_t>(labels_.size()));
  if (is_new) {
    labels_.emplace_back();
    labels_.back().sums.kind = kind;
    labels_.back().sums.name = name;
  }
  return label_entry->second;
}

void ServingLedger::register_request(Engine& engine, const EngineRequest& engine_request) {
  if (!engine.active_request_numbers.contains(engine_request.number)) return;
  engine.request_index_by_number.insert_or_assign(engine_request.number, static_cast<std::uint32_t>(requests_.size()));
  Request& request = requests_.emplace_back();
  if (listed_requests_.size() >= max_listed_requests_) return;
  if (!engine.listed_id_hashes.insert(std::hash<std::string>()(engine_request.id)).second) ++repeated_id_count_;
  request.listed_index = static_cast<std::uint32_t>(listed_requests_.size());
  ListedRequest& listed_request = listed_requests_.emplace_back();
  listed_request.sums.id = engine_request.id;
  listed_request.sums.tenant = engine_request.tenant;
  listed_request.sums.model = engine_request.model;
  listed_request.tenant = find_or_add_label("tenant", engine_request.tenant);
  listed_request.model = find_or_add_label("model", engine_request.model);
}

// Null if no step inside the command works on the request. The pointer is valid until the next request is registered.
ServingLedger::Request* ServingLedger::find_request(Engine& engine, std::uint32_t number) {
  const auto request_entry = engine.request_index_by_number.find(number);
  if (request_entry != engine.request_index_by_number.end()) return &requests_[request_entry->second];
  if (!engine.active_request_numbers.contains(number)) return nullptr;
  // Its definition is lost: a damaged recording.
  register_request(engine, {number, fmt::format("request {}", number), "", ""});
  return &requests_.back();
}

ServingLedger::ListedRequest* ServingLedger::find_listed_request(const Request& request) {
  return request.listed_index == kUnlistedIndex ? nullptr : &listed_requests_[request.listed_index];
}

void ServingLedger::add(std::uint32_t source, const EngineSteps& batch) {
  Engine& engine = engines_[source];
  for (const EngineRequest& request : batch.requests) register_request(engine, request);
  for_each_step(batch,
                [&](const EngineStep& step, std::span<const StepRequest> entries) { add_step(engine, step, entries); });
}

ServingLedger::StepEnergies ServingLedger::compute_step_energies(std::int64_t begin_ns, const EngineStep& step,
                                                                 std::span<const StepRequest> entries) const {
  StepEnergies step_energies{.begin_ns = begin_ns, .end_ns = step.end_ns};
  StepTerms terms{};
  for (const StepRequest& entry : entries) {
    if (!has_computed_tokens(entry)) continue;
    add_scaled_terms(terms, request_step_terms(entry));
    step_energies.tokens += count_computed_tokens(entry);
    step_energies.requests += 1;
    step_energies.prompts += entry.prompt_tokens > 0 ? 1 : 0;
  }
  if (step_energies.requests > 0) terms[kFixedTerm] = 1;
  if (step_energies.prompts > 0) terms[kPromptStepTerm] = 1;
  step_energies.scale = has_energy_ ? model_.mean_energy_scale(begin_ns, step.end_ns) : 0;
  step_energies.energy_j = step_energies.scale * dot_product(terms, model_.coefficients);
  step_energies.fixed_j = step_energies.scale * terms[kFixedTerm] * model_.coefficients[kFixedTerm];
  step_energies.prompt_fixed_j = step_energies.scale * terms[kPromptStepTerm] * model_.coefficients[kPromptStepTerm];
  return step_energies;
}

void ServingLedger::add_step(Engine& engine, const EngineStep& step, std::span<const StepRequest> entries) {
  const std::int64_t begin_ns =
      std::max(engine.attributed_step_extents.extended_begin_ns(step, entries), command_.begin_ns);
  const bool has_energy = is_step_inside_command(step);
  StepEnergies energies = has_energy ? compute_step_energies(begin_ns, step, entries) : StepEnergies{};
  for (const StepRequest& entry : entries) {
    Request* const request = find_request(engine, entry.request);
    if (request == nullptr) continue;
    if (has_energy) {
      add_step_request(*request, entry, energies);
    } else {
      request->is_clipped = request->is_clipped || has_computed_tokens(entry);
      update_cached_tokens(*request, entry);
      apply_request_events(*request, entry);
    }
  }
  if (energies.requests == 0) return;
  add_avoidable_fixed_terms(engine, entries, energies.scale);
  add_step_sums(energies);
}

void ServingLedger::add_step_request(Request& request, const StepRequest& entry, StepEnergies& step) {
  const std::uint32_t recomputed_tokens = update_cached_tokens(request, entry);
  if (has_computed_tokens(entry)) {
    add_request_tokens(request, entry, step, recomputed_tokens);
    add_request_energy(request, entry, step, recomputed_tokens);
  }
  apply_request_events(request, entry);
}

void ServingLedger::add_request_tokens(Request& request, const StepRequest& entry, StepEnergies& step,
                                       std::uint32_t recomputed_tokens) {
  step.prompt_tokens += entry.prompt_tokens - recomputed_tokens;
  step.output_tokens += entry.decoded_tokens;
  step.decoded_tokens += entry.decoded_tokens - (entry.prompt_tokens > 0 && entry.decoded_tokens > 0 ? 1 : 0);
  serving_result_.cached_tokens += entry.cached_tokens;
  serving_result_.rejected_tokens += entry.rejected_tokens;
  serving_result_.recomputed_tokens += recomputed_tokens;
  if (ListedRequest* const listed_request = find_listed_request(request)) {
    ServedRequest& sums = listed_request->sums;
    if (!request.has_begun) sums.begin_s = seconds(step.begin_ns - command_.begin_ns);
    sums.end_s = std::max(sums.end_s, seconds(step.end_ns - command_.begin_ns));
    // The first token of a request that began before the reported part is not known.
    if (entry.decoded_tokens > 0 && !sums.first_token_s && !request.is_clipped)
      sums.first_token_s = sums.end_s - sums.begin_s;
    sums.step_s += seconds(step.end_ns - step.begin_ns);
    ++sums.steps;
    sums.prompt_tokens += entry.prompt_tokens - recomputed_tokens;
    sums.cached_tokens += entry.cached_tokens;
    sums.output_tokens += entry.decoded_tokens;
    sums.rejected_tokens += entry.rejected_tokens;
  }
  request.has_begun = true;
}

void ServingLedger::add_request_energy(Request& request, const StepRequest& entry, StepEnergies& step,
                                       std::uint32_t recomputed_tokens) {
  StepTerms prefill{};
  StepTerms decode{};
  const StepTerms terms = request_step_terms(entry);
  for (const StepTerm term : {kPromptTerm, kPromptAttentionTerm}) prefill[term] = step.scale * terms[term];
  for (const StepTerm term : {kDecodeTerm, kContextTerm}) decode[term] = step.scale * terms[term];
  const double variable_j = dot_product(prefill, model_.coefficients) + dot_product(decode, model_.coefficients);
  (entry.prompt_tokens > 0 ? prefill : decode)[kFixedTerm] = step.scale / step.requests;
  if (entry.prompt_tokens > 0) prefill[kPromptStepTerm] = step.scale / step.prompts;
  const double prompt_fixed_j = prefill[kPromptStepTerm] * model_.coefficients[kPromptStepTerm];
  const double prefill_j = dot_product(prefill, model_.coefficients);
  const double decode_j = dot_product(decode, model_.coefficients);
  add_scaled_terms(prefill_amounts_, prefill);
  add_scaled_terms(decode_amounts_, decode);
  request.prefill_j += prefill_j;
  request.decode_j += decode_j;
  step.decode_j += decode_j;
  const double decoded = decoded_token_count(entry);
  const double rejected_j =
      decoded > 0 ? decode_j * std::min(1.0, static_cast<double>(entry.rejected_tokens) / decoded) : 0;
  const double recomputed_j = recomputed_tokens > 0 ? prefill_j * recomputed_tokens / entry.prompt_tokens : 0;
  request.rejected_j += rejected_j;
  request.recomputed_j += recomputed_j;
  serving_result_.wasted_rejected_j += rejected_j;
  serving_result_.wasted_preempted_j += recomputed_j;
  const double previous_context_tokens = std::max(double{1} * entry.context_tokens - entry.prompt_tokens, 0.0);
  serving_result_.cached_j += step.scale * model_.coefficients[kPromptAttentionTerm] * entry.prompt_tokens *
                              std::min(static_cast<double>(request.cached_tokens), previous_context_tokens);
  const double cached = entry.cached_tokens;
  cache_saved_amounts_[kPromptTerm] += step.scale * cached;
  cache_saved_amounts_[kPromptAttentionTerm] += step.scale * cached * cached / 2;
  ListedRequest* const listed_request = find_listed_request(request);
  if (listed_request == nullptr) return;
  ServedRequest& sums = listed_request->sums;
  sums.shares.shapley_j += prefill_j + decode_j;
  sums.shares.token_share_j += step.tokens > 0 ? step.energy_j * count_computed_tokens(entry) / step.tokens : 0;
  sums.shares.step_share_j += step.energy_j / step.requests;
  sums.shares.saved_without_request_j +=
      variable_j + (step.requests == 1 ? step.fixed_j : 0) + (step.prompts == 1 ? prompt_fixed_j : 0);
  sums.fixed_j += step.fixed_j / step.requests + prompt_fixed_j;
  sums.kv_cache_read_j += prefill[kPromptAttentionTerm] * model_.coefficients[kPromptAttentionTerm] +
                          decode[kContextTerm] * model_.coefficients[kContextTerm];
  StepTerms term_amounts = prefill;
  add_scaled_terms(term_amounts, decode);
  add_scaled_terms(listed_request->amounts, term_amounts);
  for (const std::uint32_t label : {listed_request->tenant, listed_request->model}) {
    add_scaled_terms(labels_[label].amounts, term_amounts);
    add_scaled_terms(labels_[label].avoidable_amounts, term_amounts);
    for (const StepTerm term : {kFixedTerm, kPromptStepTerm})
      labels_[label].avoidable_amounts[term] -= term_amounts[term];
  }
}

// Without the requests of a label, a step that contained only them would not have run, and one whose prompts were all
// theirs would have computed no prompts.
void ServingLedger::add_avoidable_fixed_terms(Engine& engine, std::span<const StepRequest> entries, double scale) {
  for (const auto member : {&ListedRequest::tenant, &ListedRequest::model}) {
    for (const StepTerm term : {kFixedTerm, kPromptStepTerm}) {
      std::optional<std::uint32_t> common_label;
      bool is_mixed = false;
      for (const StepRequest& entry : entries) {
        if (term == kFixedTerm ? !has_computed_tokens(entry) : entry.prompt_tokens == 0) continue;
        const Request* const request = find_request(engine, entry.request);
        const ListedRequest* const listed_request = request == nullptr ? nullptr : find_listed_request(*request);
        is_mixed = is_mixed || listed_request == nullptr || (common_label && *common_label != listed_request->*member);
        if (is_mixed) break;
        common_label = listed_request->*member;
      }
      if (common_label && !is_mixed) labels_[*common_label].avoidable_amounts[term] += scale;
    }
  }
}

void ServingLedger::add_step_sums(const StepEnergies& step) {
  const double time_s = seconds(step.end_ns - step.begin_ns);
  ++serving_result_.steps;
  serving_result_.busy_s += time_s;
  serving_result_.prompt_tokens += step.prompt_tokens;
  serving_result_.output_tokens += step.output_tokens;
  serving_result_.decoded_tokens += step.decoded_tokens;
  steps_j_ += step.energy_j;
  serving_result_.fixed_j += step.fixed_j + step.prompt_fixed_j;
  const bool is_steady = steady_span_ && step.begin_ns >= steady_span_->begin_ns && step.end_ns <= steady_span_->end_ns;
  ServingPhase& phase = is_steady ? serving_result_.steady_phase : serving_result_.ramp_phases;
  phase.time_s += time_s;
  phase.energy_j += step.energy_j;
  phase.prompt_tokens += step.prompt_tokens;
  phase.output_tokens += step.output_tokens;
  const std::uint64_t batch_size_begin = length_range_begin(static_cast<std::uint64_t>(step.requests));
  BatchSizeEnergy& batch = batch_size_energies_[batch_size_begin];
  batch.from = batch_size_begin;
  batch.to = length_range_end(batch_size_begin);
  ++batch.steps;
  batch.time_s += time_s;
  batch.energy_j += step.energy_j;
  batch.decode_j += step.decode_j;
  batch.decoded_tokens += step.decoded_tokens;
}

double ServingLedger::half_width_j(double energy_j, const StepTerms& term_amounts) const {
  const double gain_error_j = energy_j * relative_uncertainty_;
  const double model_error_j = model_.standard_error_j(term_amounts);
  const double deviation_variance_j2 = model_.deviation_variance_j2(energy_j, steps_j_);
  return statistics::kNormalHalfWidth90 *
         std::sqrt(gain_error_j * gain_error_j + model_error_j * model_error_j + deviation_variance_j2);
}

EnergyInterval ServingLedger::add_energy_interval(double energy_j, const StepTerms& term_amounts) const {
  const double half_interval_j = half_width_j(energy_j, term_amounts);
  return {energy_j, std::max(energy_j - half_interval_j, 0.0), energy_j + half_interval_j};
}

void ServingLedger::finish_request(const Request& request, ServingResult& result) {
  ++result.requests;
  result.finished += request.status == RequestStatus::finished ? 1 : 0;
  result.aborted += request.status == RequestStatus::aborted ? 1 : 0;
  result.unfinished += request.status == RequestStatus::unfinished ? 1 : 0;
  const bool is_aborted = request.status == RequestStatus::aborted;
  if (is_aborted) {
    const double prefill_j = std::max(request.prefill_j - request.recomputed_j, 0.0);
    result.wasted_aborted_prefill_j += prefill_j;
    result.wasted_aborted_j += prefill_j + std::max(request.decode_j - request.rejected_j, 0.0);
  }
  ListedRequest* const listed_request = find_listed_request(request);
  if (listed_request == nullptr) {
    ++unlisted_request_count_;
    return;
  }
  ServedRequest& sums = listed_request->sums;
  sums.status = request.status;
  sums.is_clipped = request.is_clipped;
  sums.prefill_j = request.prefill_j;
  sums.decode_j = request.decode_j;
  sums.wasted_j = is_aborted ? sums.shares.shapley_j : request.recomputed_j + request.rejected_j;
  const EnergyInterval energy = add_energy_interval(sums.shares.shapley_j, listed_request->amounts);
  sums.low_j = energy.low_j;
  sums.high_j = energy.high_j;
  for (const std::uint32_t label : {listed_request->tenant, listed_request->model}) {
    LabelEnergy& label_sums = labels_[label].sums;
    ++label_sums.requests;
    label_sums.prompt_tokens += sums.prompt_tokens;
    label_sums.cached_tokens += sums.cached_tokens;
    label_sums.output_tokens += sums.output_tokens;
  }
  result.listed_requests.push_back(std::move(sums));
}

void ServingLedger::finish_requests(ServingResult& result) {
  for (const Request& request : requests_) {
    if (request.has_begun) finish_request(request, result);
  }
  std::vector<double> joules;
  for (const ServedRequest& request : result.listed_requests) {
    if (is_completely_recorded(request)) joules.push_back(request.shares.shapley_j);
  }
  result.distribution = make_request_distribution(std::move(joules), 0, 0);
  result.by_prompt_length = energy_distributions_by_length(result.listed_requests, [](const ServedRequest& request) {
    return request.prompt_tokens + request.cached_tokens;
  });
  result.by_output_length = energy_distributions_by_length(
      result.listed_requests, [](const ServedRequest& request) { return request.output_tokens; });
}

void ServingLedger::add_model(ServingResult& result) const {
  const auto coefficient = [&](StepTerm term) {
    const double coefficient_j = model_.coefficients[term];
    const double half_interval_j =
        statistics::kNormalHalfWidth90 * std::sqrt(std::pow(model_.coefficient_standard_error(term), 2) +
                                                   std::pow(coefficient_j * relative_uncertainty_, 2));
    return EnergyInterval{coefficient_j, std::max(coefficient_j - half_interval_j, 0.0),
                          coefficient_j + half_interval_j};
  };
  result.model.energy_per_step = coefficient(kFixedTerm);
  result.model.energy_per_prompt_step = coefficient(kPromptStepTerm);
  result.model.energy_per_prompt_token = coefficient(kPromptTerm);
  result.model.energy_per_prompt_token_pair = coefficient(kPromptAttentionTerm);
  result.model.energy_per_decoded_token = coefficient(kDecodeTerm);
  result.model.energy_per_context_token = coefficient(kContextTerm);
  if (has_energy_) result.model.idle_w = model_.idle_w;
  result.model.observations = model_.observations;
  result.model.relative_error = model_.relative_error;
  result.model.is_regressed = model_.is_regressed;
}

void ServingLedger::add_serving_diagnostics(const ServingResult& result) {
  std::uint64_t out_of_order_count = 0;
  for (const auto& [source, engine] : engines_)
    out_of_order_count += engine.attributed_step_extents.out_of_order_step_count();
  if (out_of_order_count > 0)
    diagnostics_.add({"engine_steps_out_of_order", out_of_order_count,
                      "engine steps began before the step that was reported before them; their times are used as given",
                      "report the steps of an engine in order"});
  if (repeated_id_count_ > 0)
    diagnostics_.add({"request_ids_repeated", repeated_id_count_,
                      "requests have the id of an earlier, finished request of the same engine; they are listed "
                      "separately",
                      "use unique ids"});
  if (result.unfinished > 0)
    diagnostics_.add({"requests_unfinished", result.unfinished,
                      "requests neither finished nor were aborted: they still ran at the end of the recording, or the "
                      "engine does not report their end",
                      "pass finished=True in the last step of each request"});
  if (unlisted_request_count_ > 0)
    diagnostics_.add({"requests_not_listed", unlisted_request_count_,
                      fmt::format("only the first {} requests are listed and labelled; the others are in the sums",
                                  max_listed_requests_),
                      "report a part of the run: --time FROM,TO"});
  if (has_energy_ && !model_.is_regressed)
    diagnostics_.add({"serving_too_short", 1,
                      fmt::format("{} intervals of measured energy are too few to fit the energy of a step; the energy "
                                  "of requests follows the duration of steps",
                                  model_.observations),
                      "serve for a few seconds or longer"});
}

ServingResult ServingLedger::finish() {
  ServingResult result = std::move(serving_result_);
  result.has_energy = has_energy_;
  if (serving_span_) {
    result.begin_s = seconds(serving_span_->begin_ns - command_.begin_ns);
    result.end_s = seconds(serving_span_->end_ns - command_.begin_ns);
  }
  result.prefill = add_energy_interval(dot_product(prefill_amounts_, model_.coefficients), prefill_amounts_);
  result.decode = add_energy_interval(dot_product(decode_amounts_, model_.coefficients), decode_amounts_);
  StepTerms step_amounts = prefill_amounts_;
  add_scaled_terms(step_amounts, decode_amounts_);
  result.all_steps = add_energy_interval(steps_j_, step_amounts);
  result.energy_saved_by_cache =
      add_energy_interval(dot_product(cache_saved_amounts_, model_.coefficients), cache_saved_amounts_);
  result.kv_cache_read_j = prefill_amounts_[kPromptAttentionTerm] * model_.coefficients[kPromptAttentionTerm] +
                           decode_amounts_[kContextTerm] * model_.coefficients[kContextTerm];
  finish_requests(result);
  result.requests_j = steps_j_ - result.wasted_j();
  result.idle_j = std::max(serving_j_ - steps_j_, 0.0);
  result.outside_steps_j = command_j_ - steps_j_ - result.idle_j;
  for (LabelSums& label : labels_) {
    const EnergyInterval energy = add_energy_interval(dot_product(label.amounts, model_.coefficients), label.amounts);
    const EnergyInterval avoidable =
        add_energy_interval(dot_product(label.avoidable_amounts, model_.coefficients), label.avoidable_amounts);
    label.sums.energy_j = energy.energy_j;
    label.sums.low_j = energy.low_j;
    label.sums.high_j = energy.high_j;
    label.sums.avoidable_j = avoidable.energy_j;
    label.sums.avoidable_low_j = avoidable.low_j;
    label.sums.avoidable_high_j = avoidable.high_j;
    if (!label.sums.name.empty()) result.labels.push_back(std::move(label.sums));
  }
  for (auto& [batch_size_begin, batch] : batch_size_energies_) {
    batch.j_per_output_token = divide_by_count(batch.decode_j, batch.decoded_tokens);
    result.by_batch_size.push_back(batch);
  }
  set_phase_rates(result.steady_phase);
  set_phase_rates(result.ramp_phases);
  add_model(result);
  add_serving_diagnostics(result);
  return result;
}

}  // namespace joulemap::attribution
