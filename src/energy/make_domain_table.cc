// SPDX-License-Identifier: Apache-2.0
#include "energy/make_domain_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>

namespace joulemap {
namespace {

// Two sensors of one domain differ by the energy of a few update periods at the edges. A larger relative difference is
// reported as a fault.
constexpr double kMaxSensorDisagreement = 0.05;

// Preference among the channels of a domain; the smallest is used.
int channel_preference_rank(const ChannelEnergy& energy) {
  if (!energy.joules) return 4;
  const int estimate_penalty = energy.channel.provenance == Provenance::estimated ? 2 : 0;
  const int gauge_penalty = energy.channel.kind == ChannelKind::gauge ? 1 : 0;
  return estimate_penalty + gauge_penalty;
}

bool is_superseded_estimate(const ChannelEnergy& estimate, std::span<const ChannelEnergy> channels) {
  bool is_class_measured = false;
  bool has_same_domain_failed = false;
  for (const ChannelEnergy& other_energy : channels) {
    if (other_energy.channel.provenance != Provenance::measured) continue;
    const bool is_same_domain = other_energy.channel.domain == estimate.channel.domain;
    if (other_energy.joules && (is_same_domain || other_energy.channel.domain_class == DomainClass::platform))
      return true;
    if (!other_energy.joules && is_same_domain) has_same_domain_failed = true;
    if (other_energy.joules && other_energy.channel.domain_class == estimate.channel.domain_class)
      is_class_measured = true;
  }
  return is_class_measured && !has_same_domain_failed;
}

DomainEnergy make_domain_row(const ChannelEnergy& energy, double elapsed_s) {
  DomainEnergy row;
  row.name = energy.channel.domain;
  row.part_of = energy.channel.part_of;
  row.is_counted = energy.channel.is_countable;
  row.sensor = energy.channel.sensor;
  row.channel = energy.channel.name;
  row.device_model = energy.channel.device_model;
  if (!energy.joules) {
    row.reason = energy.missing_reason;
    return row;
  }
  row.joules = energy.joules;
  row.uncertainty_j = energy.uncertainty_j;
  const double known_s = elapsed_s - energy.missing_s + energy.interpolated_s;
  if (known_s > 0) row.mean_w = *energy.joules / known_s;
  row.provenance = energy.channel.provenance;
  row.model = energy.channel.model;
  return row;
}

void add_cross_check(DomainEnergy& row, const ChannelEnergy& other_energy, Diagnostics& diagnostics) {
  row.checks.push_back(
      {other_energy.channel.sensor, other_energy.channel.name, *other_energy.joules, other_energy.uncertainty_j});
  if (row.provenance == Provenance::estimated || other_energy.channel.provenance == Provenance::estimated) return;
  const double difference_j = std::abs(*row.joules - *other_energy.joules);
  if (difference_j <= kMaxSensorDisagreement * *row.joules + *row.uncertainty_j + other_energy.uncertainty_j) return;
  diagnostics.add(
      {"sensors_disagree", 1,
       fmt::format("{}: {} reports {:.4g} J, {} ({}) reports {:.4g} J; the first is used", row.name, row.sensor,
                   *row.joules, other_energy.channel.sensor, other_energy.channel.source, *other_energy.joules),
       row.sensor == other_energy.channel.sensor ? "" : "choose one with --sensors"});
}

bool has_measured_ancestor(const DomainEnergy& row, std::span<const DomainEnergy> rows) {
  std::string_view parent_name = row.part_of;
  for (std::size_t depth = 0; !parent_name.empty() && depth <= rows.size(); ++depth) {
    const auto parent = std::find_if(rows.begin(), rows.end(),
                                     [&](const DomainEnergy& other_row) { return other_row.name == parent_name; });
    if (parent == rows.end()) return false;
    if (parent->joules) return true;
    parent_name = parent->part_of;
  }
  return false;
}

}  // namespace

DomainTable make_domain_table(std::span<const ChannelEnergy> channels, double elapsed_s, bool check_estimates) {
  DomainTable table;
  std::vector<const ChannelEnergy*> ranked_channels;
  std::vector<const ChannelEnergy*> superseded_estimates;
  for (const ChannelEnergy& energy : channels) {
    if (!measures_energy_or_power(energy.channel)) continue;
    const bool estimate = energy.channel.provenance == Provenance::estimated;
    (estimate && is_superseded_estimate(energy, channels) ? superseded_estimates : ranked_channels).push_back(&energy);
  }
  std::stable_sort(ranked_channels.begin(), ranked_channels.end(), [](const auto* a, const auto* b) {
    return channel_preference_rank(*a) < channel_preference_rank(*b);
  });
  if (check_estimates)
    ranked_channels.insert(ranked_channels.end(), superseded_estimates.begin(), superseded_estimates.end());

  // Rows follow the order in which the sensors list their domains; the first channel of a domain in `ranked_channels` is its
  // best.
  std::set<std::string> listed_domains;
  for (const ChannelEnergy& channel_energy : channels) {
    if (!measures_energy_or_power(channel_energy.channel)) continue;
    if (!listed_domains.insert(channel_energy.channel.domain).second) continue;
    DomainEnergy* row = nullptr;
    for (const ChannelEnergy* energy : ranked_channels) {
      if (energy->channel.domain != channel_energy.channel.domain) continue;
      const bool is_superseded =
          std::find(superseded_estimates.begin(), superseded_estimates.end(), energy) != superseded_estimates.end();
      if (row == nullptr && !is_superseded) {
        row = &table.rows.emplace_back(make_domain_row(*energy, elapsed_s));
      } else if (row != nullptr && energy->joules && row->joules) {
        add_cross_check(*row, *energy, table.diagnostics);
      }
    }
  }
  for (DomainEnergy& row : table.rows) row.is_counted = row.is_counted && !has_measured_ancestor(row, table.rows);
  table.totals = total_energy(table.rows);
  return table;
}

}  // namespace joulemap
