// SPDX-License-Identifier: Apache-2.0
//
// The part of Capture that manages the kernel source.
#include "base/clock.h"
#include "capture/capture.h"

namespace joulemap::capture {

void Capture::set_kernel_source(std::unique_ptr<KernelSource> source) {
  reads_cpu_at_edges_.store(false);
  owned_kernel_source_ = std::move(source);
  owned_kernel_source_->allow_detach(detach_is_allowed_.load());
  kernel_source_.store(owned_kernel_source_.get());
  kernels_.set_tracing(monotonic_ns(), WaitTracing::on, current_scope());
}

// `scope`: the one that the host is in now.
void Capture::trace_kernels(WaitTracing tracing, std::int64_t time_ns, std::uint32_t scope) {
  KernelSource* const source = kernel_source_.load();
  if (source == nullptr) return;
  kernels_.set_tracing(time_ns, tracing, scope);
  source->set_tracing(tracing != WaitTracing::off);
}

void Capture::on_other_profiler(bool running) {
  if (running) {
    marks_.add_diagnostic({"profiler_in_process", 1,
                           "another profiler ran in this process: it slows the program and takes the GPU records",
                           "record without it"});
  }
  if (KernelSource* const source = kernel_source_.load()) source->on_other_profiler(running, monotonic_ns());
}

void Capture::allow_detach(bool allowed) {
  detach_is_allowed_.store(allowed);
  if (KernelSource* const source = kernel_source_.load()) source->allow_detach(allowed);
}

void Capture::finish_kernel_source() {
  KernelSource* const source = kernel_source_.load();
  if (source == nullptr || kernel_source_is_finished_.exchange(true)) return;
  Diagnostics diagnostics;
  source->finish(diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list()) marks_.add_diagnostic(diagnostic);
}

}  // namespace joulemap::capture
