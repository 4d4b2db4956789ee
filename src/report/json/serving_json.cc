// SPDX-License-Identifier: Apache-2.0
#include "report/json/serving_json.h"

#include <string_view>

namespace joulemap::report {
namespace {

using formats::JsonWriter;

// Writes energies, as null if they are unknown.
class ServingJsonWriter {
 public:
  ServingJsonWriter(JsonWriter& json, const ServingResult& serving) : json_(json), serving_(serving) {}

  void write() {
    json_.key("serving").begin_object();
    write_serving_counts();
    write_serving_energy();
    write_step_model();
    write_requests();
    write_distributions();
    write_energy_by_batch_size();
    write_energy_by_label();
    write_serving_phase("steady", serving_.steady_phase);
    write_serving_phase("ramps", serving_.ramp_phases);
    json_.end_object();
  }

 private:
  std::optional<double> energy_if_known(double energy_j) const {
    return serving_.has_energy ? std::optional(energy_j) : std::nullopt;
  }
  std::optional<double> energy_per_token(double energy_j, std::uint64_t tokens) const {
    return tokens > 0 ? energy_if_known(energy_j / static_cast<double>(tokens)) : std::nullopt;
  }
  void write_energy_interval(std::string_view name, const EnergyInterval& value) {
    json_.key(name).begin_object();
    json_.member("energy_j", energy_if_known(value.energy_j))
        .member("low_j", energy_if_known(value.low_j))
        .member("high_j", energy_if_known(value.high_j))
        .end_object();
  }
  void write_energy_per_token(std::string_view name, const EnergyInterval& value, std::uint64_t tokens) {
    json_.key(name).begin_object();
    json_.member("energy_j", energy_per_token(value.energy_j, tokens))
        .member("low_j", energy_per_token(value.low_j, tokens))
        .member("high_j", energy_per_token(value.high_j, tokens))
        .end_object();
  }

  void write_serving_counts() {
    json_.member("steps", serving_.steps)
        .member("requests_total", serving_.requests)
        .member("finished", serving_.finished)
        .member("aborted", serving_.aborted)
        .member("unfinished", serving_.unfinished)
        .member("prompt_tokens", serving_.prompt_tokens)
        .member("cached_tokens", serving_.cached_tokens)
        .member("output_tokens", serving_.output_tokens)
        .member("decoded_tokens", serving_.decoded_tokens)
        .member("rejected_tokens", serving_.rejected_tokens)
        .member("begin_s", serving_.begin_s)
        .member("end_s", serving_.end_s)
        .member("busy_s", serving_.busy_s);
  }

  void write_serving_energy() {
    json_.member("requests_j", energy_if_known(serving_.requests_j));
    json_.key("wasted").begin_object();
    json_.member("preempted_j", energy_if_known(serving_.wasted_preempted_j))
        .member("aborted_j", energy_if_known(serving_.wasted_aborted_j))
        .member("rejected_j", energy_if_known(serving_.wasted_rejected_j))
        .end_object();
    json_.member("wasted_j", energy_if_known(serving_.wasted_j()))
        .member("idle_j", energy_if_known(serving_.idle_j))
        .member("outside_j", energy_if_known(serving_.outside_steps_j));
    write_energy_interval("prefill", serving_.prefill);
    write_energy_interval("decode", serving_.decode);
    json_.member("fixed_j", energy_if_known(serving_.fixed_j))
        .member("context_j", energy_if_known(serving_.kv_cache_read_j))
        .member("cached_j", energy_if_known(serving_.cached_j));
    write_energy_interval("saved_by_cache", serving_.energy_saved_by_cache);
    write_energy_per_token("per_input_token", serving_.prefill, serving_.prompt_tokens);
    write_energy_per_token("per_output_token", serving_.decode, serving_.decoded_tokens);
    json_.member("j_per_cached_token", energy_per_token(serving_.cached_j, serving_.cached_tokens))
        .member("j_per_token", energy_per_token(serving_.requests_j + serving_.wasted_j(),
                                                serving_.prompt_tokens + serving_.output_tokens));
  }

  void write_step_model() {
    const StepModel& model = serving_.model;
    json_.key("model").begin_object();
    json_.member("basis", std::string_view(model.is_regressed ? "regressed" : "time-share"))
        .member("observations", model.observations)
        .member("relative_error", energy_if_known(model.relative_error))
        .member("idle_w", model.idle_w);
    write_energy_interval("per_step", model.energy_per_step);
    write_energy_interval("per_prompt_step", model.energy_per_prompt_step);
    write_energy_interval("per_prompt_token", model.energy_per_prompt_token);
    write_energy_interval("per_prompt_token_pair", model.energy_per_prompt_token_pair);
    write_energy_interval("per_decoded_token", model.energy_per_decoded_token);
    write_energy_interval("per_context_token", model.energy_per_context_token);
    json_.end_object();
  }

  void write_requests() {
    static constexpr std::string_view kStatus[] = {"unfinished", "finished", "aborted"};
    json_.key("requests").begin_array();
    for (const ServedRequest& request : serving_.listed_requests) {
      json_.begin_object()
          .member("id", request.id)
          .text_or_null("tenant", request.tenant)
          .text_or_null("model", request.model)
          .member("status", kStatus[static_cast<std::size_t>(request.status)])
          .member("prompt_tokens", request.prompt_tokens)
          .member("cached_tokens", request.cached_tokens)
          .member("output_tokens", request.output_tokens)
          .member("rejected_tokens", request.rejected_tokens)
          .member("steps", request.steps)
          .member("begin_s", request.begin_s)
          .member("end_s", request.end_s)
          .member("first_token_s", request.first_token_s)
          .member("step_s", request.step_s)
          .member("energy_j", energy_if_known(request.shares.shapley_j))
          .member("low_j", energy_if_known(request.low_j))
          .member("high_j", energy_if_known(request.high_j))
          .member("token_j", energy_if_known(request.shares.token_share_j))
          .member("time_j", energy_if_known(request.shares.step_share_j))
          .member("marginal_j", energy_if_known(request.shares.saved_without_request_j))
          .member("prefill_j", energy_if_known(request.prefill_j))
          .member("decode_j", energy_if_known(request.decode_j))
          .member("fixed_j", energy_if_known(request.fixed_j))
          .member("context_j", energy_if_known(request.kv_cache_read_j))
          .member("wasted_j", energy_if_known(request.wasted_j))
          .end_object();
    }
    json_.end_array();
  }

  void write_request_distribution(const RequestDistribution& distribution) {
    const bool is_empty = distribution.requests == 0;
    const auto value = [&](double energy_j) { return is_empty ? std::nullopt : energy_if_known(energy_j); };
    json_.member("requests", distribution.requests)
        .member("mean_j", value(distribution.mean_j))
        .member("p50_j", value(distribution.p50_j))
        .member("p90_j", value(distribution.p90_j))
        .member("p99_j", value(distribution.p99_j));
  }

  void write_distributions_by_range(std::string_view name, const std::vector<RequestDistribution>& distributions) {
    json_.key(name).begin_array();
    for (const RequestDistribution& distribution : distributions) {
      json_.begin_object().member("from", distribution.from).member("to", distribution.to);
      write_request_distribution(distribution);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_distributions() {
    json_.key("distribution").begin_object();
    write_request_distribution(serving_.distribution);
    json_.end_object();
    write_distributions_by_range("by_prompt_length", serving_.by_prompt_length);
    write_distributions_by_range("by_output_length", serving_.by_output_length);
  }

  void write_energy_by_batch_size() {
    json_.key("by_batch_size").begin_array();
    for (const BatchSizeEnergy& batch : serving_.by_batch_size) {
      json_.begin_object()
          .member("from", batch.from)
          .member("to", batch.to)
          .member("steps", batch.steps)
          .member("time_s", batch.time_s)
          .member("energy_j", energy_if_known(batch.energy_j))
          .member("decode_j", energy_if_known(batch.decode_j))
          .member("decoded_tokens", batch.decoded_tokens)
          .member("j_per_output_token", serving_.has_energy ? batch.j_per_output_token : std::nullopt)
          .end_object();
    }
    json_.end_array();
  }

  void write_energy_by_label() {
    json_.key("labels").begin_array();
    for (const LabelEnergy& label : serving_.labels) {
      json_.begin_object()
          .member("kind", label.kind)
          .member("name", label.name)
          .member("requests", label.requests)
          .member("prompt_tokens", label.prompt_tokens)
          .member("cached_tokens", label.cached_tokens)
          .member("output_tokens", label.output_tokens)
          .member("energy_j", energy_if_known(label.energy_j))
          .member("low_j", energy_if_known(label.low_j))
          .member("high_j", energy_if_known(label.high_j))
          .member("avoidable_j", energy_if_known(label.avoidable_j))
          .member("avoidable_low_j", energy_if_known(label.avoidable_low_j))
          .member("avoidable_high_j", energy_if_known(label.avoidable_high_j))
          .end_object();
    }
    json_.end_array();
  }

  void write_serving_phase(std::string_view name, const ServingPhase& phase) {
    json_.key(name).begin_object();
    json_.member("time_s", phase.time_s)
        .member("energy_j", energy_if_known(phase.energy_j))
        .member("prompt_tokens", phase.prompt_tokens)
        .member("output_tokens", phase.output_tokens)
        .member("j_per_output_token", serving_.has_energy ? phase.j_per_output_token : std::nullopt)
        .member("output_tokens_per_s", phase.output_tokens_per_s)
        .end_object();
  }

  JsonWriter& json_;
  const ServingResult& serving_;
};

}  // namespace

void write_serving(JsonWriter& json, const std::optional<ServingResult>& serving) {
  if (serving) return ServingJsonWriter(json, *serving).write();
  json.key("serving");
  json.null();
}

}  // namespace joulemap::report
