// SPDX-License-Identifier: Apache-2.0
//
// Entry point for the CUDA driver, which loads this library (CUDA_INJECTION64_PATH) when the program first uses a GPU.
#pragma once

namespace joulemap::capture {

// Opens CUPTI and connects its records to this process's Capture, once. Later calls, and calls in processes that are
// not recorded, return at once. Errors become diagnostics of the recording. In short:
//
//   static cupti::KernelLogSink sink(capture.kernels());
//   Result<cupti::CuptiApi> api = cupti::CuptiApi::open();
//   auto* session = new cupti::CuptiSession(*std::move(api), sink, {&scope_of_this_thread, &current_step_serial});
//   Status started = session->start();      // then set_tracing, poll, finish (cupti/cupti_session.h)
void start_cuda_capture() noexcept;

// Returns whether the program has loaded the CUDA driver (libcuda.so.1).
bool is_cuda_loaded() noexcept;

// Called when the process leaves a recording: start_cuda_capture works again for the next recording.
void allow_cuda_capture_restart() noexcept;

// Called in the child of a fork. start_cuda_capture works there unless the parent had opened CUPTI, which does not
// survive a fork: then start_cuda_capture does nothing.
void forget_cuda_capture_in_child() noexcept;

}  // namespace joulemap::capture
