// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/table_merge.h"

#include <string>

#include "base/text.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr char kPlainNameTag = 'n';
constexpr char kScopedNameTag = 'p';

template <class Add>
std::uint32_t find_or_map_index(std::vector<std::uint32_t>& numbers, std::uint32_t number, std::uint32_t none,
                                const Add& add) {
  std::uint32_t& known = numbers[number];
  if (known == none) known = add(number);
  return known;
}

}  // namespace

std::string module_of_hierarchy(std::string_view hierarchy) {
  std::string path;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= hierarchy.size(); ++at) {
    if (at < hierarchy.size() && hierarchy[at] == '(') ++depth;
    if (at < hierarchy.size() && hierarchy[at] == ')') --depth;
    if (at < hierarchy.size() && (hierarchy[at] != '.' || depth > 0)) continue;
    const std::string_view piece = hierarchy.substr(begin, at - begin);
    begin = at + 1;
    const std::size_t bracket = piece.find('(');
    const std::string_view name = piece.substr(0, bracket);
    // A piece without a class is a function ("aten::add"). The outermost module and calls inside a module add no path.
    if (bracket == std::string_view::npos || name.empty() || name == "TOP" || name == "top" || name == "SELF") continue;
    if (!path.empty()) path += '.';
    path += name;
  }
  return path;
}

TableMerge::TableMerge(std::span<const EventTables> tables, Trace& trace) : tables_(tables), trace_(trace) {
  for (const EventTables& table : tables) {
    index_maps_.push_back({.names = std::vector(table.names.size(), kUnmappedIndex),
                           .scoped_names = std::vector(table.scoped_names.size(), kUnmappedIndex),
                           .threads = std::vector(table.threads.size(), kUnmappedIndex),
                           .kernel_classes = std::vector(table.kernel_classes.size(), kUnmappedIndex),
                           .kernel_queues = std::vector(table.kernel_queues.size(), kUnmappedIndex),
                           .byte_counts = std::vector(table.byte_counts.size(), kUnmappedIndex)});
    index_maps_.back().byte_counts[0] = 0;
  }
  EventTables::intern(byte_counts_, std::uint64_t{0});
  trace_.byte_counts.assign(1, 0);
}

void TableMerge::remap_indices(std::size_t thread, std::span<TraceEvent> events) {
  const EventTables& tables = tables_[thread];
  IndexMaps& numbers = index_maps_[thread];
  for (TraceEvent& event : events) {
    if (is_on_gpu(event.kind)) {
      event.name_index = find_or_map_index(numbers.kernel_classes, event.name_index, kUnmappedIndex,
                                           [&](auto number) { return add_kernel_class(tables, number); });
      event.track_index = find_or_map_index(numbers.kernel_queues, event.track_index, kUnmappedIndex,
                                            [&](auto number) { return add_queue(tables, number); });
      event.detail_index = find_or_map_index(numbers.byte_counts, event.detail_index, kUnmappedIndex,
                                             [&](auto number) { return add_byte_count(tables, number); });
      continue;
    }
    event.track_index = find_or_map_index(numbers.threads, event.track_index, kUnmappedIndex,
                                          [&](auto number) { return add_thread(tables, number); });
    if ((event.name_index & kScopedNameFlag) == 0) {
      event.name_index = find_or_map_index(numbers.names, event.name_index, kUnmappedIndex,
                                           [&](auto number) { return add_name(tables, number); });
    } else {
      event.name_index = find_or_map_index(numbers.scoped_names, event.name_index & ~kScopedNameFlag, kUnmappedIndex,
                                           [&](auto number) { return add_scoped_name(tables, number); });
    }
  }
}

std::uint32_t TableMerge::add_name(const EventTables& tables, std::uint32_t number) {
  const std::string_view text = tables.names.text(number);
  const std::uint32_t known = names_.intern(kPlainNameTag + std::string(text));
  if (known == trace_.names.size()) trace_.names.push_back({.text = to_valid_utf8(text)});
  return known;
}

std::uint32_t TableMerge::add_scoped_name(const EventTables& tables, std::uint32_t number) {
  const auto key = EventTables::load_key<ScopedNameKey>(tables.scoped_names, number);
  const std::string_view hierarchy_and_shapes = tables.scoped_names.text(number).substr(sizeof key);
  const std::string_view hierarchy = hierarchy_and_shapes.substr(0, key.hierarchy_size);
  const std::string_view shapes_and_types = hierarchy_and_shapes.substr(key.hierarchy_size);
  const std::string tensors = scopes::parse_kineto_tensors(shapes_and_types.substr(0, key.shapes_size),
                                                           shapes_and_types.substr(key.shapes_size));
  if (hierarchy.empty() && tensors.empty()) return add_name(tables, key.name);
  const std::string_view text = tables.names.text(key.name);
  std::string whole = kScopedNameTag + std::to_string(text.size()) + " " + std::to_string(hierarchy.size()) + " ";
  whole.append(text).append(hierarchy).append(tensors);
  const std::uint32_t known = names_.intern(whole);
  if (known < trace_.names.size()) return known;
  TraceName& added = trace_.names.emplace_back(TraceName{.text = to_valid_utf8(text)});
  added.scope.module = to_valid_utf8(module_of_hierarchy(hierarchy));
  if (!added.scope.module.empty()) added.scope.op = added.text;
  added.scope.tensors = tensors;
  return known;
}

// A thread identified by a name gets a negative number of its own, which is never an id of the operating system.
std::uint32_t TableMerge::add_thread(const EventTables& tables, std::uint32_t number) {
  ThreadKey key = EventTables::load_key<ThreadKey>(tables.threads, number);
  const std::string_view process_text = tables.track_texts.text(key.process_text);
  const std::string_view thread_text = tables.track_texts.text(key.thread_text);
  const auto intern_text_as_id = [&](std::string_view id_text) {
    return -1 - std::int64_t{track_texts_.intern(id_text)};
  };
  if (!process_text.empty()) key.process = intern_text_as_id(process_text);
  if (!thread_text.empty()) key.thread = intern_text_as_id(thread_text);
  key.process_text = key.thread_text = 0;
  const std::uint32_t known = EventTables::intern(threads_, key);
  if (known < trace_.threads.size()) return known;
  trace_.threads.push_back({key.process, key.thread, to_valid_utf8(thread_text)});
  return known;
}

std::uint32_t TableMerge::add_kernel_class(const EventTables& tables, std::uint32_t number) {
  KernelClassKey key = EventTables::load_key<KernelClassKey>(tables.kernel_classes, number);
  key.name_number = kernel_names_.intern(tables.kernel_names.text(key.name_number));
  const std::uint32_t known = EventTables::intern(kernel_classes_, key);
  if (known < trace_.kernel_classes.size()) return known;
  trace_.kernel_classes.push_back({.id = known,
                                   .kind = static_cast<KernelKind>(key.kernel_kind),
                                   .name = to_valid_utf8(kernel_names_.text(key.name_number)),
                                   .grid = key.grid_size,
                                   .block = key.block_size});
  return known;
}

std::uint32_t TableMerge::add_queue(const EventTables& tables, std::uint32_t number) {
  const QueueKey key = EventTables::load_key<QueueKey>(tables.kernel_queues, number);
  const std::uint32_t known = EventTables::intern(kernel_queues_, key);
  if (known < trace_.kernel_queues.size()) return known;
  trace_.kernel_queues.push_back({.id = known, .ordinal = key.device, .context = key.context, .stream = key.stream});
  return known;
}

std::uint32_t TableMerge::add_byte_count(const EventTables& tables, std::uint32_t number) {
  const auto size = EventTables::load_key<std::uint64_t>(tables.byte_counts, number);
  const std::uint32_t known = EventTables::intern(byte_counts_, size);
  if (known == trace_.byte_counts.size()) trace_.byte_counts.push_back(size);
  return known;
}

void TableMerge::set_thread_names() {
  for (std::size_t thread = 0; thread < tables_.size(); ++thread) {
    for (const auto& [number, name] : tables_[thread].thread_names) {
      const ThreadKey key = EventTables::load_key<ThreadKey>(tables_[thread].threads, number);
      for (TraceThread& known : trace_.threads) {
        const bool is_same_thread = known.process == key.process && known.thread == key.thread;
        if (is_same_thread && key.process_text == 0 && key.thread_text == 0) known.name = to_valid_utf8(name);
      }
    }
  }
}

}  // namespace joulemap::ingest::kineto
