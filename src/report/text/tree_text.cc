// SPDX-License-Identifier: Apache-2.0
#include "report/text/tree_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "model/background_row.h"
#include "report/text/command_energy.h"
#include "report/text/energy_rows.h"
#include "report/text/kernel_names.h"
#include "report/text/step_energy_distribution_text.h"
#include "report/text/tree_lines.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

// Widths of the columns after the name; a blank precedes each.
constexpr std::size_t kJoulesWidth = 7;
constexpr std::size_t kUncertaintyWidth = 5;
constexpr std::size_t kShareOfTotalWidth = 5;
constexpr std::size_t kWattsWidth = 5;
constexpr std::size_t kDurationWidth = 7;
constexpr std::size_t kCallCountWidth = 5;
constexpr std::size_t kMinBarWidth = 6;
constexpr std::size_t kMinTableWidthForBars = 70;  // below this width there is no room for bars
constexpr std::size_t kMaxBarWidth = 24;
constexpr std::size_t kMinTreeNameWidth = 14;
constexpr std::size_t kMaxTreeNameWidth = 64;
constexpr std::size_t kBasisWordWidth = 10;
constexpr std::string_view kBackgroundNodeName = "other processes";

struct TreeLayout {
  std::size_t name_width = 0;
  std::size_t bar_width = 0;
  std::size_t time_width = kDurationWidth;
  bool has_basis_words = false;  // shows the basis as a word instead of its first letter
};

// Widths for a terminal. The name gets its full width first; the bar gets the rest.
TreeLayout choose_tree_layout(std::size_t longest_name, std::size_t longest_time, std::size_t columns) {
  TreeLayout layout;
  layout.time_width = std::max(kDurationWidth, longest_time);
  const std::size_t numbers = 1 + kJoulesWidth + 1 + kUncertaintyWidth + 1 + kShareOfTotalWidth + 1 + kWattsWidth + 1 +
                              layout.time_width + 1 + kCallCountWidth + 1;
  layout.has_basis_words = columns >= 100;
  const std::size_t fixed_width = 1 + numbers + 1 + (layout.has_basis_words ? kBasisWordWidth : 1);
  const std::size_t min_bar_width = columns >= kMinTableWidthForBars ? kMinBarWidth : 0;
  const std::size_t flexible_width = std::max(columns, fixed_width + kMinTreeNameWidth + min_bar_width) - fixed_width;
  layout.name_width =
      std::clamp(std::min(longest_name, flexible_width - min_bar_width), kMinTreeNameWidth, kMaxTreeNameWidth);
  layout.bar_width = min_bar_width > 0 ? std::clamp(flexible_width - layout.name_width, kMinBarWidth, kMaxBarWidth) : 0;
  return layout;
}

std::string tree_line_prefix(const TreeLine& line, const TextStyle& style) {
  std::string out;
  for (std::size_t i = 1; i < line.is_last_sibling.size(); ++i) {
    const bool is_end = i + 1 == line.is_last_sibling.size();
    if (style.is_unicode()) {
      out += is_end ? (line.is_last_sibling[i] ? "└ " : "├ ") : (line.is_last_sibling[i] ? "  " : "│ ");
    } else {
      out += is_end ? (line.is_last_sibling[i] ? "`-" : "|-") : (line.is_last_sibling[i] ? "  " : "| ");
    }
  }
  return out;
}

// Half width of the interval as a percentage of the energy.
std::string uncertainty_text(const ReportRow& row) {
  if (!row.low_j || !row.high_j || !row.energy_j || *row.energy_j <= 0) return {};
  const double percent = 50 * (*row.high_j - *row.low_j) / *row.energy_j;
  return percent < 0.95 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", std::min(percent, 999.0));
}

// What shares in the tree are fractions of.
std::optional<double> share_denominator_j(const ReportResult& result) {
  const std::optional<double> total_j = ledger_total_j(result);
  return total_j ? std::optional(*total_j - noticeable_background_j(result)) : std::nullopt;
}

EnergyNode make_background_node(double joules) {
  EnergyNode node{std::string(kBackgroundNodeName), {}, {}};
  node.summed_row.path = {"background"};
  node.summed_row.energy_j = joules;
  return node;
}

class TreeTable {
 public:
  TreeTable(const TreeLayout& layout, const TextStyle& style, const ReportResult& result)
      : layout_(layout),
        style_(style),
        share_denominator_j_(share_denominator_j(result)),
        has_kernel_rows_(result.by == "kernel") {}

  std::string header(std::string_view title) const {
    // A title that is longer than the column of names is on a separate line.
    const bool fits = count_display_columns(title) <= layout_.name_width;
    std::string out = fits ? "" : " " + style_.bold(std::string(title)) + "\n";
    out += " " + style_.bold(align_left(fits ? title : "", layout_.name_width));
    const std::string numbers =
        fmt::format(" {:>{}} {} {:>{}} {:<{}} {:>{}} {:>{}} {:>{}} {}", "J", kJoulesWidth,
                    align_right(style_.plus_minus_sign(), kUncertaintyWidth), "share", kShareOfTotalWidth, "",
                    layout_.bar_width, "W", kWattsWidth, "time", layout_.time_width, "calls", kCallCountWidth,
                    layout_.has_basis_words ? "basis" : "b");
    return out + style_.dimmed(numbers) + "\n";
  }

  std::string line(const std::string& prefix, const EnergyNode& node, std::size_t hidden_rows) const {
    const ReportRow& row = node.summed_row;
    const std::string hidden_rows_text = hidden_rows > 1 ? fmt::format(" +{}", hidden_rows) : "";
    const std::size_t used_columns = count_display_columns(prefix) + hidden_rows_text.size();
    const std::size_t name_columns = layout_.name_width > used_columns ? layout_.name_width - used_columns : 1;
    const std::string name = has_kernel_rows_ ? brief_kernel_name(printable(node.name), name_columns)
                                              : shorten_to_columns(printable(node.name), name_columns);
    const std::string padding(
        layout_.name_width - std::min(layout_.name_width, used_columns + count_display_columns(name)), ' ');
    const bool has_share = row.energy_j && share_denominator_j_ && *share_denominator_j_ > 0 && !is_background_row(row);
    const double share = has_share ? *row.energy_j / *share_denominator_j_ : 0;
    const std::string share_bar = has_share ? bar_text(share, layout_.bar_width, style_.character_set) : "";
    std::string out = " " + style_.dimmed(prefix) + name + style_.dimmed(hidden_rows_text) + padding;
    out += " " + align_right(row.energy_j ? format_number(*row.energy_j) : "?", kJoulesWidth);
    out += " " + style_.dimmed(align_right(uncertainty_text(row), kUncertaintyWidth));
    out += " " + align_right(has_share ? percent_text(share) : "", kShareOfTotalWidth);
    out += " " + style_.cyan(share_bar) + std::string(layout_.bar_width - count_display_columns(share_bar), ' ');
    out += " " + align_right(row.power_w ? format_number(*row.power_w, 3) : "", kWattsWidth);
    out += " " + align_right(row.time_s > 0 ? duration_text(row.time_s) : "", layout_.time_width);
    out += " " + align_right(row.count.value_or(0) > 0 ? count_text(*row.count) : "", kCallCountWidth);
    if (!row.basis.empty() && row.energy_j)
      out += " " + style_.dimmed(layout_.has_basis_words ? row.basis : row.basis.substr(0, 1));
    return out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  }

 private:
  TreeLayout layout_;
  TextStyle style_;
  std::optional<double> share_denominator_j_;
  bool has_kernel_rows_;
};

// The tree contains the command alone where other processes used a noticeable part: their row would make the shares of
// layers depend on the neighbours. The energy of their devices is then the sum of rows.
ReportResult exclude_background(const ReportResult& result) {
  ReportResult command = result;
  std::erase_if(command.rows, is_background_row);
  std::erase_if(command.groups, [](const ReportRow& group) { return group.path.empty() || is_background_row(group); });
  return command;
}

TreeLimits choose_tree_limits(const TreeTextOptions& tree_options, const ReportResult& result) {
  TreeLimits limits;
  limits.max_depth = tree_options.max_depth;
  if (tree_options.max_rows)
    limits.max_lines = *tree_options.max_rows > 0 ? *tree_options.max_rows : std::numeric_limits<std::size_t>::max();
  if (tree_options.max_rows || !tree_options.tree_query.name_filter.empty() || has_step_or_epoch_rows(result))
    limits.min_share = 0;
  return limits;
}

// Whether a noticeable part of the energy is in no layer or phase: start-up, and the program's own code.
bool has_code_outside_of_phases(const ReportResult& result) {
  constexpr std::array<std::string_view, 5> kLevelsOfPhases = {"phase", "layer", "module", "op", "tensor"};
  return std::ranges::find(kLevelsOfPhases, result.by) != kLevelsOfPhases.end() &&
         result.unattributed_j.value_or(0) >= kMinShownEnergyShare * share_denominator_j(result).value_or(INFINITY);
}

std::string attribution_basis_legend(const std::vector<TreeLine>& lines, const TreeLayout& layout,
                                     const ReportResult& result, bool has_background, const TextStyle& style) {
  std::set<std::string> attribution_bases;
  bool has_folded_rows = false;
  for (const TreeLine& line : lines) {
    has_folded_rows = has_folded_rows || line.hidden_row_count > 1 || line.node == nullptr;
    if (line.node == nullptr) continue;
    if (!line.node->summed_row.basis.empty() && line.node->summed_row.energy_j)
      attribution_bases.insert(line.node->summed_row.basis);
  }
  std::string text = fmt::format("{}: half of the {:.0f} % interval.", style.plus_minus_sign(), 100 * result.interval);
  if (has_folded_rows) text += " +N: N rows folded; --top 0 shows all.";
  if (has_background) text += " share: of the energy of the command, without other processes.";
  if (has_code_outside_of_phases(result)) text += " not attributed: start-up and code outside of phases.";
  if (!attribution_bases.empty() && !layout.has_basis_words) {
    std::vector<std::string> basis_letters;
    for (const std::string& basis : attribution_bases) basis_letters.push_back(fmt::format("{} {}", basis[0], basis));
    text += fmt::format(" b, where the split of energy comes from: {}.", fmt::join(basis_letters, ", "));
  }
  std::string out = wrap_text(" ", text, style.columns);
  out.pop_back();
  return style.dimmed(out) + "\n";
}

std::string tree_title(const ReportResult& result, const TreeTextOptions& tree_options) {
  if (tree_options.tree_query.name_filter.empty()) return "By " + result.by;
  return fmt::format("By {}, filter '{}'", result.by, printable(tree_options.tree_query.name_filter));
}

}  // namespace

std::string tree_text(const ReportResult& result, const TreeTextOptions& tree_options, const TextStyle& style) {
  if (result.by == "domain" || result.rows.empty()) return {};
  const double background_j = noticeable_background_j(result);
  const EnergyNode root = energy_tree(background_j > 0 ? exclude_background(result) : result, tree_options.tree_query);
  const std::vector<TreeLine> lines = tree_lines(root, choose_tree_limits(tree_options, result));
  std::size_t max_name_width = background_j > 0 ? kBackgroundNodeName.size() : 0;
  std::size_t longest_time = 0;
  for (const TreeLine& line : lines) {
    longest_time =
        std::max(longest_time, duration_text(line.node != nullptr ? line.node->summed_row.time_s : 0).size());
    const std::string& name = line.node != nullptr ? line.node->name : line.omitted_children_sum.name;
    max_name_width = std::max(max_name_width, count_display_columns(tree_line_prefix(line, style)) +
                                                  count_display_columns(name) + (line.hidden_row_count > 1 ? 5 : 0));
  }
  const TreeLayout layout = choose_tree_layout(max_name_width, longest_time, style.columns);
  const TreeTable table(layout, style, result);
  std::string out = "\n" + table.header(tree_title(result, tree_options));
  for (const TreeLine& line : lines) {
    out += table.line(tree_line_prefix(line, style), line.node != nullptr ? *line.node : line.omitted_children_sum,
                      line.hidden_row_count);
  }
  if (lines.empty()) out += "  no row matches the filter\n";
  for (const EnergyNode& node : idle_and_unattributed_nodes(result)) out += table.line("", node, 0);
  if (background_j > 0) out += table.line("", make_background_node(background_j), 0);
  return out + attribution_basis_legend(lines, layout, result, background_j > 0, style) +
         step_energy_distribution_text(result, style);
}

}  // namespace joulemap::report
