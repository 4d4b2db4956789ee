// SPDX-License-Identifier: Apache-2.0
//
// The ledger of requests, on synthetic engines whose energy is known: each step costs what its composition costs, with
// noise, and a counter shows the sum every 100 ms.
#include "attribution/requests/serving_ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "attribution/requests/serving_rows.h"
#include "base/clock.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

using statistics::Random;

constexpr std::int64_t kUpdatePeriod_ns = 100 * kNanosecondsPerMillisecond;
constexpr double kIdle_w = 120;

struct TrueStepCosts {
  StepTerms joules{3.0, 1.0, 0.02, 2e-7, 0.01, 5e-5};          // J per unit of each term
  StepTerms seconds{0.008, 0.003, 40e-6, 3e-10, 25e-6, 8e-8};  // s per unit of each term
  double noise = 0.03;                                         // relative, of each step
};

struct PlannedRequest {
  std::string id;
  std::string tenant;
  std::uint32_t prompt_length = 0;
  std::uint32_t output = 0;
  std::uint32_t arrival_step = 0;
};

// A run of an engine: its steps as a recording contains them, and the true energy of everything.
struct EngineRun {
  EngineSteps steps;
  std::vector<std::pair<std::int64_t, double>> energy;  // cumulative J at times
  std::vector<double> step_j;
  std::map<std::string, double> variable_energy_j;  // by request
  std::int64_t end_ns = 0;
  double total_j = 0;

  double joules_at(std::int64_t time_ns) const {
    const auto later_point = std::upper_bound(energy.begin(), energy.end(), time_ns,
                                              [](std::int64_t time, const auto& point) { return time < point.first; });
    if (later_point == energy.begin()) return energy.front().second;
    if (later_point == energy.end()) return energy.back().second;
    const auto earlier_point = later_point - 1;
    const double share = static_cast<double>(time_ns - earlier_point->first) /
                         static_cast<double>(later_point->first - earlier_point->first);
    return earlier_point->second + share * (later_point->second - earlier_point->second);
  }
  // What a counter shows that updates every 100 ms: linear between updates.
  double counter_value_j(std::int64_t time_ns) const {
    const std::int64_t before_ns = time_ns / kUpdatePeriod_ns * kUpdatePeriod_ns;
    const std::int64_t after_ns = std::min(before_ns + kUpdatePeriod_ns, end_ns);
    const double previous_update_j = joules_at(before_ns);
    if (after_ns <= before_ns) return previous_update_j;
    const double share = static_cast<double>(time_ns - before_ns) / static_cast<double>(after_ns - before_ns);
    return previous_update_j + (joules_at(after_ns) - previous_update_j) * share;
  }
  std::vector<std::int64_t> counter_update_times() const {
    std::vector<std::int64_t> times_ns;
    for (std::int64_t at_ns = 0; at_ns <= end_ns; at_ns += kUpdatePeriod_ns) times_ns.push_back(at_ns);
    return times_ns;
  }
};

// Serves requests in order of their arrival, at most `most` at a time, one chunk of 512 prompt tokens per step and
// request. Requests arrive at step numbers, so that leaving some out does not change the composition of the others.
EngineRun simulate_serving(const std::vector<PlannedRequest>& requests, const TrueStepCosts& truth, std::uint64_t seed,
                           double idle_probability = 0) {
  struct RunningRequest {
    std::uint32_t number = 0;
    std::uint32_t prompt_tokens_left = 0;
    std::uint32_t output_tokens_left = 0;
    std::uint32_t context = 0;
  };
  Random random(seed);
  EngineRun run;
  std::vector<RunningRequest> running;
  std::size_t next_request = 0;
  std::uint32_t number = 0;
  std::int64_t now_ns = 500 * kNanosecondsPerMillisecond;
  run.energy = {{0, 0}, {now_ns, kIdle_w * 0.5}};
  run.total_j = kIdle_w * 0.5;
  for (std::uint32_t step = 0; next_request < requests.size() || !running.empty(); ++step) {
    while (next_request < requests.size() && requests[next_request].arrival_step <= step) {
      run.steps.requests.push_back({number, requests[next_request].id, requests[next_request].tenant, ""});
      running.push_back({number++, requests[next_request].prompt_length, requests[next_request].output, 0});
      ++next_request;
    }
    if (running.empty()) continue;
    StepTerms terms{1};
    const std::size_t first_entry = run.steps.entries.size();
    for (RunningRequest& running_request : running) {
      StepRequest entry{running_request.number};
      entry.prompt_tokens = std::min(running_request.prompt_tokens_left, 512u);
      running_request.prompt_tokens_left -= entry.prompt_tokens;
      if (running_request.prompt_tokens_left == 0) {
        entry.decoded_tokens = 1;
        --running_request.output_tokens_left;
      }
      running_request.context += entry.prompt_tokens > 0 ? entry.prompt_tokens : entry.decoded_tokens;
      entry.context_tokens = running_request.context;
      if (running_request.output_tokens_left == 0) entry.events = kRequestFinished;
      add_scaled_terms(terms, request_step_terms(entry));
      if (entry.prompt_tokens > 0) terms[kPromptStepTerm] = 1;
      run.steps.entries.push_back(entry);
    }
    const double factor = 1 + truth.noise * random.normal();
    const double energy_j = factor * dot_product(terms, truth.joules);
    const double time_s = dot_product(terms, truth.seconds) * (1 + 0.01 * random.normal());
    for (std::size_t i = first_entry; i < run.steps.entries.size(); ++i) {
      const StepRequest& entry = run.steps.entries[i];
      run.variable_energy_j[run.steps.requests[entry.request].id] +=
          factor * dot_product(request_step_terms(entry), truth.joules);
    }
    const std::int64_t end_ns = now_ns + static_cast<std::int64_t>(time_s * 1e9);
    run.steps.steps.push_back({now_ns, end_ns, static_cast<std::uint32_t>(running.size())});
    run.step_j.push_back(energy_j);
    run.total_j += energy_j;
    run.energy.emplace_back(end_ns, run.total_j);
    now_ns = end_ns;
    std::erase_if(running,
                  [](const RunningRequest& running_request) { return running_request.output_tokens_left == 0; });
    if (running.empty() && random.uniform() < idle_probability) {
      now_ns += 300 * kNanosecondsPerMillisecond;
      run.total_j += 0.3 * kIdle_w;
      run.energy.emplace_back(now_ns, run.total_j);
    }
  }
  run.end_ns = now_ns + 500 * kNanosecondsPerMillisecond;
  run.total_j += 0.5 * kIdle_w;
  run.energy.emplace_back(run.end_ns, run.total_j);
  return run;
}

// A mixture of short requests, long prompts and long outputs.
std::vector<PlannedRequest> make_request_mixture(std::size_t count, std::uint64_t seed, double steps_between = 6) {
  Random random(seed);
  std::vector<PlannedRequest> requests;
  double arrival = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t kind = random.uniform_below(3);
    PlannedRequest planned_request{fmt::format("r{}", i), kind == 0 ? "short" : kind == 1 ? "prompt" : "output"};
    planned_request.prompt_length = static_cast<std::uint32_t>((kind == 1 ? 3000 : 100) * (0.5 + random.uniform())) + 1;
    planned_request.output = static_cast<std::uint32_t>((kind == 2 ? 300 : 30) * (0.5 + random.uniform())) + 1;
    arrival += steps_between * random.exponential();
    planned_request.arrival_step = static_cast<std::uint32_t>(arrival);
    requests.push_back(std::move(planned_request));
  }
  return requests;
}

// Passes the steps to the ledger once for each of `engines`.
ServingResult compute_ledger_result(ServingLedger ledger, const EngineRun& run, Diagnostics* notes = nullptr,
                                    double relative_uncertainty = 0.01, std::uint32_t engines = 1) {
  for (std::uint32_t engine = 0; engine < engines; ++engine) ledger.observe_steps(engine, run.steps);
  ledger.fit(
      run.counter_update_times(),
      [&run](std::int64_t from_ns, std::int64_t to_ns) {
        return run.counter_value_j(to_ns) - run.counter_value_j(from_ns);
      },
      relative_uncertainty);
  for (std::uint32_t engine = 0; engine < engines; ++engine) ledger.add(engine, run.steps);
  ServingResult result = ledger.finish();
  if (notes != nullptr) *notes = ledger.diagnostics();
  return result;
}

ServingResult compute_serving_result(const EngineRun& run, Diagnostics* notes = nullptr,
                                     double relative_uncertainty = 0.01) {
  return compute_ledger_result(ServingLedger({0, run.end_ns}), run, notes, relative_uncertainty);
}

// A run at constant power whose steps of 10 ms follow each other from 500 ms on, with one entry each.
EngineRun make_run_of_entries(std::vector<EngineRequest> requests, std::vector<StepRequest> entries) {
  constexpr double kPower_w = 300;
  constexpr std::int64_t kEntryLength_ns = 10 * kNanosecondsPerMillisecond;
  EngineRun run;
  std::int64_t now_ns = 500 * kNanosecondsPerMillisecond;
  for (std::size_t i = 0; i < entries.size(); ++i, now_ns += kEntryLength_ns)
    run.steps.steps.push_back({now_ns, now_ns + kEntryLength_ns, 1});
  run.steps.requests = std::move(requests);
  run.steps.entries = std::move(entries);
  run.end_ns = now_ns + 500 * kNanosecondsPerMillisecond;
  run.total_j = kPower_w * static_cast<double>(run.end_ns) / 1e9;
  run.energy = {{0, 0}, {run.end_ns, run.total_j}};
  return run;
}

double sum_row_energies_j(const LedgerResult& rows) {
  return std::accumulate(rows.rows.begin(), rows.rows.end(), 0.0,
                         [](double sum_j, const ReportRow& row) { return sum_j + row.energy_j.value_or(0); });
}

const ReportRow& find_row(const LedgerResult& rows, std::string_view name) {
  return *std::ranges::find(rows.rows, name, &ReportRow::name);
}

// The parts of a run whose true energy is known. requests + waste + idle + outside = measured energy holds by
// definition.
void expect_true_energies(const EngineRun& run, const ServingResult& result, double tolerance) {
  const double true_steps_j = std::accumulate(run.step_j.begin(), run.step_j.end(), 0.0);
  const std::int64_t begin_ns = run.steps.steps.front().begin_ns;
  const std::int64_t end_ns = run.steps.steps.back().end_ns;
  const double serving_j = run.counter_value_j(end_ns) - run.counter_value_j(begin_ns);
  const double steps_j = result.requests_j + result.wasted_j();
  EXPECT_NEAR(steps_j, true_steps_j, tolerance * true_steps_j);
  EXPECT_LE(steps_j, serving_j * (1 + 1e-9));
  EXPECT_NEAR(result.outside_steps_j, run.total_j - serving_j, 1e-6 * run.total_j);
  EXPECT_GE(result.requests_j, -1e-9 * steps_j);
}

double find_tenant_value(const ServingResult& result, std::string_view name, double LabelEnergy::*member) {
  for (const LabelEnergy& label : result.labels) {
    if (label.kind == "tenant" && label.name == name) return label.*member;
  }
  return -1;
}

TEST(ServingLedger, StepsHaveTheirEnergyAndRowsSumToIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    TrueStepCosts truth;
    for (double& value : truth.joules) value *= std::exp(0.7 * random.normal());
    for (double& value : truth.seconds) value *= std::exp(0.3 * random.normal());
    EngineRun run = simulate_serving(
        make_request_mixture(40 + random.uniform_below(100), seed, 1 + 20 * random.uniform()), truth, seed, 0.5);
    for (StepRequest& entry : run.steps.entries) {  // random events
      if (random.uniform() < 0.01) entry.events |= kRequestPreempted;
      if (random.uniform() < 0.005) entry.events = kRequestAborted;
      if (random.uniform() < 0.02) entry.rejected_tokens = 2;
    }
    const ServingResult result = compute_serving_result(run);
    const double sum_j = result.requests_j + result.wasted_j() + result.idle_j + result.outside_steps_j;
    expect_true_energies(run, result, 0.1);
    double shapley_shares_j = 0;
    double token_shares_j = 0;
    double time_shares_j = 0;
    for (const ServedRequest& request : result.listed_requests) {
      shapley_shares_j += request.shares.shapley_j;
      token_shares_j += request.shares.token_share_j;
      time_shares_j += request.shares.step_share_j;
      EXPECT_GE(request.shares.shapley_j, 0);
      EXPECT_NEAR(request.prefill_j + request.decode_j, request.shares.shapley_j, 1e-9 * sum_j);
      EXPECT_LE(request.low_j, request.shares.shapley_j);
      EXPECT_LE(request.wasted_j, request.shares.shapley_j * 1.000001);
    }
    const double steps_j = result.requests_j + result.wasted_j();
    EXPECT_NEAR(shapley_shares_j, steps_j, 1e-6 * sum_j);
    EXPECT_NEAR(token_shares_j, steps_j, 1e-6 * sum_j);
    EXPECT_NEAR(time_shares_j, steps_j, 1e-6 * sum_j);
    for (const LedgerResult& rows : {make_request_rows(result), make_token_rows(result)}) {
      double rows_j = 0;
      for (const ReportRow& row : rows.rows) {
        rows_j += row.energy_j.value_or(0);
        EXPECT_GE(row.energy_j.value_or(0), 0) << row.name;
      }
      EXPECT_NEAR(rows_j, *rows.attributed_j, 1e-6 * sum_j);
      EXPECT_GE(*rows.unattributed_j, 0);
    }
  }
}

// The energy of entry `entry_index` of a step whose entries begin at `first_entry`: its own, and its shares of the
// fixed energies.
double true_share_j(const TrueStepCosts& truth, const std::vector<StepRequest>& entries, std::size_t first_entry,
                    const EngineStep& step, std::size_t entry_index) {
  const std::span<const StepRequest> step_entries = std::span(entries).subspan(first_entry, step.requests);
  const auto has_prompt = [](const StepRequest& step_request) { return step_request.prompt_tokens > 0; };
  double energy_j =
      dot_product(request_step_terms(entries[entry_index]), truth.joules) + truth.joules[kFixedTerm] / step.requests;
  if (has_prompt(entries[entry_index]))
    energy_j += truth.joules[kPromptStepTerm] / static_cast<double>(std::ranges::count_if(step_entries, has_prompt));
  return energy_j;
}

TEST(ServingLedger, FindsTheCostOfPrefillAndDecode) {
  const TrueStepCosts truth;
  const EngineRun run = simulate_serving(make_request_mixture(300, 5), truth, 5);
  const ServingResult result = compute_serving_result(run);
  ASSERT_TRUE(result.model.is_regressed);
  const auto is_near = [](const EnergyInterval& interval, double true_energy_j, double tolerance) {
    EXPECT_NEAR(interval.energy_j, true_energy_j, tolerance * true_energy_j);
    EXPECT_LE(interval.low_j, interval.energy_j);
    EXPECT_GE(interval.high_j, interval.energy_j);
  };
  is_near(result.model.energy_per_step, truth.joules[kFixedTerm], 0.1);
  is_near(result.model.energy_per_prompt_token, truth.joules[kPromptTerm], 0.1);
  is_near(result.model.energy_per_context_token, truth.joules[kContextTerm], 0.3);
  double decode_j = 0;
  double prefill_j = 0;
  std::size_t entry = 0;
  for (const EngineStep& step : run.steps.steps) {
    for (std::uint32_t i = 0; i < step.requests; ++i, ++entry) {
      const StepRequest& step_request = run.steps.entries[entry];
      (step_request.prompt_tokens > 0 ? prefill_j : decode_j) +=
          true_share_j(truth, run.steps.entries, entry - i, step, entry);
    }
  }
  EXPECT_NEAR(result.prefill.energy_j, prefill_j, 0.05 * prefill_j);
  EXPECT_NEAR(result.decode.energy_j, decode_j, 0.05 * decode_j);
}

// Leave-one-class-out replay: the same arrivals without the requests of one class. The difference in energy is what the
// class could have avoided. Chooses the default share, and the figures of docs/explanation/requests.md.
TEST(ServingLedger, AvoidableEnergyPredictsWhatLeavingOutAClassSaves) {
  double max_avoidable_error = 0;
  double shapley_error = 0;
  double token_error = 0;
  double time_error = 0;
  int cases = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    TrueStepCosts truth;
    truth.noise = 0.02;
    if (seed % 2 == 0) truth.joules = {1.0, 0.4, 0.05, 1e-6, 0.02, 2e-4};
    const std::vector<PlannedRequest> planned_requests = make_request_mixture(240, seed, seed < 4 ? 3 : 12);
    const EngineRun run = simulate_serving(planned_requests, truth, seed);
    const ServingResult result = compute_serving_result(run);
    for (const std::string_view tenant : {"short", "prompt", "output"}) {
      std::vector<PlannedRequest> remaining_requests = planned_requests;
      std::erase_if(remaining_requests,
                    [&](const PlannedRequest& planned_request) { return planned_request.tenant == tenant; });
      const auto steps_j = [](const EngineRun& engine_run) {
        return std::accumulate(engine_run.step_j.begin(), engine_run.step_j.end(), 0.0);
      };
      const double saved_j = steps_j(run) - steps_j(simulate_serving(remaining_requests, truth, seed + 100));
      double token_shares_j = 0;
      double time_shares_j = 0;
      for (const ServedRequest& request : result.listed_requests) {
        if (request.tenant != tenant) continue;
        token_shares_j += request.shares.token_share_j;
        time_shares_j += request.shares.step_share_j;
      }
      const auto error = [&](double estimated_saving_j) { return std::abs(estimated_saving_j - saved_j) / saved_j; };
      max_avoidable_error =
          std::max(max_avoidable_error, error(find_tenant_value(result, tenant, &LabelEnergy::avoidable_j)));
      shapley_error += error(find_tenant_value(result, tenant, &LabelEnergy::energy_j));
      token_error += error(token_shares_j);
      time_error += error(time_shares_j);
      ++cases;
    }
  }
  RecordProperty("worst_avoidable", fmt::format("{}", max_avoidable_error));
  fmt::print("avoidable: at most {:.3f}; mean error of shapley {:.3f}, token {:.3f}, time {:.3f}\n",
             max_avoidable_error, shapley_error / cases, token_error / cases, time_error / cases);
  EXPECT_LT(max_avoidable_error, 0.10);
  EXPECT_LT(shapley_error, token_error);
  EXPECT_LT(shapley_error, time_error);
}

TEST(ServingLedger, NinetyPercentIntervalsCoverTheTruth) {
  int covered_count = 0;
  int cases = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const TrueStepCosts truth;
    const EngineRun run = simulate_serving(make_request_mixture(80, seed, 5), truth, seed);
    const ServingResult result = compute_serving_result(run, nullptr, 0);
    double prefill_j = 0;
    double decode_j = 0;
    std::size_t entry = 0;
    for (std::size_t i = 0; i < run.steps.steps.size(); ++i) {
      const EngineStep& step = run.steps.steps[i];
      std::array<double, 2> phase_energies_j{};  // without noise: prefill, decode
      for (std::uint32_t k = 0; k < step.requests; ++k) {
        const bool is_decode = run.steps.entries[entry + k].prompt_tokens == 0;
        phase_energies_j[is_decode ? 1 : 0] += true_share_j(truth, run.steps.entries, entry, step, entry + k);
      }
      entry += step.requests;
      const double factor = run.step_j[i] / (phase_energies_j[0] + phase_energies_j[1]);
      prefill_j += factor * phase_energies_j[0];
      decode_j += factor * phase_energies_j[1];
    }
    for (const auto& [interval, true_energy_j] :
         {std::pair(result.prefill, prefill_j), std::pair(result.decode, decode_j)}) {
      covered_count += interval.low_j <= true_energy_j && true_energy_j <= interval.high_j ? 1 : 0;
      ++cases;
    }
  }
  fmt::print("{} of {} intervals cover the truth\n", covered_count, cases);
  EXPECT_GE(covered_count, cases * 8 / 10);
}

TEST(ServingLedger, WasteIsWorkThatIsThrownAway) {
  // One request is preempted after its prompt and computes it again; one is aborted; one rejects half of its tokens.
  EngineRun run =
      simulate_serving({{"a", "", 512, 20, 0}, {"b", "", 512, 20, 0}, {"c", "", 512, 20, 0}}, {.noise = 0}, 1);
  bool preempted = false;
  for (StepRequest& entry : run.steps.entries) {
    if (entry.request == 1 && (entry.events & kRequestFinished) != 0) entry.events = kRequestAborted;
    if (entry.request == 2 && entry.prompt_tokens == 0) entry.rejected_tokens = 1;
    if (entry.request != 0) continue;
    if (preempted) {
      entry.prompt_tokens = entry.context_tokens;
      preempted = false;
    }
    if (entry.prompt_tokens == 512) {
      entry.events = kRequestPreempted;
      preempted = true;
    }
  }
  const ServingResult result = compute_serving_result(run);
  EXPECT_EQ(result.finished, 2u);
  EXPECT_EQ(result.aborted, 1u);
  EXPECT_EQ(result.prompt_tokens, 3 * 512u + 1);  // the token before the preemption is computed again, too
  EXPECT_GT(result.wasted_preempted_j, 0);
  EXPECT_NEAR(result.wasted_aborted_j, result.listed_requests[1].shares.shapley_j, 1e-6);
  EXPECT_NEAR(result.wasted_rejected_j, result.listed_requests[2].decode_j / 2,
              0.02 * result.listed_requests[2].decode_j);
  EXPECT_EQ(result.listed_requests[1].wasted_j, result.listed_requests[1].shares.shapley_j);
}

// One request computes its prompt ten times; another is aborted after many decode steps. All decode energy
// is waste, and nine of ten parts of the first request's prefill.
TEST(ServingLedger, WasteOfAbortedRequestsIsThatOfTheirOwnPhases) {
  std::vector<StepRequest> entries;
  for (int i = 0; i < 9; ++i) entries.push_back({0, 1000, 0, 0, 0, 1000, kRequestPreempted});
  entries.push_back({0, 1000, 0, 1, 0, 1000, kRequestFinished});
  entries.push_back({1, 10, 0, 1, 0, 10, 0});
  for (std::uint32_t i = 0; i < 200; ++i) entries.push_back({1, 0, 0, 1, 0, 11 + i, 0});
  entries.back().events = kRequestAborted;
  const ServingResult result =
      compute_serving_result(make_run_of_entries({{0, "a", "", ""}, {1, "b", "", ""}}, entries));
  const ServedRequest& preempted = result.listed_requests[0];
  const ServedRequest& aborted = result.listed_requests[1];
  EXPECT_NEAR(result.wasted_aborted_prefill_j, aborted.prefill_j, 1e-9 * aborted.prefill_j);
  EXPECT_NEAR(result.wasted_aborted_j, aborted.shares.shapley_j, 1e-9 * aborted.shares.shapley_j);
  const LedgerResult rows = make_token_rows(result);
  const double useful_energy_j = preempted.prefill_j - preempted.wasted_j;
  EXPECT_GT(useful_energy_j, 0.05 * preempted.prefill_j);
  EXPECT_NEAR(*find_row(rows, "prefill").energy_j, useful_energy_j, 1e-6 * useful_energy_j);
  EXPECT_NEAR(*find_row(rows, "decode").energy_j, 0, 1e-6 * useful_energy_j);
  EXPECT_EQ(find_row(rows, "preempted").count, 9000u);
  EXPECT_NEAR(sum_row_energies_j(rows), *rows.attributed_j, 1e-9 * *rows.attributed_j);
}

TEST(ServingLedger, TokensReadBackFromThePrefixCacheAreNotRecomputed) {
  const EngineRun run = make_run_of_entries(
      {{0, "a", "", ""}},
      {{0, 500, 0, 1, 0, 500, kRequestPreempted}, {0, 300, 200, 1, 0, 500, 0}, {0, 40, 0, 1, 0, 540, 0}});
  const ServingResult result = compute_serving_result(run);
  EXPECT_EQ(result.recomputed_tokens, 300u);
  EXPECT_EQ(result.prompt_tokens, 540u);
}

TEST(ServingLedger, SumsOfRowsHaveTheIntervalOfTheLedger) {
  const ServingResult result = compute_serving_result(simulate_serving(make_request_mixture(60, 3), {}, 3));
  const LedgerResult requests = make_request_rows(result);
  const LedgerResult tokens = make_token_rows(result);
  const auto find_group = [](const LedgerResult& rows, const std::vector<std::string>& path) {
    const auto group = std::ranges::find(rows.groups, path, &ReportRow::path);
    EXPECT_NE(group, rows.groups.end());
    return group == rows.groups.end() ? ReportRow{} : *group;
  };
  const ReportRow all_requests = find_group(requests, {});
  const ReportRow all_tokens = find_group(tokens, {});
  EXPECT_NEAR(*all_requests.energy_j, *requests.attributed_j, 1e-9 * *requests.attributed_j);
  EXPECT_EQ(all_requests.low_j, all_tokens.low_j);
  EXPECT_EQ(all_requests.high_j, all_tokens.high_j);
  double sum_of_highs_j = 0;
  for (const ReportRow& row : requests.rows) sum_of_highs_j += row.high_j.value_or(0);
  EXPECT_LT(*all_requests.high_j, sum_of_highs_j) << "errors of requests are not fully correlated";
  for (const LabelEnergy& label : result.labels) {
    if (label.kind != "tenant") continue;
    const ReportRow tenant = find_group(requests, {label.name});
    EXPECT_EQ(tenant.energy_j, label.energy_j);
    EXPECT_EQ(tenant.low_j, label.low_j);
    EXPECT_EQ(tenant.high_j, label.high_j);
    EXPECT_GT(*tenant.count, 0u);
  }
}

TEST(ServingLedger, APreemptionBetweenStepsDropsTheLastKnownContext) {
  const StepRequest preemption{0, 0, 0, 0, 0, 0, kRequestPreempted};
  const EngineRun run = make_run_of_entries({{0, "a", "", ""}}, {{0, 500, 0, 1, 0, 500, 0},
                                                                 preemption,
                                                                 {0, 300, 0, 0, 0, 300, 0},
                                                                 preemption,  // before the prompt is complete again
                                                                 preemption,
                                                                 {0, 501, 0, 1, 0, 501, 0},
                                                                 {0, 40, 0, 1, 0, 541, 0}});
  const ServingResult result = compute_serving_result(run);
  EXPECT_EQ(result.recomputed_tokens, 300u + 500u);
  EXPECT_EQ(result.prompt_tokens, 501u + 40u);
}

TEST(ServingLedger, CachedTokensCostLessThanComputedOnes) {
  EngineRun run = simulate_serving(make_request_mixture(60, 3), {}, 3);
  for (std::size_t i = 0; i < run.steps.entries.size(); ++i) {
    if (run.steps.entries[i].prompt_tokens > 0) run.steps.entries[i].cached_tokens = 100;
  }
  const ServingResult result = compute_serving_result(run);
  EXPECT_GT(result.cached_tokens, 0u);
  EXPECT_GT(result.energy_saved_by_cache.energy_j, result.cached_j);
}

TEST(ServingLedger, AGapBetweenStepsIsIdleUnlessRequestsWait) {
  EngineRun run;
  run.steps.requests = {{0, "a", "", ""}, {1, "b", "", ""}};
  run.steps.steps = {{1000 * kNanosecondsPerMillisecond, 1100 * kNanosecondsPerMillisecond, 1},
                     {1150 * kNanosecondsPerMillisecond, 1250 * kNanosecondsPerMillisecond, 1},
                     {1290 * kNanosecondsPerMillisecond, 1390 * kNanosecondsPerMillisecond, 1}};
  run.steps.entries = {{0, 10, 0, 1, 0, 10, 0}, {0, 0, 0, 1, 0, 11, kRequestFinished}, {1, 10, 0, 1, 0, 10, 0}};
  run.energy = {{0, 0}, {2000 * kNanosecondsPerMillisecond, 200}};
  run.end_ns = 2000 * kNanosecondsPerMillisecond;
  const ServingResult result = compute_serving_result(run);
  EXPECT_NEAR(result.busy_s, 0.35, 1e-9);  // with 50 ms in which "a" waited for its second step
  EXPECT_NEAR(result.end_s - result.begin_s, 0.39, 1e-9);
}

TEST(ServingLedger, FaultsOfAnEngineAreReported) {
  EngineRun run = simulate_serving(make_request_mixture(30, 9), {}, 9);
  std::swap(run.steps.steps[4].begin_ns, run.steps.steps[5].begin_ns);  // out of order, and one overlaps
  std::swap(run.steps.steps[4].end_ns, run.steps.steps[5].end_ns);
  run.steps.requests[3].id = run.steps.requests[2].id;
  for (StepRequest& entry : run.steps.entries) {
    if (entry.request == 7) entry.events = 0;  // the engine died, or does not report ends
  }
  run.steps.steps[6].end_ns = run.steps.steps[6].begin_ns;  // a clock that jumped
  run.steps.requests.pop_back();                            // a lost definition
  Diagnostics notes;
  const ServingResult result = compute_serving_result(run, &notes);
  EXPECT_TRUE(notes.contains("engine_steps_out_of_order"));
  EXPECT_TRUE(notes.contains("request_ids_repeated"));
  EXPECT_TRUE(notes.contains("requests_unfinished"));
  EXPECT_EQ(result.listed_requests.size(), 30u);
  expect_true_energies(run, result, 0.1);
}

TEST(ServingLedger, RequestsBeyondTheLimitAreSummedAndNotListed) {
  const EngineRun run = simulate_serving(make_request_mixture(50, 4), {}, 4);
  Diagnostics notes;
  const ServingResult result = compute_ledger_result(ServingLedger({0, run.end_ns}, 20), run, &notes);
  EXPECT_EQ(result.listed_requests.size(), 20u);
  EXPECT_EQ(result.requests, 50u);
  EXPECT_EQ(result.finished, 50u);
  EXPECT_TRUE(notes.contains("requests_not_listed"));
  const LedgerResult rows = make_request_rows(result);
  double rows_j = 0;
  for (const ReportRow& row : rows.rows) rows_j += row.energy_j.value_or(0);
  EXPECT_NEAR(rows_j, *rows.attributed_j, 1e-6 * *rows.attributed_j);
}

// 40 requests, each with a cached prompt, a preemption and 2 decode steps; every fourth is aborted.
EngineRun make_40_request_run() {
  std::vector<EngineRequest> requests;
  std::vector<StepRequest> entries;
  for (std::uint32_t i = 0; i < 40; ++i) {
    requests.push_back({i, fmt::format("r{}", i), "", ""});
    entries.push_back({i, 10, 90, 1, 0, 100, kRequestPreempted});
    entries.push_back({i, 100, 0, 1, 0, 100, 0});
    entries.push_back({i, 0, 0, 1, 0, 101, 0});
    entries.push_back({i, 0, 0, 1, 1, 102, i % 4 == 0 ? kRequestAborted : kRequestFinished});
  }
  return make_run_of_entries(std::move(requests), std::move(entries));
}

TEST(ServingLedger, TheLimitOfListedRequestsDoesNotChangeSums) {
  const EngineRun run = make_40_request_run();
  const ServingResult unlimited_result = compute_serving_result(run);
  const ServingResult limited_result = compute_ledger_result(ServingLedger({0, run.end_ns}, 3), run);
  EXPECT_EQ(limited_result.listed_requests.size(), 3u);
  EXPECT_EQ(limited_result.requests, 40u);
  EXPECT_EQ(limited_result.finished, 30u);
  EXPECT_EQ(limited_result.aborted, 10u);
  EXPECT_EQ(limited_result.unfinished, 0u);
  EXPECT_EQ(limited_result.recomputed_tokens, 40 * 100u);
  EXPECT_EQ(limited_result.prompt_tokens, unlimited_result.prompt_tokens);
  for (const auto member :
       {&ServingResult::requests_j, &ServingResult::wasted_preempted_j, &ServingResult::wasted_aborted_j,
        &ServingResult::wasted_aborted_prefill_j, &ServingResult::wasted_rejected_j})
    EXPECT_NEAR(limited_result.*member, unlimited_result.*member, 1e-9 * unlimited_result.requests_j);
  const LedgerResult rows = make_token_rows(limited_result);
  EXPECT_NEAR(sum_row_energies_j(rows), *rows.attributed_j, 1e-9 * *rows.attributed_j);
}

TEST(ServingLedger, UnlistedRequestsDoNotReadTheCacheOfEachOther) {
  EngineRun run = simulate_serving(make_request_mixture(60, 3), {}, 3);
  std::set<std::uint32_t> begun;
  for (StepRequest& entry : run.steps.entries) {
    entry.context_tokens += 100;
    if (begun.insert(entry.request).second) entry.cached_tokens = 100;
  }
  const double cached_j = compute_serving_result(run).cached_j;
  const ServingResult limited_result = compute_ledger_result(ServingLedger({0, run.end_ns}, 3), run);
  EXPECT_GT(cached_j, 0);
  EXPECT_LT(cached_j, limited_result.prefill.energy_j);
  EXPECT_NEAR(limited_result.cached_j, cached_j, 1e-9 * cached_j);
}

TEST(ServingLedger, OnlyRequestsOfTheReportedPartCountTowardsTheLimit) {
  const EngineRun run = make_40_request_run();
  const std::size_t first_step = 4 * 37;  // the steps of the last three requests
  Diagnostics notes;
  const ServingResult result =
      compute_ledger_result(ServingLedger({run.steps.steps[first_step].begin_ns, run.end_ns}, 3), run, &notes);
  EXPECT_EQ(result.requests, 3u);
  ASSERT_EQ(result.listed_requests.size(), 3u);
  EXPECT_EQ(result.listed_requests[0].id, "r37");
  EXPECT_FALSE(notes.contains("requests_not_listed"));
}

TEST(ServingLedger, StepsOutsideTheReportedPartShowHowRequestsBeganAndEnded) {
  const EngineRun run = make_40_request_run();
  // From the second step of r9, which was preempted in its first one, to the first step of r11.
  const TimeSpan part{run.steps.steps[4 * 9 + 1].begin_ns, run.steps.steps[4 * 11].end_ns};
  Diagnostics notes;
  const ServingResult result = compute_ledger_result(ServingLedger(part), run, &notes);
  EXPECT_FALSE(notes.contains("requests_unfinished"));
  EXPECT_EQ(result.finished, 3u);
  EXPECT_EQ(result.recomputed_tokens, 2 * 100u);  // of r9 and r10
  ASSERT_EQ(result.listed_requests.size(), 3u);
  EXPECT_FALSE(result.listed_requests[0].first_token_s);
  EXPECT_TRUE(result.listed_requests[1].first_token_s);
  EXPECT_EQ(result.distribution.requests, 1u);  // only r10 has all of its energy in the part
}

TEST(ServingLedger, EachRequestHasARowOfItsOwn) {
  const EngineRun run =
      make_run_of_entries({{0, "x", "t", ""}, {1, "x", "t", ""}, {2, "x (2)", "t", ""}, {3, "x", "u", ""}},
                          {{0, 10, 0, 1, 0, 10, kRequestFinished},
                           {1, 10, 0, 1, 0, 10, kRequestFinished},
                           {2, 10, 0, 1, 0, 10, kRequestFinished},
                           {3, 10, 0, 1, 0, 10, kRequestFinished}});
  Diagnostics notes;
  std::vector<std::vector<std::string>> paths;
  for (const ReportRow& row : make_request_rows(compute_serving_result(run, &notes)).rows) paths.push_back(row.path);
  const std::vector<std::vector<std::string>> expected = {{"t", "x"}, {"t", "x (2)"}, {"t", "x (2) (2)"}, {"u", "x"}};
  EXPECT_EQ(paths, expected);
  ASSERT_TRUE(notes.contains("request_ids_repeated"));
}

TEST(ServingLedger, EnginesMayUseTheSameIds) {
  const EngineRun run = make_40_request_run();
  Diagnostics notes;
  const ServingResult result = compute_ledger_result(ServingLedger({0, run.end_ns}), run, &notes, 0.01, 2);
  EXPECT_FALSE(notes.contains("request_ids_repeated"));
  EXPECT_EQ(result.requests, 80u);
  std::set<std::vector<std::string>> paths;
  for (const ReportRow& row : make_request_rows(result).rows) paths.insert(row.path);
  EXPECT_EQ(paths.size(), 80u);
}

TEST(ServingLedger, TokenCountsOfADamagedRecordingDoNotWrapAround) {
  EXPECT_EQ(decoded_token_count({.decoded_tokens = UINT32_MAX, .rejected_tokens = 1}), 4294967296.0);
}

// Steps of several engines overlap. Each covers most of 20,000 intervals: their product would take a minute.
TEST(ServingLedger, LongOverlappingStepsAreFittedInLinearTime) {
  constexpr std::int64_t kStepLength_ns = 2'000'000 * kNanosecondsPerMillisecond;
  std::vector<ObservedStep> steps;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    const auto tokens = static_cast<float>(1 + i % 7);
    steps.push_back({i * kNanosecondsPerMillisecond, kStepLength_ns - i * 7000, {1, 0, 0, 0, tokens, 0}});
  }
  // A quadratic fit takes minutes here.
  const FittedStepModel model = fit_step_model(
      steps, {}, [](std::int64_t from_ns, std::int64_t to_ns) { return static_cast<double>(to_ns - from_ns) / 1e7; });
  EXPECT_GT(model.observations, 10'000u);
  double energy_j = 0;
  for (const ObservedStep& step : steps) {
    StepTerms terms{};
    std::ranges::copy(step.terms, terms.begin());
    energy_j += model.mean_energy_scale(step.begin_ns, step.end_ns) * dot_product(terms, model.coefficients);
  }
  EXPECT_NEAR(energy_j, static_cast<double>(kStepLength_ns) / 1e7, 1e-6 * energy_j);
}

TEST(ServingLedger, WithoutEnergyTokensAreCounted) {
  const EngineRun run = simulate_serving(make_request_mixture(10, 2), {}, 2);
  ServingLedger ledger({0, run.end_ns});
  ledger.observe_steps(0, run.steps);
  ledger.fit({}, {}, 0);
  ledger.add(0, run.steps);
  const ServingResult result = ledger.finish();
  EXPECT_FALSE(result.has_energy);
  EXPECT_GT(result.output_tokens, 0u);
  for (const ReportRow& row : make_request_rows(result).rows) EXPECT_FALSE(row.energy_j);
}

TEST(ServingLedger, ARunTooShortForAFitFollowsTheDurationOfSteps) {
  const EngineRun run = simulate_serving({{"a", "", 100, 5, 0}}, {}, 1);
  Diagnostics notes;
  const ServingResult result = compute_serving_result(run, &notes);
  EXPECT_TRUE(notes.contains("serving_too_short"));
  EXPECT_EQ(make_request_rows(result).rows[0].basis, "time-share");
  EXPECT_GT(result.requests_j, 0);
}

}  // namespace
}  // namespace joulemap::attribution
