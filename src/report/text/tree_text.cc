// SPDX-License-Identifier: Apache-2.0
#include "report/text/tree_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "report/text/energy_rows.h"
#include "report/text/kernel_names.h"
#include "report/text/step_energy_distribution_text.h"
#include "report/text/tree_lines.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

// Widths of the columns after the name; a blank precedes each.
constexpr std::size_t kJoules = 7;
constexpr std::size_t kSure = 5;
constexpr std::size_t kShare = 5;
constexpr std::size_t kWatts = 5;
constexpr std::size_t kTime = 7;
constexpr std::size_t kCalls = 5;
constexpr std::size_t kMinBar = 6;
constexpr std::size_t kNarrow = 70;  // below this width there is no room for bars
constexpr std::size_t kMaxBar = 24;
constexpr std::size_t kMinName = 14;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kBasisWord = 10;

struct Layout {
  std::size_t name = 0;
  std::size_t bar = 0;
  std::size_t time = kTime;
  bool has_words = false;  // shows the basis as a word instead of its first letter
};

// Widths for a terminal. The name gets its full width first; the bar gets the rest.
Layout layout_for(std::size_t longest_name, std::size_t longest_time, std::size_t columns) {
  Layout layout;
  layout.time = std::max(kTime, longest_time);
  const std::size_t numbers = 1 + kJoules + 1 + kSure + 1 + kShare + 1 + kWatts + 1 + layout.time + 1 + kCalls + 1;
  layout.has_words = columns >= 100;
  const std::size_t fixed = 1 + numbers + 1 + (layout.has_words ? kBasisWord : 1);
  const std::size_t least_bar = columns >= kNarrow ? kMinBar : 0;
  const std::size_t left = std::max(columns, fixed + kMinName + least_bar) - fixed;
  layout.name = std::clamp(std::min(longest_name, left - least_bar), kMinName, kMaxName);
  layout.bar = least_bar > 0 ? std::clamp(left - layout.name, kMinBar, kMaxBar) : 0;
  return layout;
}

std::string branches(const TreeLine& line, const TextStyle& style) {
  std::string out;
  for (std::size_t i = 1; i < line.is_last.size(); ++i) {
    const bool is_end = i + 1 == line.is_last.size();
    if (style.is_unicode()) {
      out += is_end ? (line.is_last[i] ? "└ " : "├ ") : (line.is_last[i] ? "  " : "│ ");
    } else {
      out += is_end ? (line.is_last[i] ? "`-" : "|-") : (line.is_last[i] ? "  " : "| ");
    }
  }
  return out;
}

// Half width of the interval as a percentage of the energy.
std::string sure_text(const ReportRow& row) {
  if (!row.low_j || !row.high_j || !row.energy_j || *row.energy_j <= 0) return {};
  const double percent = 50 * (*row.high_j - *row.low_j) / *row.energy_j;
  return percent < 0.95 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", std::min(percent, 999.0));
}

class Table {
 public:
  Table(const Layout& layout, const TextStyle& style, const ReportResult& result)
      : layout_(layout), style_(style), total_j_(ledger_total_j(result)), are_kernels_(result.by == "kernel") {}

  std::string header(std::string_view title) const {
    // A title that is longer than the column of names gets a line of its own.
    const bool fits = display_columns(title) <= layout_.name;
    std::string out = fits ? "" : " " + style_.bold(std::string(title)) + "\n";
    out += " " + style_.bold(padded(fits ? title : "", layout_.name));
    const std::string numbers =
        fmt::format(" {:>{}} {} {:>{}} {:<{}} {:>{}} {:>{}} {:>{}} {}", "J", kJoules,
                    right_aligned(style_.plus_minus(), kSure), "share", kShare, "", layout_.bar, "W", kWatts, "time",
                    layout_.time, "calls", kCalls, layout_.has_words ? "basis" : "b");
    return out + style_.dimmed(numbers) + "\n";
  }

  std::string line(const std::string& prefix, const EnergyNode& node, std::size_t hidden_rows) const {
    const ReportRow& row = node.sum;
    const std::string more = hidden_rows > 1 ? fmt::format(" +{}", hidden_rows) : "";
    const std::size_t used = display_columns(prefix) + more.size();
    const std::size_t left = layout_.name > used ? layout_.name - used : 1;
    const std::string name =
        are_kernels_ ? brief_kernel_name(printable(node.name), left) : shortened(printable(node.name), left);
    const std::string blanks(layout_.name - std::min(layout_.name, used + display_columns(name)), ' ');
    const bool has_share = row.energy_j && total_j_ && *total_j_ > 0;
    const double share = has_share ? *row.energy_j / *total_j_ : 0;
    const std::string bar = has_share ? bar_text(share, layout_.bar, style_.characters) : "";
    std::string out = " " + style_.dimmed(prefix) + name + style_.dimmed(more) + blanks;
    out += " " + right_aligned(row.energy_j ? format_number(*row.energy_j) : "?", kJoules);
    out += " " + style_.dimmed(right_aligned(sure_text(row), kSure));
    out += " " + right_aligned(has_share ? percent_text(share) : "", kShare);
    out += " " + style_.cyan(bar) + std::string(layout_.bar - display_columns(bar), ' ');
    out += " " + right_aligned(row.power_w ? format_number(*row.power_w, 3) : "", kWatts);
    out += " " + right_aligned(row.time_s > 0 ? duration_text(row.time_s) : "", layout_.time);
    out += " " + right_aligned(row.count.value_or(0) > 0 ? count_text(*row.count) : "", kCalls);
    if (!row.basis.empty() && row.energy_j)
      out += " " + style_.dimmed(layout_.has_words ? row.basis : row.basis.substr(0, 1));
    return out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  }

 private:
  Layout layout_;
  TextStyle style_;
  std::optional<double> total_j_;
  bool are_kernels_;
};

TreeLimits limits_of(const TreeTextOptions& view, const ReportResult& result) {
  TreeLimits limits;
  limits.depth = view.depth;
  if (view.top) limits.lines = *view.top > 0 ? *view.top : std::numeric_limits<std::size_t>::max();
  if (view.top || !view.query.filter.empty() || has_step_or_epoch_rows(result)) limits.min_share = 0;
  return limits;
}

std::string legend(const std::vector<TreeLine>& lines, const Layout& layout, double interval, const TextStyle& style) {
  std::set<std::string> bases;
  bool is_folded = false;
  bool has_background = false;
  for (const TreeLine& line : lines) {
    is_folded = is_folded || line.hidden_rows > 1 || line.node == nullptr;
    if (line.node == nullptr) continue;
    has_background = has_background || line.node->name == "background";
    if (!line.node->sum.basis.empty() && line.node->sum.energy_j) bases.insert(line.node->sum.basis);
  }
  std::string text = fmt::format("{}: half of the {:.0f} % interval.", style.plus_minus(), 100 * interval);
  if (is_folded) text += " +N: N rows folded; --top 0 shows all.";
  if (has_background) text += " background: other processes.";
  if (!bases.empty() && !layout.has_words) {
    std::vector<std::string> letters;
    for (const std::string& basis : bases) letters.push_back(fmt::format("{} {}", basis[0], basis));
    text += fmt::format(" b, where the split of energy comes from: {}.", fmt::join(letters, ", "));
  }
  std::string out = wrap_text(" ", text, style.columns);
  out.pop_back();
  return style.dimmed(out) + "\n";
}

std::string title_of(const ReportResult& result, const TreeTextOptions& view) {
  if (view.query.filter.empty()) return "By " + result.by;
  return fmt::format("By {}, filter '{}'", result.by, printable(view.query.filter));
}

}  // namespace

std::string tree_text(const ReportResult& result, const TreeTextOptions& view, const TextStyle& style) {
  if (result.by == "domain" || result.rows.empty()) return {};
  const EnergyNode root = energy_tree(result, view.query);
  const std::vector<TreeLine> lines = tree_lines(root, limits_of(view, result));
  std::size_t longest = 0;
  std::size_t longest_time = 0;
  for (const TreeLine& line : lines) {
    longest_time = std::max(longest_time, duration_text(line.node != nullptr ? line.node->sum.time_s : 0).size());
    const std::string& name = line.node != nullptr ? line.node->name : line.omitted_sum.name;
    longest = std::max(longest,
                       display_columns(branches(line, style)) + display_columns(name) + (line.hidden_rows > 1 ? 5 : 0));
  }
  const Layout layout = layout_for(longest, longest_time, style.columns);
  const Table table(layout, style, result);
  std::string out = "\n" + table.header(title_of(result, view));
  for (const TreeLine& line : lines) {
    out += table.line(branches(line, style), line.node != nullptr ? *line.node : line.omitted_sum, line.hidden_rows);
  }
  if (lines.empty()) out += "  no row matches the filter\n";
  for (const EnergyNode& node : idle_and_unattributed_nodes(result)) out += table.line("", node, 0);
  return out + legend(lines, layout, result.interval, style) + step_energy_distribution_text(result, style);
}

}  // namespace joulemap::report
