// SPDX-License-Identifier: Apache-2.0
//
// The part of Capture that manages the kernel source.
#include "base/clock.h"
#include "capture/capture.h"

namespace joulemap::capture {

void Capture::set_kernel_source(std::unique_ptr<KernelSource> source) {
  exact_.store(false);
  owned_source_ = std::move(source);
  owned_source_->allow_closing(rest_is_allowed_.load());
  source_.store(owned_source_.get());
}

void Capture::someone_profiles(bool running) {
  if (running) {
    marks_->diagnose({"profiler_in_process", 1,
                      "another profiler ran in this process: it slows the program and takes a GPU's records for itself",
                      "record without it"});
  }
  if (KernelSource* const source = source_.load()) source->someone_profiles(running, monotonic_ns());
}

void Capture::allow_closing(bool allowed) {
  rest_is_allowed_.store(allowed);
  if (KernelSource* const source = source_.load()) source->allow_closing(allowed);
}

void Capture::finish_kernels() {
  KernelSource* const source = source_.load();
  if (source == nullptr || kernels_are_finished_.exchange(true)) return;
  Diagnostics told;
  source->finish(told);
  for (const Diagnostic& diagnostic : told.list()) marks_->diagnose(diagnostic);
}

}  // namespace joulemap::capture
