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

struct Operation {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t scope = 0;
  std::int64_t producer = 0;  // id that the event which ends the operation has as its consumer; 0: none
};

class OpTimeVisitor : public XPlaneVisitor {
 public:
  explicit OpTimeVisitor(const GraphNames& names) : known_(names) {}

  void on_program(std::string_view name, std::string_view hlo_proto) override { known_.add_program(name, hlo_proto); }
  bool on_plane(const XPlane& plane) override { return plane.kind == XPlaneKind::host; }

  bool on_line(const XLine& line) override {
    end_line();
    feeds_ = XPlaneOperations::is_input_pipeline(line.name);
    return true;
  }

  void on_event(const XEvent& event) override {
    if (event.name.starts_with("end: ")) {
      if (const auto consumer = event.integer(XStatName::consumer)) ends_ns_[*consumer] = end_of(event);
      return;
    }
    const std::optional<std::uint32_t> operation = known_.operation_of_host_event(event, feeds_);
    if (!operation) return;
    operations_.push_back(
        {event.begin_ns, end_of(event), share_of(*operation), event.integer(XStatName::producer).value_or(0)});
  }

  std::vector<OpTime> finish() {
    end_line();
    for (const auto& [producer, started] : started_) {
      const auto end = ends_ns_.find(producer);
      std::int64_t late_ns = 0;
      if (end == ends_ns_.end() || __builtin_sub_overflow(end->second, started.end_ns, &late_ns)) continue;
      if (late_ns > 0 && late_ns < kLongest_ns) shares_[started.scope].time_ns += late_ns;
    }
    return std::move(shares_);
  }

 private:
  static std::int64_t end_of(const XEvent& event) {
    std::int64_t end_ns = 0;
    const bool overflows =
        __builtin_add_overflow(event.begin_ns, event.duration_ps / kPicosecondsPerNanosecond, &end_ns);
    return overflows ? event.begin_ns : end_ns;
  }

  // Returns the index in shares_ of an operation; operations in the same scope have one entry.
  std::uint32_t share_of(std::uint32_t operation) {
    while (numbers_.size() < known_.size()) {
      const auto next = static_cast<std::uint32_t>(shares_.size());
      const scopes::OpScope& scope = known_[static_cast<std::uint32_t>(numbers_.size())].scope;
      const auto [slot, is_new] = by_scope_.try_emplace(scope, next);
      if (is_new) shares_.push_back({scope});
      numbers_.push_back(slot->second);
    }
    return numbers_[operation];
  }

  // Events of a thread nest: subtracts the time of nested operations from the enclosing one.
  void end_line() {
    std::sort(operations_.begin(), operations_.end(), [](const Operation& a, const Operation& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    std::vector<const Operation*> around;
    for (const Operation& operation : operations_) {
      const std::int64_t time_ns = operation.end_ns - operation.begin_ns;
      while (!around.empty() && around.back()->end_ns < operation.end_ns) around.pop_back();
      if (!around.empty()) shares_[around.back()->scope].time_ns -= time_ns;
      around.push_back(&operation);
      shares_[operation.scope].time_ns += time_ns;
      ++shares_[operation.scope].count;
      if (operation.producer != 0) started_.insert_or_assign(operation.producer, operation);
    }
    operations_.clear();
  }

  XPlaneOperations known_;
  bool feeds_ = false;                 // the current thread belongs to tf.data
  std::vector<Operation> operations_;  // of the current line
  std::unordered_map<std::int64_t, Operation> started_;
  std::unordered_map<std::int64_t, std::int64_t> ends_ns_;
  std::vector<std::uint32_t> numbers_;  // by number in known_: index in shares_
  std::map<scopes::OpScope, std::uint32_t> by_scope_;
  std::vector<OpTime> shares_;
};

}  // namespace

OpTimes read_xplane_op_times(std::string_view bytes, const GraphNames& names) {
  OpTimeVisitor sharing(names);
  OpTimes result;
  result.diagnostics = read_xplane(bytes, sharing);
  result.op_times = sharing.finish();
  std::erase_if(result.op_times, [](const OpTime& share) { return share.time_ns <= 0; });
  return result;
}

}  // namespace joulemap::ingest
