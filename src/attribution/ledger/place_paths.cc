// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/place_paths.h"

#include <algorithm>
#include <unordered_set>

namespace joulemap::attribution {
namespace {

// Deeper than any program nests: a file with deeper scopes is damaged.
constexpr int kDeepest = 1000;

void add_if_known(std::vector<std::string>& path, const std::string& name) {
  if (!name.empty()) path.push_back(name);
}

// The innermost name wins: callers walk the chain from the inside out.
void keep_first(std::string& known, const std::string& name) {
  if (known.empty()) known = name;
}

}  // namespace

std::vector<std::string> PlaceMeaning::phase_path() const {
  std::vector<std::string> path;
  add_if_known(path, mode);
  add_if_known(path, phase);
  return path.empty() ? regions : path;
}

std::vector<std::string> PlaceMeaning::layer_path() const {
  std::vector<std::string> path = phase_path();
  add_if_known(path, module);
  return path;
}

std::string PlaceMeaning::op_with_tensors() const { return op.empty() || tensors.empty() ? op : op + " " + tensors; }

bool PlacePaths::probes(std::uint32_t place) const {
  for (int depth = 0; place != 0 && depth < kDeepest; ++depth) {
    const auto known = places_.find(place);
    if (known == places_.end()) return false;
    if (known->second.kind == PlaceKind::mode) return known->second.name == kProbeMode;
    place = known->second.parent;
  }
  return false;
}

const PlaceMeaning& PlacePaths::meaning(std::uint32_t place) {
  const auto [slot, is_new] = meanings_.try_emplace(place);
  if (!is_new) return slot->second;
  PlaceMeaning& meaning = slot->second;
  for (int depth = 0; place != 0 && depth < kDeepest; ++depth) {
    const auto known = places_.find(place);
    if (known == places_.end()) break;
    const auto& [id, parent, kind, name] = known->second;
    if (kind == PlaceKind::mode) keep_first(meaning.mode, name);
    if (kind == PlaceKind::phase) keep_first(meaning.phase, name);
    if (kind == PlaceKind::module) keep_first(meaning.module, name);
    if (kind == PlaceKind::op) keep_first(meaning.op, name);
    if (kind == PlaceKind::tensors && meaning.op.empty()) keep_first(meaning.tensors, name);
    if (kind == PlaceKind::function) keep_first(meaning.function, name);
    if (kind == PlaceKind::region) meaning.regions.push_back(name);
    place = parent;
  }
  std::reverse(meaning.regions.begin(), meaning.regions.end());
  return meaning;
}

PlacePaths::Operations PlacePaths::operations() const {
  Operations counts;
  std::unordered_set<std::uint32_t> with_tensors;
  for (const auto& [id, place] : places_) {
    if (place.kind == PlaceKind::op) ++counts.all;
    if (place.kind != PlaceKind::tensors) continue;
    const auto parent = places_.find(place.parent);
    if (parent != places_.end() && parent->second.kind == PlaceKind::op) with_tensors.insert(place.parent);
  }
  counts.without_tensors = counts.all - with_tensors.size();
  return counts;
}

}  // namespace joulemap::attribution
