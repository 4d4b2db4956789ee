// SPDX-License-Identifier: Apache-2.0
//
// KernelSink: whom CUPTI's news is for. KernelLogSink passes it on to the process's KernelLog; tests keep it. on_launch
// and on_graph_node are called by the threads that launch, the rest by CUPTI's own and by the one that polls.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "capture/kernel_log.h"

namespace joulemap::capture::cupti {

class KernelSink {
 public:
  virtual ~KernelSink() = default;
  virtual void on_launch(std::uint32_t correlation, std::uint32_t place, std::uint32_t step) noexcept = 0;
  virtual void on_graph_node(std::uint64_t node, std::uint32_t place) = 0;
  virtual void on_graph_node_copied(std::uint64_t original, std::uint64_t copy) = 0;
  virtual void set_device(std::uint32_t ordinal, std::string uuid) = 0;  // before the first kernel of that device
  virtual void on_kernel(const KernelFacts& facts) = 0;
};

class KernelLogSink final : public KernelSink {
 public:
  explicit KernelLogSink(KernelLog& log) : log_(log) {}

  void on_launch(std::uint32_t correlation, std::uint32_t place, std::uint32_t step) noexcept override {
    log_.on_launch(correlation, place, step);
  }
  void on_graph_node(std::uint64_t node, std::uint32_t place) override { log_.on_graph_node(node, place); }
  void on_graph_node_copied(std::uint64_t original, std::uint64_t copy) override {
    log_.on_graph_node_copied(original, copy);
  }
  void set_device(std::uint32_t ordinal, std::string uuid) override { log_.set_device(ordinal, std::move(uuid)); }
  void on_kernel(const KernelFacts& facts) override { log_.on_kernel(facts); }

 private:
  KernelLog& log_;
};

}  // namespace joulemap::capture::cupti
