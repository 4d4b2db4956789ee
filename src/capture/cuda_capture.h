// SPDX-License-Identifier: Apache-2.0
//
// Entry point for the CUDA driver, which loads this library (CUDA_INJECTION64_PATH) when the program first uses a GPU.
#pragma once

namespace joulemap::capture {

// Opens CUPTI and connects its records to this process's Capture, once. Later calls, and calls in processes that are
// not recorded, return at once. Errors become diagnostics of the recording.
//
//   static cupti::KernelLogSink sink(capture.kernels());
//   Result<cupti::CuptiApi> api = cupti::CuptiApi::open();
//   auto* session = new cupti::CuptiSession(*std::move(api), sink, {&scope_of_this_thread, &current_step_serial});
//   Status started = session->start();      // then poll, listen, on_other_profiler, finish (cupti/cupti_session.h)
void start_cuda_capture() noexcept;

// Returns whether the program has loaded the driver's library.
bool is_cuda_loaded() noexcept;

// Called when the capture has ended: allows the next one to start.
void allow_cuda_restart() noexcept;

// Called in the child of a fork. The child may use CUDA unless its parent did; in that case CUPTI is not touched.
void forget_cuda_in_child() noexcept;

}  // namespace joulemap::capture
