// SPDX-License-Identifier: Apache-2.0
//
// TraceBuilder: fills a Trace; used by the format readers. Stores repeated data once and events in blocks. Drops
// invalid events (negative duration, overflowing time) and counts them by reason. Used by one thread; times are
// nanoseconds.
//
//   TraceBuilder builder("xplane");
//   const std::uint32_t name = builder.intern_name("MatMul");
//   builder.add_event({.start_ns = ..., .name_index = name, .track_index = builder.intern_thread(pid, tid)});
//   builder.add_dropped_events("without a name");
//   return std::move(builder).finish();
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "ingest/trace.h"

namespace joulemap::ingest {

class TraceBuilder {
 public:
  explicit TraceBuilder(std::string_view format, TraceClock clock = TraceClock::unix_time);

  // Access to fields that describe the whole trace: clock, process, environment.
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

  // Return indices in the tables of the trace; equal arguments give the same index.
  std::uint32_t intern_name(std::string_view text, const scopes::OpScope& scope = {});
  std::uint32_t intern_thread(std::int64_t process, std::int64_t thread);
  std::uint32_t intern_kernel_class(KernelKind kind, std::string_view name,
                                    const std::array<std::uint32_t, 3>& grid = {},
                                    const std::array<std::uint32_t, 3>& block = {});
  std::uint32_t intern_queue(const KernelQueue& queue);  // the stored queue's id is this index
  std::uint32_t intern_byte_count(std::uint64_t count);

  // Counts the event as read. Returns false, and counts it as dropped, if its times are invalid.
  bool add_event(const TraceEvent& event);
  // Counts valid events that are not part of the Trace: metadata, waiting.
  void add_skipped_events(std::uint64_t count = 1) { trace_.read_event_count += count; }
  // Counts events that could not be parsed, by reason, such as "without a name". They also count as read.
  void add_dropped_events(std::string_view reason, std::uint64_t count = 1);
  // Adds a diagnostic other than those of dropped events, which finish() adds.
  void add_diagnostic(std::string_view code, std::string message, std::string remedy = {});

  // Merge the results of other builders for parts of the same trace: their events, already renumbered to this builder's
  // indices, and their counts of read and dropped events.
  void add_event_blocks(std::vector<std::vector<TraceEvent>> blocks);
  void merge_event_counts(const TraceBuilder& other_builder);
  // Begins a block with memory for this many events; does nothing for 0.
  void begin_block(std::size_t events);

  // Adds `offset_ns` to the start of every event, for clocks that are known only at the end. Drops events that overflow.
  void shift_times(std::int64_t offset_ns);

  Trace finish() &&;

 private:
  // Text: std::string, or std::string_view for lookup without a copy, which every GPU event needs.
  template <class Text>
  struct KernelClassKey {
    KernelKind kind = KernelKind::kernel;
    Text name;
    std::array<std::uint32_t, 3> grid{};
    std::array<std::uint32_t, 3> block{};
  };
  struct NameOrClassHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    template <class Text>
    std::size_t operator()(const KernelClassKey<Text>& key) const {
      std::size_t sum = (*this)(std::string_view(key.name)) + static_cast<std::size_t>(key.kind);
      for (const auto& size : {key.grid, key.block}) {
        for (const std::uint32_t count : size) sum = sum * 31 + count;
      }
      return sum;
    }
  };
  struct KernelClassEqual {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const KernelClassKey<A>& a, const KernelClassKey<B>& b) const {
      return a.kind == b.kind && a.grid == b.grid && a.block == b.block &&
             std::string_view(a.name) == std::string_view(b.name);
    }
  };
  using QueueKey = std::tuple<std::string, std::uint32_t, std::uint32_t, std::uint32_t>;

  Trace trace_;
  std::unordered_map<std::string, std::uint32_t, NameOrClassHash, std::equal_to<>> plain_name_indices_;
  std::map<std::pair<std::string, scopes::OpScope>, std::uint32_t> scoped_name_indices_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> thread_indices_;
  std::unordered_map<KernelClassKey<std::string>, std::uint32_t, NameOrClassHash, KernelClassEqual>
      kernel_class_indices_;
  std::map<QueueKey, std::uint32_t> queue_indices_;
  std::unordered_map<std::uint64_t, std::uint32_t> byte_count_indices_;
  std::map<std::string, std::uint64_t, std::less<>> drop_counts_by_reason_;
};

}  // namespace joulemap::ingest
