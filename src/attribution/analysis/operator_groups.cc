// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/operator_groups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "attribution/ledger/ledger.h"

namespace joulemap::attribution {
namespace {

using scopes::OperationKind;

constexpr double kMinShapeSimilarity = 0.5;
// Calls of a group are known if those of most of its energy are: rare kernels may have a time but no count.
constexpr double kMinEnergyFractionWithCount = 0.5;
// Only the shapes of a family with the most energy are compared: the time is quadratic in their number.
constexpr std::size_t kMaxComparedShapes = 1000;
constexpr std::string_view kSeveralShapesLabel = "several shapes";

struct OperationFamily {
  std::string device;
  OperationKind kind = OperationKind::unknown;
  std::string phase;
  friend auto operator<=>(const OperationFamily&, const OperationFamily&) = default;
};
using GroupKey = std::pair<OperationFamily, std::string>;  // with the key of the shape

struct ShapeSum {
  double energy_j = 0;
  scopes::OperationShape shape;
  std::vector<std::int64_t> sorted_sizes;
};
using ShapeSums = std::map<std::string, ShapeSum>;  // by key of the shape

OperationFamily operation_family(const OperatorWork& work) { return {work.device, work.kind, work.phase}; }

std::map<OperationFamily, ShapeSums> sum_energy_by_shape(std::span<const RecordedWork> side) {
  std::map<OperationFamily, ShapeSums> sums;
  for (const RecordedWork& recording : side) {
    for (const OperatorWork& work : recording.work) {
      ShapeSum& sum = sums[operation_family(work)][work.shape.key];
      sum.energy_j += work.energy_j;
      sum.shape = work.shape;
      sum.sorted_sizes.assign(work.shape.sizes.begin(), work.shape.sizes.end());
      std::ranges::sort(sum.sorted_sizes);
    }
  }
  return sums;
}

// Fraction of the sizes that both shapes have, each as often as it occurs.
double shape_similarity(const ShapeSum& x, const ShapeSum& y) {
  const std::vector<std::int64_t>& sizes_x = x.sorted_sizes;
  const std::vector<std::int64_t>& sizes_y = y.sorted_sizes;
  std::size_t common_size_count = 0;
  for (std::size_t i = 0, k = 0; i < sizes_x.size() && k < sizes_y.size();) {
    if (sizes_x[i] == sizes_y[k]) {
      ++common_size_count;
      ++i;
      ++k;
    } else {
      ++(sizes_x[i] < sizes_y[k] ? i : k);
    }
  }
  const std::size_t max_size_count = std::max(sizes_x.size(), sizes_y.size());
  return max_size_count == 0 ? 0 : static_cast<double>(common_size_count) / static_cast<double>(max_size_count);
}

struct GroupLabel {
  std::string label;  // shown
  bool has_different_shapes = false;
};

// By side: the group of each key. Groups are identified by their label within the family.
struct GroupLabels {
  std::array<std::map<GroupKey, GroupLabel>, 2> labels_by_side;
};

using UnmatchedShapes = std::vector<const std::pair<const std::string, ShapeSum>*>;

UnmatchedShapes find_unmatched_shapes(const ShapeSums& side_shapes, const ShapeSums& other_side_shapes) {
  UnmatchedShapes unmatched_shapes;
  for (const auto& entry : side_shapes) {
    if (!other_side_shapes.contains(entry.first)) unmatched_shapes.push_back(&entry);
  }
  std::ranges::stable_sort(unmatched_shapes, std::greater(), [](const auto* entry) { return entry->second.energy_j; });
  return unmatched_shapes;
}

void set_group_label(GroupLabels& group_labels, std::size_t side, const OperationFamily& family, const std::string& key,
                     const GroupLabel& group_label) {
  group_labels.labels_by_side[side][{family, key}] = group_label;
}

// Index of the most similar shape of `candidate_shapes` that is not matched yet; of equally similar ones, the first.
// None if no shape is similar enough.
std::optional<std::size_t> find_most_similar_shape(const ShapeSum& shape_sum, const UnmatchedShapes& candidate_shapes,
                                                   const std::vector<bool>& is_matched) {
  std::optional<std::size_t> best_shape_index;
  double best_similarity = 0;
  for (std::size_t i = 0; i < is_matched.size(); ++i) {
    if (is_matched[i]) continue;
    const double similarity = shape_similarity(shape_sum, candidate_shapes[i]->second);
    if (similarity < kMinShapeSimilarity || similarity <= best_similarity) continue;
    best_shape_index = i;
    best_similarity = similarity;
  }
  return best_shape_index;
}

void remove_matched_shapes(UnmatchedShapes& shapes, const std::vector<bool>& is_matched) {
  UnmatchedShapes unmatched_shapes;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (i >= is_matched.size() || !is_matched[i]) unmatched_shapes.push_back(shapes[i]);
  }
  shapes = std::move(unmatched_shapes);
}

void match_shapes_of_family(GroupLabels& group_labels, const OperationFamily& family, const ShapeSums& a,
                            const ShapeSums& b) {
  for (const auto& [key, sum] : a) {
    if (b.contains(key))
      set_group_label(group_labels, 0, family, key, {sum.shape.text}),
          set_group_label(group_labels, 1, family, key, {sum.shape.text});
  }
  UnmatchedShapes shapes_a = find_unmatched_shapes(a, b);
  UnmatchedShapes shapes_b = find_unmatched_shapes(b, a);
  std::vector<bool> is_matched_a(std::min(shapes_a.size(), kMaxComparedShapes));
  std::vector<bool> is_matched_b(std::min(shapes_b.size(), kMaxComparedShapes));
  for (std::size_t i = 0; i < is_matched_b.size(); ++i) {
    const std::optional<std::size_t> k = find_most_similar_shape(shapes_b[i]->second, shapes_a, is_matched_a);
    if (!k) continue;
    const GroupLabel group_label{shapes_a[*k]->second.shape.text + " -> " + shapes_b[i]->second.shape.text, true};
    set_group_label(group_labels, 0, family, shapes_a[*k]->first, group_label);
    set_group_label(group_labels, 1, family, shapes_b[i]->first, group_label);
    is_matched_a[*k] = is_matched_b[i] = true;
  }
  remove_matched_shapes(shapes_a, is_matched_a);
  remove_matched_shapes(shapes_b, is_matched_b);
  const bool is_on_both_sides = !shapes_a.empty() && !shapes_b.empty();
  for (const auto& [side, side_shapes] : {std::pair(0, &shapes_a), std::pair(1, &shapes_b)}) {
    for (const auto* entry : *side_shapes) {
      const bool is_single_shape = !is_on_both_sides || side_shapes->size() == 1;
      const std::string label = is_on_both_sides && !(shapes_a.size() == 1 && shapes_b.size() == 1 && is_single_shape)
                                    ? std::string(kSeveralShapesLabel)
                                : is_on_both_sides ? shapes_b.front()->second.shape.text
                                                   : entry->second.shape.text;
      set_group_label(group_labels, static_cast<std::size_t>(side), family, entry->first, {label});
    }
  }
}

std::string kind_name(const OperationFamily& family) {
  if (family.kind != OperationKind::unknown) return std::string(to_string(family.kind));
  return family.device.ends_with(kCpuDevice) ? "host code" : "other";
}

std::vector<std::string> make_group_path(const OperationFamily& family, const std::string& label) {
  std::vector<std::string> path = {kind_name(family)};
  if (!family.phase.empty()) path.push_back(family.phase);
  if (!label.empty()) path.push_back(label);
  return path;
}

bool is_cpu_device(std::string_view device) { return device.ends_with(kCpuDevice); }

// Of a CPU only the energy without work is known, not what it waited for.
std::vector<std::string> make_idle_group_path(const IdleEntry& entry) {
  if (is_cpu_device(entry.device)) return {std::string(kIdleGroupKind)};
  return {std::string(kWaitingGroupKind), std::string(to_string(entry.cause))};
}

// Sums of a group in one recording.
struct GroupSum {
  double energy_j = 0;
  double time_s = 0;
  double count = 0;
  double counted_rows_energy_j = 0;             // energy of the rows whose calls are known
  std::map<std::string, double> half_widths_j;  // by kernel
  bool has_interval = true;

  void add(const std::string& kernel, double joules, double seconds, std::optional<double> calls,
           std::optional<double> half_width_j) {
    energy_j += joules;
    time_s += seconds;
    count += calls.value_or(0);
    if (calls) counted_rows_energy_j += joules;
    if (half_width_j) half_widths_j[kernel] += *half_width_j;
    has_interval = has_interval && half_width_j.has_value();
  }
};

using DeviceAndGroupPath = std::pair<std::string, std::vector<std::string>>;  // device, path

std::vector<ReportRow> make_group_rows(const std::map<DeviceAndGroupPath, GroupSum>& sums) {
  std::vector<ReportRow> rows;
  for (const auto& [device_and_path, sum] : sums) {
    ReportRow& row = rows.emplace_back();
    std::tie(row.device, row.path) = device_and_path;
    row.name = row.path.back();
    for (const std::string& part : row.path) row.display_name += (row.display_name.empty() ? "" : " ") + part;
    row.energy_j = sum.energy_j;
    row.time_s = sum.time_s;
    if (sum.counted_rows_energy_j > 0 && sum.counted_rows_energy_j >= kMinEnergyFractionWithCount * sum.energy_j)
      row.count = static_cast<std::uint64_t>(std::llround(sum.count * sum.energy_j / sum.counted_rows_energy_j));
    if (!sum.has_interval) continue;
    double variance_j2 = 0;
    for (const auto& [kernel, half_width_j] : sum.half_widths_j) variance_j2 += half_width_j * half_width_j;
    row.low_j = sum.energy_j - std::sqrt(variance_j2);
    row.high_j = sum.energy_j + std::sqrt(variance_j2);
  }
  return rows;
}

// Energies by name, to list the largest.
struct EnergiesByName {
  std::map<std::string, double> operations;
  std::map<std::string, double> kernels;
  std::map<std::string, double> shapes;
  std::map<std::string, double> precisions;
  double energy_j = 0;
  double energy_weighted_elements = 0;

  void add(const OperatorWork& work) {
    energy_j += work.energy_j;
    energy_weighted_elements += work.energy_j * work.shape.element_count;
    if (!work.operation.empty()) operations[work.operation] += work.energy_j;
    if (!work.kernel.empty()) kernels[work.kernel] += work.energy_j;
    if (!work.shape.text.empty()) shapes[work.shape.text] += work.energy_j;
    if (!work.precision.empty()) precisions[work.precision] += work.energy_j;
  }
};

std::vector<std::pair<std::string, double>> largest_entries(const std::map<std::string, double>& sums) {
  std::vector<std::pair<std::string, double>> sorted_sums(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted_sums, std::greater(), [](const auto& entry) { return entry.second; });
  if (sorted_sums.size() > kMaxOperatorGroupNames) sorted_sums.resize(kMaxOperatorGroupNames);
  return sorted_sums;
}

OperatorGroupContent make_operator_group_side(const EnergiesByName& names) {
  OperatorGroupContent side;
  for (const auto& [name, energy_j] : largest_entries(names.operations)) side.operations.push_back(name);
  for (const auto& [name, energy_j] : largest_entries(names.kernels))
    side.kernels.push_back({name, energy_j / names.energy_j});
  for (const auto& [name, energy_j] : largest_entries(names.shapes)) side.shapes.push_back(name);
  if (!names.precisions.empty()) side.precision = largest_entries(names.precisions).front().first;
  if (names.energy_j > 0) side.largest_tensor_elements = names.energy_weighted_elements / names.energy_j;
  return side;
}

struct GroupDescription {
  std::string kind;
  std::string phase;
  bool has_different_shapes = false;
  std::array<EnergiesByName, 2> sides;
};

std::vector<ReportRow> group_recorded_work(const RecordedWork& recording, std::size_t side,
                                           const GroupLabels& group_labels,
                                           std::map<DeviceAndGroupPath, GroupDescription>& groups) {
  std::map<DeviceAndGroupPath, GroupSum> sums;
  for (const OperatorWork& work : recording.work) {
    const OperationFamily family = operation_family(work);
    const GroupLabel& group_label = group_labels.labels_by_side[side].at({family, work.shape.key});
    const DeviceAndGroupPath device_and_path{work.device, make_group_path(family, group_label.label)};
    sums[device_and_path].add(work.kernel, work.energy_j, work.time_s, work.count, work.half_width_j);
    GroupDescription& names = groups[device_and_path];
    names.kind = kind_name(family);
    names.phase = family.phase;
    names.has_different_shapes = group_label.has_different_shapes;
    names.sides[side].add(work);
  }
  for (const IdleEntry& entry : recording.idle) {
    if (!entry.energy_j) continue;
    const DeviceAndGroupPath device_and_path{entry.device, make_idle_group_path(entry)};
    std::optional<double> half_width_j;
    if (entry.low_j && entry.high_j) half_width_j = 0.5 * (*entry.high_j - *entry.low_j);
    sums[device_and_path].add({}, *entry.energy_j, entry.time_s, std::nullopt, half_width_j);
    groups[device_and_path].kind = device_and_path.second.front();
  }
  return make_group_rows(sums);
}

}  // namespace

MatchedWork match_operator_work(std::span<const RecordedWork> a, std::span<const RecordedWork> b) {
  const std::map<OperationFamily, ShapeSums> shapes_a = sum_energy_by_shape(a);
  const std::map<OperationFamily, ShapeSums> shapes_b = sum_energy_by_shape(b);
  GroupLabels group_labels;
  static const ShapeSums kNone;
  for (const auto& [family, shapes] : shapes_a)
    match_shapes_of_family(group_labels, family, shapes, shapes_b.contains(family) ? shapes_b.at(family) : kNone);
  for (const auto& [family, shapes] : shapes_b) {
    if (!shapes_a.contains(family)) match_shapes_of_family(group_labels, family, kNone, shapes);
  }
  MatchedWork matched;
  std::map<DeviceAndGroupPath, GroupDescription> groups;
  for (const RecordedWork& recorded_work : a)
    matched.a.push_back(group_recorded_work(recorded_work, 0, group_labels, groups));
  for (const RecordedWork& recorded_work : b)
    matched.b.push_back(group_recorded_work(recorded_work, 1, group_labels, groups));
  for (const auto& [device_and_path, names] : groups) {
    matched.groups.emplace_back(device_and_path,
                                OperatorGroup{names.kind, names.phase, make_operator_group_side(names.sides[0]),
                                              make_operator_group_side(names.sides[1]), names.has_different_shapes});
  }
  return matched;
}

void add_operator_groups(RunDifference& difference, const MatchedWork& matched) {
  const std::map<DeviceAndGroupPath, OperatorGroup> groups(matched.groups.begin(), matched.groups.end());
  double unassigned_a_j = difference.total.a ? difference.total.a->energy_j : 0;
  double unassigned_b_j = difference.total.b ? difference.total.b->energy_j : 0;
  for (DifferenceEntry& entry : difference.entries) {
    unassigned_a_j -= entry.a ? entry.a->energy_j : 0;
    unassigned_b_j -= entry.b ? entry.b->energy_j : 0;
    const auto matching_group = groups.find({entry.device, entry.path});
    if (matching_group != groups.end()) entry.group = matching_group->second;
  }
  DifferenceEntry unassigned_entry;
  unassigned_entry.name = unassigned_entry.display_name = kUnassignedGroupKind;
  unassigned_entry.path = {unassigned_entry.name};
  unassigned_entry.a = ComparedEnergy{.energy_j = unassigned_a_j};
  unassigned_entry.b = ComparedEnergy{.energy_j = unassigned_b_j};
  unassigned_entry.difference_j = unassigned_b_j - unassigned_a_j;
  unassigned_entry.group = OperatorGroup{.kind = unassigned_entry.name};
  difference.entries.push_back(std::move(unassigned_entry));
}

}  // namespace joulemap::attribution
