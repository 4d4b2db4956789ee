// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/scoped_signal_block.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kStepNamePrefix =
    "ProfilerStep#";  // PyTorch's name of a step, which scope_assignment/ recognizes

}  // namespace

XPlaneAssembly::XPlaneAssembly(TraceBuilder& builder, std::vector<XPlaneEventConverter>& readers)
    : builder_(builder), readers_(readers), index_maps_(readers.size()) {}

void XPlaneAssembly::add(std::size_t number, std::size_t reader, XSegmentEvents events, Diagnostics damage) {
  if (number >= segments_.size()) segments_.resize(number + 1);
  const Trace& known = readers_[reader].builder().trace();
  const TableSizes sizes{known.names.size(), known.kernel_classes.size(), known.kernel_queues.size(),
                         known.byte_counts.size()};
  segments_[number] = {reader, sizes, std::move(events), std::move(damage)};
}

// Adds the entries that the segment's reader first saw in this segment to the trace, and maps their indices.
void XPlaneAssembly::map_new_entries(const Segment& segment) {
  const Trace& known = readers_[segment.reader].builder().trace();
  IndexMaps& numbers = index_maps_[segment.reader];
  while (numbers.names.size() < segment.table_sizes.names) {
    const TraceName& name = known.names[numbers.names.size()];
    numbers.names.push_back(builder_.intern_name(name.text, name.scope));
  }
  while (numbers.classes.size() < segment.table_sizes.classes) {
    const KernelClass& some = known.kernel_classes[numbers.classes.size()];
    numbers.classes.push_back(builder_.intern_kernel_class(some.kind, some.name, some.grid, some.block));
  }
  while (numbers.queues.size() < segment.table_sizes.queues) {
    numbers.queues.push_back(builder_.intern_queue(known.kernel_queues[numbers.queues.size()]));
  }
  while (numbers.bytes.size() < segment.table_sizes.bytes) {
    numbers.bytes.push_back(builder_.intern_byte_count(known.byte_counts[numbers.bytes.size()]));
  }
}

void XPlaneAssembly::remap_indices(TraceEvent& event, const IndexMaps& numbers) const {
  if (!is_on_gpu(event.kind)) {
    event.name_index = numbers.names[event.name_index];
    return;
  }
  event.name_index = numbers.classes[event.name_index];
  event.track_index = numbers.queues[event.track_index];
  event.detail_index = numbers.bytes[event.detail_index];
  if (event.external_id > 0) event.external_id = numbers.names[event.external_id - 1] + 1;
}

void XPlaneAssembly::remap_event_indices(std::size_t first, std::size_t stride) {
  for (std::size_t i = first; i < segments_.size(); i += stride) {
    const IndexMaps& numbers = index_maps_[segments_[i].reader];
    for (std::vector<TraceEvent>& block : segments_[i].events.blocks) {
      for (TraceEvent& event : block) remap_indices(event, numbers);
    }
  }
}

Diagnostics XPlaneAssembly::finish(std::size_t threads) {
  for (const Segment& segment : segments_) map_new_entries(segment);
  std::vector<std::thread> workers;
  {
    const ScopedSignalBlock signal_block;
    for (std::size_t i = 1; i < threads; ++i) workers.emplace_back([=, this] { remap_event_indices(i, threads); });
  }
  remap_event_indices(0, threads);
  for (std::thread& worker : workers) worker.join();

  Diagnostics damage;
  XSegmentEvents rest;  // begun, operation_ends and graph_kernels of all segments
  for (Segment& segment : segments_) {
    const IndexMaps& numbers = index_maps_[segment.reader];
    damage.add_all(segment.damage);
    builder_.add_event_blocks(std::move(segment.events.blocks));
    for (XSegmentEvents::OperationBegin begun : segment.events.open_operations) {
      begun.name = numbers.names[begun.name];
      rest.open_operations.push_back(begun);
    }
    rest.operation_ends.insert(rest.operation_ends.end(), segment.events.operation_ends.begin(),
                               segment.events.operation_ends.end());
    rest.steps.insert(rest.steps.end(), segment.events.steps.begin(), segment.events.steps.end());
    for (GraphKernel& kernel : segment.events.graph_kernels) {
      remap_indices(kernel.kernel_event, numbers);
      rest.graph_kernels.push_back(kernel);
    }
  }
  segments_.clear();
  for (XPlaneEventConverter& reader : readers_) builder_.merge_event_counts(reader.builder());
  add_cross_thread_ends(rest);
  add_graph_kernels(std::move(rest.graph_kernels));
  add_steps(std::move(rest.steps));
  return damage;
}

void XPlaneAssembly::add_steps(std::vector<XStep> candidates) {
  const XSteps found = select_profile_steps(std::move(candidates));
  for (const XStep& step : found.steps) {
    builder_.add_event({.start_ns = step.start_ns,
                        .duration_ns = std::max<std::int64_t>(step.end_ns - step.start_ns, 0),
                        .name_index = builder_.intern_name(fmt::format("{}{}", kStepNamePrefix, *step.number)),
                        .track_index = step.track,
                        .kind = EventKind::annotation});
  }
  builder_.trace().read_event_count -= found.steps.size();  // their events were counted when they were read
  builder_.trace().are_steps_inferred = found.are_inferred;
}

// For each operation that ended on another thread than it began, adds the rest of its time on the thread that ended it.
void XPlaneAssembly::add_cross_thread_ends(const XSegmentEvents& events) {
  std::unordered_map<std::int64_t, OperationBegin> begun;
  for (const XSegmentEvents::OperationBegin& some : events.open_operations)
    begun.insert_or_assign(some.id, OperationBegin{some.end_ns, some.name});
  for (const XSegmentEvents::OperationEnd& end : events.operation_ends) {
    const auto found = begun.find(end.id);
    if (found == begun.end() || found->second.end_ns >= end.end_ns) continue;
    const auto& [end_ns, name] = found->second;
    builder_.add_event(
        {.start_ns = end_ns, .duration_ns = end.end_ns - end_ns, .name_index = name, .track_index = end.track});
  }
}

void XPlaneAssembly::add_graph_kernels(std::vector<GraphKernel> kernels) {
  if (kernels.empty()) return;
  XPlaneOperations& operations = readers_.front().operations();  // any reader: each has all programs
  const std::uint64_t unknown = assign_graph_operations(kernels, operations);
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    names.push_back(builder_.intern_name(operations[i].name, operations[i].scope));
  }
  for (GraphKernel& kernel : kernels) {
    if (kernel.operation_index) kernel.kernel_event.external_id = names[*kernel.operation_index] + 1;
    builder_.add_event(kernel.kernel_event);
  }
  if (unknown == 0) return;
  builder_.trace().diagnostics.add({"graph_kernels_by_name", unknown,
                                    "xplane: kernels of CUDA graphs that do not match their program are identified by "
                                    "name only: layers that share a kernel cannot be distinguished",
                                    "profile with XLA_FLAGS=--xla_gpu_enable_command_buffer= (no graphs)"});
}

}  // namespace joulemap::ingest
