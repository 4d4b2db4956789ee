// SPDX-License-Identifier: Apache-2.0
#include "report/text/serving_text.h"

#include <fmt/format.h>

#include <vector>

#include "base/printable_text.h"
#include "report/text/energy_rows.h"
#include "report/text/text_table.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxShownLabels = 12;

std::string joules_text(double energy_j) { return format_number(energy_j, 4); }

std::string serving_counts_text(const ServingResult& serving) {
  std::string line = fmt::format(" Serving: {} requests ({} finished", serving.requests, serving.finished);
  if (serving.aborted > 0) line += fmt::format(", {} aborted", serving.aborted);
  if (serving.unfinished > 0) line += fmt::format(", {} unfinished", serving.unfinished);
  return line + fmt::format(") in {} steps", serving.steps);
}

std::string token_counts_text(const ServingResult& serving) {
  std::string line = fmt::format("  tokens: {} input", serving.prompt_tokens);
  if (serving.cached_tokens > 0) line += fmt::format(" (and {} cached)", serving.cached_tokens);
  line += fmt::format(", {} output", serving.output_tokens);
  if (serving.rejected_tokens > 0) line += fmt::format(", {} rejected", serving.rejected_tokens);
  return line + "\n";
}

std::string serving_energy_breakdown_text(const ServingResult& serving) {
  const double total_energy_j = serving.requests_j + serving.wasted_j() + serving.idle_j + serving.outside_steps_j;
  std::string out;
  const auto add = [&](std::string_view name, double energy_j) {
    const double percent = total_energy_j > 0 ? 100 * energy_j / total_energy_j : 0;
    out += fmt::format("  {:>11} J  {:>5.1f} %  {}\n", joules_text(energy_j), percent, name);
  };
  add("requests", serving.requests_j);
  if (serving.wasted_aborted_j > 0) add("waste: aborted requests", serving.wasted_aborted_j);
  if (serving.wasted_preempted_j > 0) add("waste: recomputed after preemption", serving.wasted_preempted_j);
  if (serving.wasted_rejected_j > 0) add("waste: rejected speculative tokens", serving.wasted_rejected_j);
  add("idle while loaded, between steps", serving.idle_j);
  add("outside: before the first and after the last step", serving.outside_steps_j);
  return out;
}

std::string per_token_line(std::string_view name, const EnergyInterval& energy, std::uint64_t tokens) {
  if (tokens == 0) return {};
  const auto count = static_cast<double>(tokens);
  return fmt::format("  {:>11} J per {} ({} to {})\n", joules_text(energy.energy_j / count), name,
                     joules_text(energy.low_j / count), joules_text(energy.high_j / count));
}

std::string energy_per_token_text(const ServingResult& serving) {
  const double prefill_and_decode_j = serving.prefill.energy_j + serving.decode.energy_j;
  std::string out = per_token_line("input token, computed in prefill", serving.prefill, serving.prompt_tokens) +
                    per_token_line("output token, decoded", serving.decode, serving.decoded_tokens);
  if (serving.cached_tokens > 0) {
    out += fmt::format("  {:>11} J per cached input token; computing them would have used {} J\n",
                       joules_text(serving.cached_j / static_cast<double>(serving.cached_tokens)),
                       joules_text(serving.energy_saved_by_cache.energy_j));
  }
  if (prefill_and_decode_j <= 0) return out;
  return out + fmt::format(
                   "  Of prefill and decode, {:.0f} % is fixed energy of steps (weights, launches, waiting), "
                   "{:.0f} % reads the KV cache.\n",
                   100 * serving.fixed_j / prefill_and_decode_j, 100 * serving.kv_cache_read_j / prefill_and_decode_j);
}

std::string range_text(std::uint64_t range_min, std::uint64_t range_max) {
  return range_min == range_max ? fmt::format("{}", range_min) : fmt::format("{}-{}", range_min, range_max);
}

void add_request_distribution_row(TextTable& table, std::string name, const RequestDistribution& distribution) {
  table.rows.push_back({std::move(name), fmt::format("{}", distribution.requests), joules_text(distribution.mean_j),
                        joules_text(distribution.p50_j), joules_text(distribution.p90_j),
                        joules_text(distribution.p99_j)});
}

std::string request_energy_distribution_text(const ServingResult& serving, const TextStyle& style) {
  if (serving.distribution.requests == 0) return {};
  TextTable table{
      "", {"J per request", "requests", "mean", "P50", "P90", "P99"}, {false, true, true, true, true, true}, {}};
  add_request_distribution_row(table, "all finished", serving.distribution);
  for (const RequestDistribution& distribution : serving.by_prompt_length)
    add_request_distribution_row(table, "prompt " + range_text(distribution.from, distribution.to), distribution);
  for (const RequestDistribution& distribution : serving.by_output_length)
    add_request_distribution_row(table, "output " + range_text(distribution.from, distribution.to), distribution);
  return "\n" + terminal_table(table, "  ", style.columns);
}

std::string energy_by_batch_size_text(const ServingResult& serving, const TextStyle& style) {
  TextTable table{
      "", {"requests in a step", "steps", "s", "J", "J per output token"}, {false, true, true, true, true}, {}};
  for (const BatchSizeEnergy& batch : serving.by_batch_size) {
    table.rows.push_back({range_text(batch.from, batch.to), fmt::format("{}", batch.steps),
                          format_number(batch.time_s, 4), joules_text(batch.energy_j),
                          batch.j_per_output_token ? joules_text(*batch.j_per_output_token) : "-"});
  }
  return table.rows.empty() ? std::string() : "\n" + terminal_table(table, "  ", style.columns);
}

std::string energy_by_label_text(const ServingResult& serving, const TextStyle& style) {
  TextTable table{
      "", {"label", "requests", "input", "output", "J", "avoidable J"}, {false, true, true, true, true, true}, {}};
  for (const LabelEnergy& label : serving.labels) {
    if (table.rows.size() == kMaxShownLabels) break;
    table.rows.push_back({printable(label.kind + " " + label.name), fmt::format("{}", label.requests),
                          fmt::format("{}", label.prompt_tokens), fmt::format("{}", label.output_tokens),
                          joules_text(label.energy_j), joules_text(label.avoidable_j)});
  }
  return table.rows.empty() ? std::string() : "\n" + terminal_table(table, "  ", style.columns);
}

std::string serving_phase_line(std::string_view name, const ServingPhase& phase) {
  if (phase.time_s <= 0 || !phase.j_per_output_token) return {};
  return fmt::format("  {}: {} s, {} J per output token, {} output tokens per s\n", name,
                     format_number(phase.time_s, 4), joules_text(*phase.j_per_output_token),
                     format_number(phase.output_tokens_per_s.value_or(0), 4));
}

}  // namespace

std::string serving_text(const ReportResult& result, const TextStyle& style) {
  if (!result.serving) return {};
  const ServingResult& serving = *result.serving;
  std::string out = "\n" + style.bold(serving_counts_text(serving)) + "\n" + token_counts_text(serving);
  if (!serving.has_energy) return out;
  out += "\n" + serving_energy_breakdown_text(serving) + "\n" + energy_per_token_text(serving) +
         request_energy_distribution_text(serving, style) + energy_by_batch_size_text(serving, style) +
         energy_by_label_text(serving, style);
  const std::string phases =
      serving_phase_line("steady state", serving.steady_phase) + serving_phase_line("ramps", serving.ramp_phases);
  return out + (phases.empty() ? "" : "\n" + phases);
}

}  // namespace joulemap::report
