// SPDX-License-Identifier: Apache-2.0
#include "report/text/analysis_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "report/export/table_escapes.h"
#include "report/text/analysis_tables.h"
#include "report/text/diagnostics_text.h"
#include "report/text/epoch_tables.h"
#include "report/text/function_tables.h"
#include "report/text/text_table.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

void append_table_section(std::string& out, const TextStyle& style, std::string_view title, const TextTable& table) {
  if (table.rows.empty()) return;
  out += "\n" + style.bold(title) + "\n" + terminal_table(table, "  ", style.columns);
}

std::string analysis_flags_text(const AnalysisResult& result, const TextStyle& style) {
  if (result.flags.empty()) return "";
  std::string out = "\n" + style.bold("Flags of the experiment") + "\n";
  for (const AnalysisFlag& flag : result.flags) {
    const std::string remedy = flag.remedy.empty() ? "" : fmt::format(" -> {}", flag.remedy);
    out += wrap_text(fmt::format("  {} ", align_left(flag.code, 18)), printable(flag.message + remedy), style.columns);
  }
  return out;
}

// Prints the first flag of each code in a cell, which is that of energy: its domains usually have the same flags. The
// other formats contain all flags.
std::string cell_flags_text(const AnalysisResult& result, const TextStyle& style) {
  std::string out;
  for (const AnalysisCell& cell : result.cells) {
    std::set<std::string_view> printed_codes;
    for (const AnalysisFlag& flag : cell.flags) {
      if (!printed_codes.insert(flag.code).second) continue;
      out += wrap_text(fmt::format("  {} ", align_left(flag.code, 18)),
                       printable(fmt::format("{}: {}", short_levels_text(result, cell.levels), flag.message)),
                       style.columns);
    }
  }
  return out.empty() ? out : "\n" + style.bold("Flags of cells") + "\n" + out;
}

constexpr std::size_t kMaxFunctionsPerCell = 5;  // of a cell and device, among all sections

}  // namespace

std::string functions_text(const AnalysisResult& result, const TextStyle& style, std::size_t max_functions) {
  std::string out;
  for (const AnalysisCell& cell : result.cells) {
    if (cell.functions.empty()) continue;
    out += "  " + printable(short_levels_text(result, cell.levels)) + "\n";
    out += terminal_table(costliest_functions_table(cell, max_functions), "    ", style.columns);
  }
  return out.empty() ? out : "\n" + style.bold(functions_title(result)) + "\n" + out;
}

namespace {

std::string verdicts_text(const AnalysisResult& result, const TextStyle& style) {
  std::string out;
  for (const Comparison& comparison : result.comparisons) {
    const MeasureKind kind = result.measures[comparison.measure].kind;
    if (kind != MeasureKind::energy && kind != MeasureKind::time) continue;
    // An experiment without blocks has a paired and an unpaired test of each difference: print the unpaired one, which
    // fits its design.
    if (!result.is_blocked && comparison.pairing == Pairing::paired) continue;
    const std::string levels_text = short_levels_text(result, comparison.fixed_levels);
    out +=
        wrap_text("  ", printable(levels_text.empty() ? comparison.verdict : levels_text + ": " + comparison.verdict),
                  style.columns);
  }
  return out.empty() ? out : "\n" + style.bold("Verdicts") + "\n" + out;
}

// Replaces the flag codes in the last column by their number, because a terminal is narrow. The codes follow below.
TextTable replace_flag_codes_with_counts(TextTable cells, const AnalysisResult& result) {
  cells.is_number.back() = true;
  for (std::size_t i = 0; i < cells.rows.size(); ++i) {
    const std::size_t flags = result.cells[i].flags.size();
    cells.rows[i].back() = flags == 0 ? "" : std::to_string(flags);
  }
  return cells;
}

template <class Table>
std::string format_analysis_document(const AnalysisResult& result, const Table& add) {
  std::string out;
  for (const TextTable& table :
       {analysis_flags_table(result), main_effects_table(result), interactions_table(result), cells_table(result),
        comparisons_table(result), verdicts_table(result), epochs_table(result), epoch_means_table(result),
        functions_table(result), pareto_table(result), associations_table(result), correlations_table(result)}) {
    if (!table.rows.empty()) out += add(table);
  }
  return out;
}

}  // namespace

std::string effects_text(const AnalysisResult& result, const TextStyle& style, const EffectLimits& limits) {
  std::vector<const MainEffect*> effects;
  for (const MainEffect& effect : result.main_effects) {
    const MeasureKind kind = result.measures[effect.measure].kind;
    const bool is_total_measure = kind == MeasureKind::energy || kind == MeasureKind::time;
    if (is_total_measure || !limits.shows_only_totals) effects.push_back(&effect);
  }
  // Whole factors come first: the test over all levels, or of the only two.
  std::stable_partition(effects.begin(), effects.end(), [&](const MainEffect* effect) {
    return !effect->a || result.factors[effect->factor].levels.size() == 2;
  });
  const std::size_t shown_effects = std::min(effects.size(), limits.max_effects);
  std::string out;
  for (std::size_t i = 0; i < shown_effects; ++i) out += wrap_text("  ", printable(effects[i]->verdict), style.columns);
  std::vector<const Interaction*> interactions;
  for (const Interaction& interaction : result.interactions) {
    const bool is_energy_measure = result.measures[interaction.measure].kind == MeasureKind::energy;
    if (interaction.is_different && (is_energy_measure || !limits.shows_only_totals))
      interactions.push_back(&interaction);
  }
  std::ranges::stable_sort(interactions, {}, &Interaction::p);
  const std::size_t shown_interactions = std::min(interactions.size(), limits.max_interactions);
  for (std::size_t i = 0; i < shown_interactions; ++i)
    out += wrap_text("  ", printable(interactions[i]->verdict), style.columns);
  const std::size_t hidden_effect_count = effects.size() - shown_effects + interactions.size() - shown_interactions;
  if (hidden_effect_count > 0) out += fmt::format("  {} more effects and interactions\n", hidden_effect_count);
  return out.empty() ? out : "\n" + style.bold("Effects over all combinations") + "\n" + out;
}

std::string analysis_headline(const AnalysisResult& result) {
  std::size_t rows = 0;
  for (const AnalysisCell& cell : result.cells) rows += cell.n;
  std::size_t difference_count = 0;
  for (const Comparison& comparison : result.comparisons) difference_count += comparison.is_different ? 1 : 0;
  std::size_t general_effect_count = 0;
  std::size_t tested_pair_count = 0;  // pairs of levels: a test over all levels claims nothing general
  for (const MainEffect& effect : result.main_effects) {
    tested_pair_count += effect.a ? 1 : 0;
    general_effect_count += effect.generality == EffectGenerality::same_direction ? 1 : 0;
  }
  const std::string effects = tested_pair_count == 0
                                  ? ""
                                  : fmt::format("{} of {} effects over all combinations are general, ",
                                                general_effect_count, tested_pair_count);
  std::string text = fmt::format("{} cells, {} rows, {}; {}{} of {} comparisons show a difference (alpha {}, {})",
                                 result.cells.size(), rows, result.is_blocked ? "blocked" : "not blocked", effects,
                                 difference_count, result.comparisons.size(), result.alpha, result.adjustment);
  for (const Measure& measure : result.measures) {
    if (measure.kind != MeasureKind::energy || measure.domains.empty()) continue;
    text += fmt::format("; energy is {}:", to_string(*measure.provenance));
    for (const std::string& domain : measure.domains) text += (domain == measure.domains[0] ? " " : ", ") + domain;
  }
  return text;
}

std::string analysis_text(const AnalysisResult& result, const TextStyle& style) {
  std::string out = wrap_text("", printable(result.name + ": " + analysis_headline(result)), style.columns);
  out += effects_text(result, style, {});
  out += analysis_flags_text(result, style);
  append_table_section(out, style, "Cells", replace_flag_codes_with_counts(cells_table(result), result));
  out += cell_flags_text(result, style);
  append_table_section(out, style, "First and later epochs", epochs_table(result));
  append_table_section(out, style, "Epochs: means over rows", short_epochs_table(result));
  out += functions_text(result, style, kMaxFunctionsPerCell);
  append_table_section(out, style, "Comparisons", comparisons_table(result));
  out += verdicts_text(result, style);
  append_table_section(out, style, "Pareto front", pareto_table(result));
  append_table_section(out, style, "Energy and time", associations_table(result));
  append_table_section(out, style, "Correlation of energies with time, power and metrics", correlations_table(result));
  out += "\n" + style.bold("Methods") + "\n" + wrap_text("  ", printable(result.methods), style.columns);
  return out + diagnostics_text(result.diagnostics);
}

std::string analysis_markdown(const AnalysisResult& result) {
  return fmt::format("# {}\n\n{}\n\n", escape_markdown(result.name), escape_markdown(analysis_headline(result))) +
         format_analysis_document(
             result,
             [](const TextTable& table) { return "## " + table.caption + "\n\n" + markdown_table(table) + "\n"; }) +
         "## Methods\n\n" + escape_markdown(result.methods) + "\n";
}

std::string analysis_latex(const AnalysisResult& result) {
  return "% \\usepackage{booktabs,longtable}\n" +
         format_analysis_document(result, [](const TextTable& table) { return latex_table(table) + "\n"; }) +
         "\\paragraph{Methods.} " + escape_latex(result.methods) + "\n";
}

}  // namespace joulemap::report
