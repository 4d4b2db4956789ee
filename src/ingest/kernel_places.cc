// SPDX-License-Identifier: Apache-2.0
#include "ingest/kernel_places.h"

#include <algorithm>

namespace joulemap::ingest {

void KernelPlaces::sort(std::vector<Entry>& entries) {
  const auto before = [](const Entry& a, const Entry& b) {
    return a.id != b.id ? a.id < b.id : a.start_ns < b.start_ns;
  };
  // Ids grow with time: mostly there is nothing to do.
  if (!std::is_sorted(entries.begin(), entries.end(), before)) std::sort(entries.begin(), entries.end(), before);
}

KernelPlaces::KernelPlaces(const Trace& trace) {
  for (const std::vector<TraceEvent>& block : trace.blocks) {
    for (const TraceEvent& event : block) {
      if (event.kind == EventKind::api && event.correlation != 0) {
        calls_.push_back({event.correlation, event.detail, event.start_ns});
      }
    }
  }
  sort(calls_);
  if (trace.gpu_names_ops) return;
  std::vector<std::uint32_t> wanted;
  for (const std::vector<TraceEvent>& block : trace.blocks) {
    for (const TraceEvent& event : block) {
      if (!is_on_gpu(event.kind) || event.external == 0) continue;
      if (find(calls_, event.correlation, event.start_ns) == nullptr) wanted.push_back(event.external);
    }
  }
  if (wanted.empty()) return;
  std::sort(wanted.begin(), wanted.end());
  for (const std::vector<TraceEvent>& block : trace.blocks) {
    for (const TraceEvent& event : block) {
      if (event.kind != EventKind::op && event.kind != EventKind::annotation) continue;
      if (event.external == 0 || !std::binary_search(wanted.begin(), wanted.end(), event.external)) continue;
      operations_.push_back({event.external, event.detail, event.start_ns});
    }
  }
  sort(operations_);
}

const KernelPlaces::Entry* KernelPlaces::find(const std::vector<Entry>& entries, std::uint32_t id,
                                              std::int64_t start_ns) {
  if (id == 0) return nullptr;
  const auto after = std::upper_bound(
      entries.begin(), entries.end(), std::pair(id, start_ns), [](const auto& wanted, const Entry& entry) {
        return wanted.first != entry.id ? wanted.first < entry.id : wanted.second < entry.start_ns;
      });
  if (after != entries.begin() && std::prev(after)->id == id) return &*std::prev(after);
  return after != entries.end() && after->id == id ? &*after : nullptr;
}

std::optional<Launch> KernelPlaces::launch_of(const TraceEvent& kernel) const {
  const Entry* entry = find(calls_, kernel.correlation, kernel.start_ns);
  // A call outside of every place may still be told by an operation.
  if (entry == nullptr || entry->place == 0) {
    if (const Entry* const operation = find(operations_, kernel.external, kernel.start_ns)) entry = operation;
  }
  if (entry == nullptr) return std::nullopt;
  return Launch{entry->place, entry->start_ns};
}

}  // namespace joulemap::ingest
