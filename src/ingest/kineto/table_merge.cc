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
std::uint32_t find_or_map_index(std::vector<std::uint32_t>& numbers, std::uint32_t number, std::uint32_t unmapped_index,
                                const Add& add) {
  std::uint32_t& mapped_index = numbers[number];
  if (mapped_index == unmapped_index) mapped_index = add(number);
  return mapped_index;
}

}  // namespace

std::string module_of_hierarchy(std::string_view hierarchy) {
  std::string path;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t position = 0; position <= hierarchy.size(); ++position) {
    if (position < hierarchy.size() && hierarchy[position] == '(') ++depth;
    if (position < hierarchy.size() && hierarchy[position] == ')') --depth;
    if (position < hierarchy.size() && (hierarchy[position] != '.' || depth > 0)) continue;
    const std::string_view hierarchy_component = hierarchy.substr(begin, position - begin);
    begin = position + 1;
    const std::size_t bracket = hierarchy_component.find('(');
    const std::string_view name = hierarchy_component.substr(0, bracket);
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
  const std::uint32_t name_index = names_.intern(kPlainNameTag + std::string(text));
  if (name_index == trace_.names.size()) trace_.names.push_back({.text = to_valid_utf8(text)});
  return name_index;
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
  std::string scoped_name_text =
      kScopedNameTag + std::to_string(text.size()) + " " + std::to_string(hierarchy.size()) + " ";
  scoped_name_text.append(text).append(hierarchy).append(tensors);
  const std::uint32_t name_index = names_.intern(scoped_name_text);
  if (name_index < trace_.names.size()) return name_index;
  TraceName& trace_name = trace_.names.emplace_back(TraceName{.text = to_valid_utf8(text)});
  trace_name.scope.module = to_valid_utf8(module_of_hierarchy(hierarchy));
  if (!trace_name.scope.module.empty()) trace_name.scope.op = trace_name.text;
  trace_name.scope.tensors = tensors;
  return name_index;
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
  const std::uint32_t thread_index = EventTables::intern(threads_, key);
  if (thread_index < trace_.threads.size()) return thread_index;
  trace_.threads.push_back({key.process, key.thread, to_valid_utf8(thread_text)});
  return thread_index;
}

std::uint32_t TableMerge::add_kernel_class(const EventTables& tables, std::uint32_t number) {
  KernelClassKey key = EventTables::load_key<KernelClassKey>(tables.kernel_classes, number);
  key.name_number = kernel_names_.intern(tables.kernel_names.text(key.name_number));
  const std::uint32_t kernel_class_index = EventTables::intern(kernel_classes_, key);
  if (kernel_class_index < trace_.kernel_classes.size()) return kernel_class_index;
  trace_.kernel_classes.push_back({.id = kernel_class_index,
                                   .kind = static_cast<KernelKind>(key.kernel_kind),
                                   .name = to_valid_utf8(kernel_names_.text(key.name_number)),
                                   .grid = key.grid_size,
                                   .block = key.block_size});
  return kernel_class_index;
}

std::uint32_t TableMerge::add_queue(const EventTables& tables, std::uint32_t number) {
  const QueueKey key = EventTables::load_key<QueueKey>(tables.kernel_queues, number);
  const std::uint32_t queue_index = EventTables::intern(kernel_queues_, key);
  if (queue_index < trace_.kernel_queues.size()) return queue_index;
  trace_.kernel_queues.push_back(
      {.id = queue_index, .ordinal = key.device, .context = key.context, .stream = key.stream});
  return queue_index;
}

std::uint32_t TableMerge::add_byte_count(const EventTables& tables, std::uint32_t number) {
  const auto size = EventTables::load_key<std::uint64_t>(tables.byte_counts, number);
  const std::uint32_t byte_count_index = EventTables::intern(byte_counts_, size);
  if (byte_count_index == trace_.byte_counts.size()) trace_.byte_counts.push_back(size);
  return byte_count_index;
}

void TableMerge::set_thread_names() {
  for (std::size_t thread = 0; thread < tables_.size(); ++thread) {
    for (const auto& [number, name] : tables_[thread].thread_names) {
      const ThreadKey key = EventTables::load_key<ThreadKey>(tables_[thread].threads, number);
      for (TraceThread& trace_thread : trace_.threads) {
        const bool is_same_thread = trace_thread.process == key.process && trace_thread.thread == key.thread;
        if (is_same_thread && key.process_text == 0 && key.thread_text == 0) trace_thread.name = to_valid_utf8(name);
      }
    }
  }
}

}  // namespace joulemap::ingest::kineto
