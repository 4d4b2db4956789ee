// SPDX-License-Identifier: Apache-2.0
//
// KernelSink: receiver of CUPTI's callbacks and records. KernelLogSink forwards them to the process's KernelLog and
// MarkLog; tests store them. Threads of the program, inside CUDA calls, call on_launch, on_synchronization,
// on_graph_node and on_graph_node_copied. CUPTI's threads, and those that poll, flush or finish the session, call the
// rest.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "capture/kernel_log.h"
#include "capture/mark_log.h"

namespace joulemap::capture::cupti {

class KernelSink {
 public:
  virtual ~KernelSink() = default;
  virtual void on_launch(std::uint32_t correlation, std::uint32_t scope, std::uint32_t step) noexcept = 0;
  // The calling thread, in this scope, begins to wait for the GPU (begins) or has stopped waiting.
  virtual void on_synchronization(std::uint32_t scope, bool begins) = 0;
  virtual void on_graph_node(std::uint64_t node, std::uint32_t scope) = 0;
  virtual void on_graph_node_copied(std::uint64_t original_node, std::uint64_t copied_node) = 0;
  virtual void set_device(std::uint32_t ordinal, std::string uuid) = 0;  // before the first kernel of that device
  virtual void on_kernel(const KernelActivityRecord& kernel_record) = 0;
  // Kernels of this interval are lost. until_ns is INT64_MAX while the loss continues; then a second call follows.
  virtual void on_records_lost(std::int64_t since_ns, std::int64_t until_ns) = 0;
};

class KernelLogSink final : public KernelSink {
 public:
  // `marks` (may be null) receives the intervals without kernel records.
  explicit KernelLogSink(KernelLog& log, MarkLog* marks = nullptr) : kernel_log_(log), mark_log_(marks) {}

  void on_launch(std::uint32_t correlation, std::uint32_t scope, std::uint32_t step) noexcept override {
    kernel_log_.on_launch(correlation, scope, step, monotonic_ns());
  }
  void on_synchronization(std::uint32_t scope, bool begins) override {
    kernel_log_.on_synchronization(scope, begins, monotonic_ns());
  }
  void on_graph_node(std::uint64_t node, std::uint32_t scope) override { kernel_log_.on_graph_node(node, scope); }
  void on_graph_node_copied(std::uint64_t original_node, std::uint64_t copied_node) override {
    kernel_log_.on_graph_node_copied(original_node, copied_node);
  }
  void set_device(std::uint32_t ordinal, std::string uuid) override {
    kernel_log_.set_device(ordinal, std::move(uuid));
  }
  void on_kernel(const KernelActivityRecord& kernel_record) override { kernel_log_.on_kernel(kernel_record); }
  void on_records_lost(std::int64_t since_ns, std::int64_t until_ns) override {
    kernel_log_.on_records_lost(since_ns, until_ns);
    if (mark_log_ == nullptr || until_ns <= since_ns || until_ns == INT64_MAX) return;
    mark_log_->add_mark_at(since_ns, MarkKind::kernels_lost, static_cast<std::uint64_t>(until_ns - since_ns), {});
  }

 private:
  KernelLog& kernel_log_;
  MarkLog* mark_log_;
};

}  // namespace joulemap::capture::cupti
