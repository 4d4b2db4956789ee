// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_op_times.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ingest/xplane/xplane_operations.h"
#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {
namespace {

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
constexpr std::int64_t kLongest_ns = 3'600 * std::int64_t{1'000'000'000};  // limit of time added on another thread

struct TimedOperation {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t scope = 0;
  std::int64_t producer_id = 0;  // id that the event which ends the operation has as its consumer; 0: none
};

class OpTimeVisitor : public XPlaneVisitor {
 public:
  explicit OpTimeVisitor(const GraphNames& names) : plane_operations_(names) {}

  void on_program(std::string_view name, std::string_view hlo_proto) override {
    plane_operations_.add_program(name, hlo_proto);
  }
  bool on_plane(const XPlane& plane) override { return plane.kind == XPlaneKind::host; }

  bool on_line(const XLine& line) override {
    sum_line_self_times();
    is_input_pipeline_ = XPlaneOperations::is_input_pipeline(line.name);
    return true;
  }

  void on_event(const XEvent& event) override {
    if (event.name.starts_with("end: ")) {
      if (const auto consumer = event.find_integer(XStatName::consumer))
        end_by_producer_ns_[*consumer] = event_end_ns(event);
      return;
    }
    const std::optional<std::uint32_t> operation =
        plane_operations_.find_or_add_host_operation(event, is_input_pipeline_);
    if (!operation) return;
    operations_.push_back({event.begin_ns, event_end_ns(event), find_or_add_op_time_index(*operation),
                           event.find_integer(XStatName::producer).value_or(0)});
  }

  std::vector<OpTime> finish() {
    sum_line_self_times();
    for (const auto& [producer, started_operation] : started_operations_) {
      const auto end = end_by_producer_ns_.find(producer);
      std::int64_t late_ns = 0;
      if (end == end_by_producer_ns_.end() || __builtin_sub_overflow(end->second, started_operation.end_ns, &late_ns))
        continue;
      if (late_ns > 0 && late_ns < kLongest_ns) time_by_scope_[started_operation.scope].time_ns += late_ns;
    }
    return std::move(time_by_scope_);
  }

 private:
  static std::int64_t event_end_ns(const XEvent& event) {
    std::int64_t end_ns = 0;
    const bool overflows =
        __builtin_add_overflow(event.begin_ns, event.duration_ps / kPicosecondsPerNanosecond, &end_ns);
    return overflows ? event.begin_ns : end_ns;
  }

  // Returns the index in time_by_scope_ of an operation; operations in the same scope have one entry.
  std::uint32_t find_or_add_op_time_index(std::uint32_t operation) {
    while (scope_index_by_operation_.size() < plane_operations_.size()) {
      const auto new_scope_index = static_cast<std::uint32_t>(time_by_scope_.size());
      const scopes::OpScope& scope =
          plane_operations_[static_cast<std::uint32_t>(scope_index_by_operation_.size())].scope;
      const auto [slot, is_new] = index_by_scope_.try_emplace(scope, new_scope_index);
      if (is_new) time_by_scope_.push_back({scope});
      scope_index_by_operation_.push_back(slot->second);
    }
    return scope_index_by_operation_[operation];
  }

  // Events of a thread nest: subtracts the time of nested operations from the enclosing one.
  void sum_line_self_times() {
    std::sort(operations_.begin(), operations_.end(), [](const TimedOperation& a, const TimedOperation& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    std::vector<const TimedOperation*> enclosing_operations;
    for (const TimedOperation& operation : operations_) {
      const std::int64_t time_ns = operation.end_ns - operation.begin_ns;
      while (!enclosing_operations.empty() && enclosing_operations.back()->end_ns < operation.end_ns)
        enclosing_operations.pop_back();
      if (!enclosing_operations.empty()) time_by_scope_[enclosing_operations.back()->scope].time_ns -= time_ns;
      enclosing_operations.push_back(&operation);
      time_by_scope_[operation.scope].time_ns += time_ns;
      ++time_by_scope_[operation.scope].count;
      if (operation.producer_id != 0) started_operations_.insert_or_assign(operation.producer_id, operation);
    }
    operations_.clear();
  }

  XPlaneOperations plane_operations_;
  bool is_input_pipeline_ = false;          // the current thread belongs to tf.data
  std::vector<TimedOperation> operations_;  // of the current line
  std::unordered_map<std::int64_t, TimedOperation> started_operations_;
  std::unordered_map<std::int64_t, std::int64_t> end_by_producer_ns_;
  std::vector<std::uint32_t> scope_index_by_operation_;  // by number in plane_operations_: index in time_by_scope_
  std::map<scopes::OpScope, std::uint32_t> index_by_scope_;
  std::vector<OpTime> time_by_scope_;
};

}  // namespace

OpTimes read_xplane_op_times(std::string_view bytes, const GraphNames& names) {
  OpTimeVisitor op_time_visitor(names);
  OpTimes result;
  result.diagnostics = read_xplane(bytes, op_time_visitor);
  result.op_times = op_time_visitor.finish();
  std::erase_if(result.op_times, [](const OpTime& share) { return share.time_ns <= 0; });
  return result;
}

}  // namespace joulemap::ingest
