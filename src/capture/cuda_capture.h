// SPDX-License-Identifier: Apache-2.0
//
// Where CUDA's driver meets the capture: it loads this library (CUDA_INJECTION64_PATH) when the program first uses a GPU.
#pragma once

namespace joulemap::capture {

// Opens CUPTI and ties what the GPU does to this process's Capture. Once; later calls, and processes that are not
// recorded, return at once. What goes wrong becomes a diagnostic of the recording.
//
//   static cupti::KernelLogSink sink(capture.kernels());
//   Result<cupti::CuptiApi> api = cupti::CuptiApi::open();
//   auto* session = new cupti::CuptiSession(*std::move(api), sink, {&place_of_this_thread, &present_step});
//   Status started = session->start();      // then poll, listen, someone_profiles, finish (cupti/cupti_session.h)
void start_cuda_capture() noexcept;

// Whether the driver's library has been loaded by the program.
bool is_cuda_in_process() noexcept;

// The capture has ended: the next one may be started.
void allow_cuda_capture() noexcept;

// In the child of a fork: it may use CUDA itself unless its parent had, and then nothing of CUPTI is touched.
void forget_cuda_in_child() noexcept;

}  // namespace joulemap::capture
