// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda_capture.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>

#include "base/scoped_signal_block.h"
#include "capture/capture.h"
#include "capture/cupti/cupti_session.h"
#include "capture/cupti/kernel_sink.h"

namespace joulemap::capture {
namespace {

class CuptiRecordSource final : public KernelRecordSource {
 public:
  CuptiRecordSource(cupti::CuptiApi api, Capture& capture);

  Status start() { return session_.start(); }
  void set_tracing(bool is_tracing_enabled) override { session_.set_tracing(is_tracing_enabled); }
  void set_detach_allowed(bool is_detach_allowed) override { session_.allow_detach(is_detach_allowed); }
  void poll_records(std::int64_t now_ns) override { session_.poll(now_ns); }
  std::int64_t kernels_delivered_until_ns(std::int64_t now_ns) const override {
    return session_.delivered_until_ns(now_ns);
  }
  void set_other_profiler_running(bool is_profiler_running, std::int64_t now_ns) override {
    session_.set_other_profiler_running(is_profiler_running, now_ns);
  }
  void abandon_in_child() noexcept override { session_.abandon_in_child(); }
  void finish(Diagnostics& diagnostics) override {
    session_.finish();
    diagnostics.add_all(session_.diagnostics());
  }

 private:
  cupti::KernelLogSink sink_;
  cupti::CuptiSession session_;
};

std::uint32_t current_scope_of_thread() noexcept {
  Capture* const capture = Capture::existing_instance();
  return capture == nullptr ? 0 : capture->scope_for_launches();
}

std::uint32_t current_step_serial() noexcept {
  const Capture* const capture = Capture::existing_instance();
  return capture == nullptr ? 0 : capture->step_serial();
}

CuptiRecordSource::CuptiRecordSource(cupti::CuptiApi api, Capture& capture)
    : sink_(capture.kernel_log(), &capture.mark_log()),
      session_(std::move(api), sink_, {&current_scope_of_thread, &current_step_serial}) {}

constinit std::atomic<bool> has_started_cuda_capture{false};
constinit std::atomic<bool> has_touched_cupti{false};
// CUDA and CUPTI do not survive a fork: a child that inherited them must not touch them.
constinit std::atomic<bool> has_parent_touched_cupti{false};

void finish_record_source_at_exit() {
  if (Capture* const capture = Capture::existing_instance()) capture->finish_record_source();
}

void start_cupti(Capture& capture) {
  has_touched_cupti.store(true);
  const ScopedSignalBlock signal_block;  // CUPTI starts threads
  Result<cupti::CuptiApi> api = cupti::CuptiApi::open();
  if (!api) return capture.mark_log().add_diagnostic({"no_kernels", 1, api.error().message, api.error().remedy});
  auto kernels = std::make_unique<CuptiRecordSource>(std::move(*api), capture);
  if (const Status start_status = kernels->start(); !start_status) {
    // Leaked on purpose: CUPTI's threads may already hold a pointer to it.
    static_cast<void>(kernels.release());
    return capture.mark_log().add_diagnostic(
        {"no_kernels", 1, start_status.error().message, start_status.error().remedy});
  }
  capture.set_record_source(std::move(kernels));
  // Registered after CUPTI's own exit handler, so it runs before that one.
  std::atexit(&finish_record_source_at_exit);
}

}  // namespace

bool is_cuda_loaded() noexcept {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver != nullptr) ::dlclose(driver);
  return driver != nullptr;
}

void allow_cuda_capture_restart() noexcept { has_started_cuda_capture.store(false); }

void forget_cuda_capture_in_child() noexcept {
  if (has_touched_cupti.load()) has_parent_touched_cupti.store(true);
  has_started_cuda_capture.store(false);
}

void start_cuda_capture() noexcept {
  if (has_parent_touched_cupti.load() || has_started_cuda_capture.exchange(true)) return;
  try {
    if (Capture* const capture = Capture::get()) start_cupti(*capture);
  } catch (const std::exception&) {
    // Out of memory or threads: the program goes on without kernel records.
  }
}

}  // namespace joulemap::capture
