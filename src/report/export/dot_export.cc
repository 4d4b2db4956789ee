// SPDX-License-Identifier: Apache-2.0
//
// export --to dot: the call graph for Graphviz. A node is a name; the larger its share of the energy, the more opaque
// its colour, which shows the cause (model/cause_class.h). An edge connects caller and callee, with the energy of the
// stacks that contain it. Nodes below 0.1 % of the energy are left out; the caption contains their sum.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/amount_text.h"
#include "base/printable_text.h"
#include "model/cause_class.h"
#include "report/export/energy_stacks.h"
#include "report/export/exports.h"
#include "report/plot/svg_theme.h"

namespace joulemap::report {
namespace {

constexpr double kMinDrawnEnergyShare = 1e-3;
constexpr double kMinDrawnTime_s = 1e-12;

struct CallGraphNode {
  double inclusive_energy_j = 0;  // energy of stacks that contain the name, including callees
  double own_energy_j = 0;
  double own_time_s = 0;
  std::uint64_t call_count = 0;
  AmountByCause own_energy_by_cause_j = {};
  bool is_cause_from_name = false;  // a cause was inferred only from a name

  bool has_energy_by_cause() const { return own_energy_by_cause_j.sum() > 0; }
};

struct CallGraph {
  std::map<std::string, CallGraphNode> nodes;
  std::map<std::pair<std::string, std::string>, double> edge_energies_j;
  AmountByCause energy_by_cause_j;
  double total_j = 0;
};

CallGraph build_call_graph(const EnergyStacks& stacks) {
  CallGraph graph;
  for (const EnergyStack& stack : stacks.stacks) {
    const double energy_j = stack.energy_j.value_or(0);
    if (stack.frames.empty() || energy_j <= 0) continue;
    graph.total_j += energy_j;
    std::set<std::string> counted_frames;  // a name that repeats in a stack counts once
    for (const std::string& frame : stack.frames) {
      if (counted_frames.insert(frame).second) graph.nodes[frame].inclusive_energy_j += energy_j;
    }
    for (std::size_t i = 1; i < stack.frames.size(); ++i) {
      graph.edge_energies_j[{stack.frames[i - 1], stack.frames[i]}] += energy_j;
    }
    CallGraphNode& leaf_node = graph.nodes[stack.frames.back()];
    leaf_node.own_energy_j += energy_j;
    leaf_node.own_time_s += stack.time_s;
    leaf_node.call_count += stack.call_count;
    if (!stack.cause_class) continue;
    const double mean_w = energy_j / std::max(stack.cause_class->times_s.sum(), kMinDrawnTime_s);
    leaf_node.own_energy_by_cause_j.add(stack.cause_class->times_s, mean_w);
    leaf_node.is_cause_from_name = leaf_node.is_cause_from_name || stack.cause_class->basis == CauseBasis::name;
    graph.energy_by_cause_j.add(stack.cause_class->times_s, mean_w);
  }
  return graph;
}

std::string quote_dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char letter : printable(text)) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "\"";
}

std::string_view cause_class_colour(EnergyCauseClass cause) { return palette_colour(static_cast<std::size_t>(cause)); }

std::string node_label(const std::string& name, const CallGraphNode& node, double total_j) {
  std::string label = quote_dot_string(name);
  label.pop_back();
  label += fmt::format("\\n{} ({:.1f} %)", amount_text(node.inclusive_energy_j, "J"),
                       100 * node.inclusive_energy_j / total_j);
  if (node.own_energy_j > 0) {
    label += fmt::format("\\nself {}, {}, {} calls", amount_text(node.own_energy_j, "J"),
                         amount_text(node.own_time_s, "s"), node.call_count);
  }
  if (node.has_energy_by_cause()) {
    label += fmt::format("\\n{}{}", to_string(node.own_energy_by_cause_j.largest_class()),
                         node.is_cause_from_name ? " (by name)" : "");
  }
  return label + "\"";
}

std::string graph_caption(const CallGraph& graph, const std::string& subject, double omitted_energy_j) {
  std::string caption = fmt::format("{}: {}", subject, amount_text(graph.total_j, "J"));
  for (const EnergyCauseClass cause_class : kCauseClasses) {
    const double energy_j = graph.energy_by_cause_j[cause_class];
    if (energy_j > 0) caption += fmt::format("; {} {:.1f} %", to_string(cause_class), 100 * energy_j / graph.total_j);
  }
  if (omitted_energy_j > 0)
    caption += fmt::format("; names below 0.1 % omitted: {} of self energy", amount_text(omitted_energy_j, "J"));
  return caption;
}

}  // namespace

Result<std::string> graphviz_dot_text(const RunView& view, const ExportOptions& query) {
  const Result<EnergyStacks> stacks = energy_stacks(view, query.by);
  if (!stacks) return stacks.error();
  const CallGraph graph = build_call_graph(*stacks);
  if (graph.total_j <= 0) return missing_energy_error(stacks->by);
  const auto is_shown = [&](const std::string& name) {
    return graph.nodes.at(name).inclusive_energy_j >= kMinDrawnEnergyShare * graph.total_j;
  };
  std::string nodes;
  double omitted_energy_j = 0;
  for (const auto& [name, node] : graph.nodes) {
    if (!is_shown(name)) {
      omitted_energy_j += node.own_energy_j;
      continue;
    }
    // Opacity of the node, from 40 / 255 for a small share to 220 / 255 for all of the energy.
    const int alpha = static_cast<int>(40 + 180 * std::min(1.0, node.inclusive_energy_j / graph.total_j));
    nodes += fmt::format("  {} [label={}, fillcolor=\"{}{:02x}\"];\n", quote_dot_string(name),
                         node_label(name, node, graph.total_j),
                         node.has_energy_by_cause() ? cause_class_colour(node.own_energy_by_cause_j.largest_class())
                                                    : kUnattributedColour,
                         alpha);
  }
  std::string edges;
  for (const auto& [ends, energy_j] : graph.edge_energies_j) {
    if (!is_shown(ends.first) || !is_shown(ends.second)) continue;
    edges += fmt::format("  {} -> {} [label=\"{}\", penwidth={:.2f}];\n", quote_dot_string(ends.first),
                         quote_dot_string(ends.second), amount_text(energy_j, "J"), 0.5 + 5 * energy_j / graph.total_j);
  }
  return fmt::format(
      "digraph energy {{\n  label={};\n  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\"];\n"
      "  edge [color=\"{}\", fontname=\"sans-serif\"];\n{}{}}}\n",
      quote_dot_string(graph_caption(graph, command_text(view.run), omitted_energy_j)), kMutedTextColour, nodes, edges);
}

}  // namespace joulemap::report
