// SPDX-License-Identifier: Apache-2.0
//
// Traces of small programs for tests of scope assignment, and its result.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/scope_assignment/scope_assignment.h"
#include "ingest/trace_builder.h"

namespace joulemap::ingest {

using Path = std::string;  // "train/backward/fc/AddmmBackward0"

// Times are in microseconds.
class Program {
 public:
  TraceBuilder builder{"kineto"};

  TraceEvent event(EventKind kind, std::string_view name, std::int64_t start, std::int64_t length,
                   std::int64_t thread = 1) {
    return {.start_ns = start * 1000,
            .duration_ns = length * 1000,
            .name_index = builder.intern_name(name),
            .track_index = builder.intern_thread(7, thread),
            .kind = kind};
  }
  void add(EventKind kind, std::string_view name, std::int64_t start, std::int64_t length, std::int64_t thread = 1) {
    builder.add_event(event(kind, name, start, length, thread));
  }
  void op(std::string_view name, std::int64_t start, std::int64_t length, std::uint32_t sequence = 0,
          std::int64_t thread = 1) {
    TraceEvent trace_event = event(EventKind::op, name, start, length, thread);
    trace_event.detail_index = sequence;
    builder.add_event(trace_event);
  }
  void node(std::string_view name, std::int64_t start, std::int64_t length, std::uint32_t sequence,
            std::int64_t thread = 1) {
    TraceEvent trace_event =
        event(EventKind::op, "autograd::engine::evaluate_function: " + std::string(name), start, length, thread);
    trace_event.detail_index = sequence;
    trace_event.is_backward = true;
    builder.add_event(trace_event);
  }
  void launch(std::int64_t start, std::uint32_t correlation, std::int64_t thread = 1) {
    TraceEvent trace_event = event(EventKind::api, "cudaLaunchKernel", start, 2, thread);
    trace_event.correlation = correlation;
    builder.add_event(trace_event);
  }
  void kernel(std::string_view name, std::int64_t start, std::int64_t length, std::uint32_t correlation,
              std::uint32_t external_id = 0) {
    builder.add_event({.start_ns = start * 1000,
                       .duration_ns = length * 1000,
                       .name_index = builder.intern_kernel_class(KernelKind::kernel, name),
                       .track_index = builder.intern_queue({.ordinal = 0, .stream = 7}),
                       .correlation = correlation,
                       .external_id = external_id,
                       .kind = EventKind::kernel});
  }
};

struct AssignmentOutcome {
  ScopedTrace scoped_trace;
  std::map<std::uint32_t, Scope> scopes;
  std::map<Path, ScopeTally> threads;
  std::map<Path, std::int64_t> kernel_us;  // by scope
  std::vector<Kernel> kernels;
  std::vector<StepRecord> steps;
  std::int64_t tallied_kernel_ns = 0;

  Path path(std::uint32_t scope) const {
    Path path;
    for (; scope != 0; scope = scopes.at(scope).parent) path = scopes.at(scope).name + (path.empty() ? "" : "/" + path);
    return path;
  }
  std::uint64_t count(const Path& path) const { return threads.contains(path) ? threads.at(path).count : 0; }
  std::int64_t wall_time_us(const Path& path) const {
    return threads.contains(path) ? threads.at(path).wall_ns / 1000 : 0;
  }
};

inline AssignmentOutcome assign_program_scopes(Program& program, const scopes::ModuleNames& modules = {}) {
  Trace trace = std::move(program.builder).finish();
  AssignmentOutcome outcome;
  std::vector<Activity> activities;
  outcome.scoped_trace =
      assign_scopes(trace, modules, [&](Activity activity) { activities.push_back(std::move(activity)); });
  for (const Activity& activity : activities) {
    EXPECT_LE(activity.begin_ns, activity.end_ns);
    for (const Scope& scope : activity.scopes) outcome.scopes[scope.id] = scope;
  }
  for (const Activity& activity : activities) {
    for (const ScopeTally& tally : activity.scope_tallies) {
      ScopeTally& sum = outcome.threads[outcome.path(tally.scope)];
      sum.count += tally.count;
      sum.wall_ns += tally.wall_ns;
      EXPECT_EQ(tally.wall_ns, tally.cpu_ns);
      EXPECT_EQ(tally.count, tally.sampled_count);
    }
    for (const Kernel& kernel : activity.kernels) outcome.kernels.push_back(kernel);
    for (const KernelTally& tally : activity.kernel_tallies) {
      outcome.kernel_us[outcome.path(tally.scope)] += tally.time_ns / 1000;
      outcome.tallied_kernel_ns += tally.time_ns;
    }
    outcome.steps.insert(outcome.steps.end(), activity.steps.begin(), activity.steps.end());
  }
  return outcome;
}

}  // namespace joulemap::ingest
