// SPDX-License-Identifier: Apache-2.0
//
// The part of the Ledger that splits the energy of a layer among its operations and functions.
#include <algorithm>
#include <array>
#include <cmath>

#include "attribution/ledger/ledger.h"
#include "base/quadrature.h"

namespace joulemap::attribution {
namespace {

constexpr std::array<std::pair<std::string_view, RowLevel>, 12> kLevels = {{{"domain", RowLevel::domain},
                                                                            {"phase", RowLevel::phase},
                                                                            {"layer", RowLevel::layer},
                                                                            {"op", RowLevel::op},
                                                                            {"tensor", RowLevel::tensor},
                                                                            {"function", RowLevel::function},
                                                                            {"region", RowLevel::region},
                                                                            {"kernel", RowLevel::kernel},
                                                                            {"step", RowLevel::step},
                                                                            {"epoch", RowLevel::epoch},
                                                                            {"rank", RowLevel::rank},
                                                                            {"stack", RowLevel::stack}}};

constexpr double kLeastTime_s = 1e-9;  // resolution of recorded times; less is rounding error of sums
constexpr double kLeastEnergy_j = 1e-12;
// Least share of a module's time that its operations take: calling a module that only calls an operation takes up to
// twice as long as the operation.
constexpr double kLeastOfAModule = 0.25;
// Relative standard deviation, from step to step, of the shares of operations within their layer.
constexpr double kStepSpread = 0.2;

double sampling_spread(double of_one, std::uint64_t samples) {
  return of_one / std::sqrt(static_cast<double>(std::max(samples, std::uint64_t{1})));
}

}  // namespace

std::optional<RowLevel> parse_level(std::string_view name) {
  for (const auto& [text, level] : kLevels) {
    if (text == name) return level;
  }
  return std::nullopt;
}

std::string_view name_of(RowLevel level) { return kLevels[static_cast<std::size_t>(level)].first; }

void Ledger::split_scope(const std::vector<std::string>& coarse, const Parts& parts) {
  double parts_s = 0;
  for (const auto& [path, amount] : parts) parts_s += amount.time_s;
  if (parts_s <= 0) return;
  std::vector<Key> keys;
  for (const auto& [key, entry] : entries_) {
    if (key.first == coarse && !entry.is_part) keys.push_back(key);
  }
  for (const Key& key : keys) {
    const Entry whole = entries_.extract(key).mapped();
    for (const auto& [path, amount] : parts) {
      const double share = amount.time_s / parts_s;
      const double calls = static_cast<double>(amount.count) * whole.sum.time_s / parts_s;
      Amount part{static_cast<std::uint64_t>(std::llround(calls)), 0, whole.sum.time_s * share,
                  whole.sum.energy_j * share};
      part.by_class.add(whole.sum.by_class, share);
      part.waiting_s = whole.sum.waiting_s * share;
      part.waiting_j = whole.sum.waiting_j * share;
      const bool is_only_seen = amount.sampled > 0;  // a function known from stack samples
      const CauseEvidence& evidence = whole.sum.evidence;
      part.evidence.add(is_only_seen ? evidence.unclassified() : evidence, share);
      const std::vector<std::string>& fine = path.empty() ? coarse : path;
      credit(fine, key.second, part, {}, whole.basis, whole.has_energy);
      Entry& row = entries_[{fine, key.second}];
      row.is_part = true;
      row.spread = sampling_spread(amount.sampled > 0 ? std::sqrt(1 - share) : kStepSpread * (1 - share),
                                   std::max(amount.sampled, std::uint64_t{1}));
    }
  }
}

// Recorded operations take precedence over functions from stack samples.
void Ledger::split_scopes() {
  for (const auto& [coarse, parts] : shares_) split_scope(coarse, parts);
  if (level_ != RowLevel::function) return;
  for (const auto& [coarse, parts] : function_shares_) split_scope(coarse, parts);
}

// For traces that contain every call: an operation has its own time, and the rest of the layer's time stays with the
// layer.
void Ledger::split_off_parts() {
  std::map<Key, Entry> split_entries;
  for (auto& [key, entry] : entries_) {
    Entry rest = std::move(entry);
    for (const auto& [part, amount] : rest.parts) {
      Key fine = key;
      fine.first.push_back(part);
      split_entries[fine] = {amount, rest.basis, rest.has_energy, rest.is_module, {}, true, 0};
      rest.sum.time_s -= amount.time_s;
      rest.sum.energy_j -= amount.energy_j;
      rest.sum.by_class.add(amount.by_class, -1);
      rest.sum.evidence.add(amount.evidence, -1);
      rest.sum.waiting_s -= amount.waiting_s;
      rest.sum.waiting_j -= amount.waiting_j;
      if (key.second != kCpuDevice) rest.sum.count -= amount.count;  // each kernel belongs to one operation
    }
    if (rest.parts.empty() || rest.sum.time_s > kLeastTime_s) split_entries.emplace(key, std::move(rest));
  }
  entries_ = std::move(split_entries);
}

void Ledger::add_share(Amount& sum, const Amount& amount, double share) {
  const Amount whole = amount;  // `amount` may alias `sum`
  sum.time_s += share * whole.time_s;
  sum.energy_j += share * whole.energy_j;
  sum.by_class.add(whole.by_class, share);
  sum.evidence.add(whole.evidence, share);
  sum.waiting_s += share * whole.waiting_s;
  sum.waiting_j += share * whole.waiting_j;
}

// Steps per sampled step, by how often layers were entered; 0 if none was sampled.
double Ledger::steps_for_each_sampled() const {
  double entered = 0;
  double sampled = 0;
  for (const auto& [key, entry] : entries_) {
    if (key.second != kCpuDevice || entry.sum.sampled == 0) continue;
    entered += static_cast<double>(entry.sum.count);
    sampled += static_cast<double>(entry.sum.sampled);
  }
  return sampled > 0 ? entered / sampled : 0;
}

void Ledger::split_entry(const Key& key, const Entry& entry, std::map<Key, Entry>& split_entries) {
  double sampled_s = 0;
  double sampled_j = 0;
  for (const auto& [part, amount] : entry.parts) {
    sampled_s += amount.time_s;
    sampled_j += amount.energy_j;
  }
  for (const auto& [part, amount] : entry.parts) {
    const double share = amount.time_s / sampled_s;
    // Calls are counted exactly in sampled steps; the ratio of all entries of the layer to sampled entries scales them.
    const double steps = entry.sum.sampled > 0
                             ? static_cast<double>(entry.sum.count) / static_cast<double>(entry.sum.sampled)
                             : entry.sum.time_s / sampled_s;
    Key fine = key;
    fine.first.push_back(part);
    Entry& row = split_entries[fine];
    row.basis = entry.basis;
    row.has_energy = entry.has_energy;
    row.is_part = true;
    row.sum = {static_cast<std::uint64_t>(std::llround(static_cast<double>(amount.count) * steps)), 0,
               entry.sum.time_s * share, entry.sum.energy_j * share};
    row.sum.evidence.add(amount.evidence, entry.sum.time_s / sampled_s);
    row.sum.waiting_s = entry.sum.waiting_s * share;
    row.sum.waiting_j = entry.sum.waiting_j * share;
    if (sampled_j <= 0) {
      row.sum.by_class.add(entry.sum.by_class, share);
      continue;
    }
    // The energy of each operation in sampled steps is known, not only its time.
    const double energy_share = amount.energy_j / sampled_j;
    row.sum.energy_j = entry.sum.energy_j * energy_share;
    if (key.second == kCpuDevice) {
      row.sum.by_class.add(entry.sum.by_class, energy_share);
      row.spread = sampling_spread(kStepSpread * (1 - energy_share), entry.sum.sampled);
    } else {
      row.sum.by_class.add(amount.by_class, entry.sum.energy_j / sampled_j);
    }
  }
}

// Share of an entry's time that belongs to its operations. A module does little else, unless its operations explain
// only a small part of its time: then it computes without PyTorch. A phase or a region waits, and does other things
// before the first step.
double Ledger::share_of_parts(const Key& key, const Entry& entry, double sampled_s, double steps) const {
  if (key.second != kCpuDevice || steps <= 0 || (entry.is_module && entry.sum.sampled == 0)) return 1;
  const double own_steps =
      entry.sum.sampled > 0 ? static_cast<double>(entry.sum.count) / static_cast<double>(entry.sum.sampled) : steps;
  const double share = std::min(1.0, own_steps * sampled_s / entry.sum.time_s);
  return entry.is_module && share >= kLeastOfAModule ? 1 : share;
}

void Ledger::split_parts() {
  if (!energy_.has_sampled_operations) return split_off_parts();
  const double steps = steps_for_each_sampled();
  std::map<Key, Entry> split_entries;
  for (auto& [key, entry] : entries_) {
    double sampled_s = 0;
    for (const auto& [part, amount] : entry.parts) sampled_s += amount.time_s;
    if (sampled_s <= 0) {
      split_entries.emplace(key, std::move(entry));
      continue;
    }
    const double of_parts = share_of_parts(key, entry, sampled_s, steps);
    Entry shared = entry;
    shared.sum = {entry.sum.count, entry.sum.sampled, 0, 0, {}, {}};
    add_share(shared.sum, entry.sum, of_parts);
    split_entry(key, shared, split_entries);
    if (of_parts == 1) continue;
    entry.parts.clear();
    add_share(entry.sum, entry.sum, -of_parts);
    split_entries.emplace(key, std::move(entry));
  }
  entries_ = std::move(split_entries);
}

// Merges a function over all its callers. Layers without a sampled step contain no functions.
void Ledger::gather_functions() {
  std::map<Key, Entry> functions;
  for (auto& [key, entry] : entries_) {
    if (!entry.is_part && key.first.front() != kProbeMode) continue;
    Entry& sum = functions[{{key.first.back()}, key.second}];
    sum.basis = entry.basis;
    sum.has_energy = entry.has_energy;
    sum.sum.count += entry.sum.count;
    sum.sum.time_s += entry.sum.time_s;
    sum.sum.energy_j += entry.sum.energy_j;
    sum.sum.by_class.add(entry.sum.by_class);
    sum.sum.evidence.add(entry.sum.evidence);
    sum.spread = add_in_quadrature(sum.spread, entry.spread * entry.sum.energy_j);  // J until all are added
  }
  for (auto& [key, entry] : functions) entry.spread /= std::max(entry.sum.energy_j, kLeastEnergy_j);
  entries_ = std::move(functions);
}

}  // namespace joulemap::attribution
