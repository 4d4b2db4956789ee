// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/amount_text.h"
#include "experiment/analysis/validity.h"
#include "statistics/sample_size.h"

namespace joulemap::experiment {
namespace {

// If the rows of a cell ran consecutively, a drift of the machine is indistinguishable from a difference between cells.
void flag_not_interleaved(const ExperimentData& data, const ExperimentTable& table, std::vector<AnalysisFlag>& flags) {
  if (table.cells.size() < 2) return;
  std::vector<const ExperimentRow*> order;
  for (const std::size_t index : rows_in_run_order(data)) {
    if (data.rows[index].state == ExperimentRowState::done) order.push_back(&data.rows[index]);
  }
  std::size_t changes = 0;
  for (std::size_t i = 1; i < order.size(); ++i) changes += order[i]->levels != order[i - 1]->levels ? 1 : 0;
  std::size_t cells = 0;
  std::size_t repeated_cell_count = 0;
  for (const CellRows& cell : table.cells) {
    if (!cell.done_rows.empty()) ++cells;
    if (cell.done_rows.size() > 1) ++repeated_cell_count;
  }
  if (repeated_cell_count == 0 || changes + 1 > cells) return;
  flags.push_back({"not_interleaved",
                   "all repetitions of a cell ran consecutively: machine drift looks like a difference between cells",
                   "set order = \"blocked-random\""});
}

// Levels that never ran on the same machine are confounded with the machine.
void flag_confounded_nodes(const ExperimentData& data, const AnalysisResult& result, std::vector<AnalysisFlag>& flags) {
  for (std::size_t factor = 0; factor < data.factors.size(); ++factor) {
    std::map<std::size_t, std::set<std::string>> nodes;
    for (const ExperimentRow& row : data.rows) {
      if (row.state == ExperimentRowState::done && !row.node.empty()) nodes[row.levels[factor]].insert(row.node);
    }
    for (const Comparison& comparison : result.comparisons) {
      if (comparison.factor != factor || !comparison.a || nodes[*comparison.a].empty() || nodes[*comparison.b].empty())
        continue;
      std::vector<std::string> common_nodes;
      std::set_intersection(nodes[*comparison.a].begin(), nodes[*comparison.a].end(), nodes[*comparison.b].begin(),
                            nodes[*comparison.b].end(), std::back_inserter(common_nodes));
      if (!common_nodes.empty()) continue;
      flags.push_back(
          {"nodes_confounded",
           fmt::format("{} {} and {} never ran on the same node", data.factors[factor].name,
                       data.factors[factor].levels[*comparison.a], data.factors[factor].levels[*comparison.b]),
           "run each block on one node, as joulemap experiment submit does"});
      break;
    }
  }
}

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Lists each estimated domain once: estimates are excluded from the energy if measurements exist.
void flag_excluded_estimates(const ExperimentData& data, const EnergyBasis& energy, std::vector<AnalysisFlag>& flags) {
  if (!energy.has_energy) return;
  std::vector<std::string> estimated_domains;
  for (const ExperimentRow& row : data.rows) {
    if (row.state != ExperimentRowState::done) continue;
    const std::optional<EnergyWithProvenance> sum =
        energy_by_provenance(total_energy(row.domains), Provenance::estimated);
    if (!sum) continue;
    for (const std::string& name : sum->domains) {
      if (std::ranges::find(estimated_domains, name) == estimated_domains.end()) estimated_domains.push_back(name);
    }
  }
  if (estimated_domains.empty()) return;
  const bool is_estimated_only = energy.provenance == Provenance::estimated;
  flags.push_back({is_estimated_only ? "estimated_energy" : "estimates_not_added",
                   is_estimated_only
                       ? fmt::format("no row has a measured energy: energies are estimates of {}",
                                     join_names(energy.domains.empty() ? estimated_domains : energy.domains))
                       : fmt::format("{}: estimated, not part of any energy", join_names(estimated_domains)),
                   "run joulemap doctor to see how to measure it"});
}

// Rows are compared over the domains that all of them have.
void flag_differing_domains(const EnergyBasis& energy, std::vector<AnalysisFlag>& flags) {
  if (energy.excluded_domains.empty()) return;
  const std::string_view provenance_text = to_string(energy.provenance);
  const std::string excluded_domains = join_names(energy.excluded_domains);
  if (!energy.is_comparable()) {
    flags.push_back({"no_common_domain",
                     fmt::format("rows have no {} domain in common ({}): energies are not compared", provenance_text,
                                 excluded_domains),
                     "run the rows where the same sensors are readable, or choose a domain with --metric"});
    return;
  }
  flags.push_back({"domains_differ",
                   fmt::format("rows have different {} domains: energies include {}; excluded: {}", provenance_text,
                               join_names(energy.domains), excluded_domains),
                   "rerun the rows flagged domains_differ where the same sensors are readable"});
}

void flag_arbitrary_pairing(const AnalysisResult& result, std::vector<AnalysisFlag>& flags) {
  const bool is_paired =
      std::any_of(result.comparisons.begin(), result.comparisons.end(),
                  [](const Comparison& comparison) { return comparison.pairing == Pairing::paired; });
  if (result.is_blocked || !is_paired) return;
  flags.push_back({"arbitrary_pairing",
                   "rows are paired by repetition number only, not by design: use the unpaired tests, which are shown "
                   "next to the paired ones",
                   "set order = \"blocked-random\" for valid pairs"});
}

// Flags families of comparisons that have too few repetitions: their smallest possible p-value, adjusted for multiple
// comparisons, is above alpha. The method of Benjamini and Hochberg multiplies the p-values of a family by less if many
// are small, so only the p-value of a single comparison is a limit there.
void flag_unreachable_significance(const AnalysisResult& result, std::vector<AnalysisFlag>& flags) {
  const bool is_family_wise = result.adjustment == "holm" || result.adjustment == "bonferroni";
  std::map<std::tuple<std::size_t, Pairing>, std::pair<std::size_t, const Comparison*>> families;
  for (const Comparison& comparison : result.comparisons) {
    if (!comparison.p || !comparison.a) continue;
    if (!result.is_blocked && comparison.pairing == Pairing::paired) continue;  // arbitrary pairs: not for conclusions
    auto& [most_n, example_comparison] = families[{comparison.factor, comparison.pairing}];
    most_n = std::max(most_n, std::min(comparison.row_count_a, comparison.row_count_b));
    example_comparison = &comparison;
  }
  for (const auto& [key, family] : families) {
    const auto& [n, example_comparison] = family;
    const bool is_paired = example_comparison->pairing == Pairing::paired;
    const double floor = is_paired ? statistics::min_p_value_paired(n) : statistics::min_p_value_unpaired(n, n);
    const double times = is_family_wise ? static_cast<double>(example_comparison->family_size) : 1;
    if (floor * times <= result.alpha) continue;
    flags.push_back(
        {"p_floor",
         is_family_wise
             ? fmt::format("{} {} cannot give p below {}: with {} comparisons of {} nothing is significant after "
                           "Bonferroni or Holm at {} (smallest p x comparisons = {:.2g})",
                           n, is_paired ? "pairs" : "rows per level", p_value_text(floor),
                           example_comparison->family_size, result.factors[example_comparison->factor].name,
                           result.alpha, floor * times)
             : fmt::format("{} {} cannot give p below {}: no comparison of {} is significant at {}", n,
                           is_paired ? "pairs" : "rows per level", p_value_text(floor),
                           result.factors[example_comparison->factor].name, result.alpha),
         fmt::format("use {} repetitions{}{}",
                     is_family_wise ? example_comparison->min_rows_per_level.value_or(0)
                                    : statistics::min_repetitions(
                                          is_paired ? statistics::Pairing::paired : statistics::Pairing::unpaired,
                                          result.alpha, 1),
                     is_family_wise ? ", or fewer comparisons (--metric, --factor)" : "",
                     result.main_effects.empty() ? "" : "; read the effects over all combinations")});
  }
}

// Each test at level alpha has false positives: the message includes the number of cells expected by chance.
void flag_expected_false_positives(const AnalysisResult& result, std::vector<AnalysisFlag>& flags) {
  struct Kind {
    std::string_view code;
    std::string_view message;
    bool is_test;
  };
  constexpr Kind kKinds[] = {{"warm_up", "change within their first half (warm-up)", true},
                             {"change_point", "have a change point", true},
                             {"drift", "drift with the order of rows", true},
                             {"cool_down", "start far above idle power: the pause between rows is too short", false},
                             {"sum_of_samples", "have sums of samples that differ from the integral", false},
                             {"zero_energy", "contain an energy of 0 J", false},
                             {"negative_energy", "contain a negative energy", false},
                             {"throttled", "ran with throttled clocks", false},
                             {"stolen_time", "lost CPU time to a hypervisor", false}};
  for (const Kind& kind : kKinds) {
    std::size_t cells = 0;
    for (const AnalysisCell& cell : result.cells) {
      cells +=
          std::any_of(cell.flags.begin(), cell.flags.end(), [&](const auto& flag) { return flag.code == kind.code; });
    }
    if (cells == 0) continue;
    std::string message = fmt::format("{} of {} cells {}", cells, result.cells.size(), kind.message);
    if (kind.is_test) message += fmt::format("; each measure is tested at alpha = {}", result.alpha);
    flags.push_back({std::string(kind.code), std::move(message), ""});
  }
}

void flag_cells(const AnalysisResult& result, std::vector<AnalysisFlag>& flags) {
  std::size_t min_row_count = result.cells.empty() ? 0 : result.cells.front().n;
  std::size_t max_row_count = min_row_count;
  for (const AnalysisCell& cell : result.cells) {
    min_row_count = std::min(min_row_count, cell.n);
    max_row_count = std::max(max_row_count, cell.n);
  }
  if (min_row_count != max_row_count) {
    flags.push_back({"unbalanced", fmt::format("cells have {} to {} rows", min_row_count, max_row_count), ""});
  }
  if (max_row_count < 2) {
    flags.push_back({"no_repetitions", "no cell has two rows: the variation is unknown", "set repetitions = 10"});
  }
}

}  // namespace

std::vector<AnalysisFlag> experiment_flags(const ExperimentData& data, const ExperimentTable& table,
                                           const AnalysisResult& result) {
  std::vector<AnalysisFlag> flags;
  flag_cells(result, flags);
  flag_excluded_estimates(data, table.energy_basis, flags);
  flag_differing_domains(table.energy_basis, flags);
  flag_not_interleaved(data, table, flags);
  flag_confounded_nodes(data, result, flags);
  flag_arbitrary_pairing(result, flags);
  flag_unreachable_significance(result, flags);
  flag_expected_false_positives(result, flags);
  return flags;
}

}  // namespace joulemap::experiment
