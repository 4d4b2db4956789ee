// SPDX-License-Identifier: Apache-2.0
//
// A fake libcupti with the few CUDA driver functions it needs, for machines without a GPU. JOULEMAP_CUPTI=<this
// library> makes the capture use it. Built twice: complete, and like CUDA 11.0 (FAKE_CUPTI_OLD), without the newer
// functions.
#include "fake_cupti/fake_cupti.h"

#include "fake_cupti/fake_gpu.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using namespace joulemap::capture::cupti;
using joulemap::fake_cupti::FakeCupti;
using joulemap::fake_cupti::FakeGpu;
using joulemap::fake_cupti::Launch;

// Global state behind a C interface, as in CUPTI. Never destroyed: threads of the tool may call at exit.
FakeGpu& gpu() {
  static auto& state = *new FakeGpu;
  return state;
}

template <class Call>
CuptiResult call_unless_refused(const char* function, Call call) {
  const CuptiResult outcome = gpu().begin_call(function);
  if (outcome == CuptiResult::success) call();
  return outcome;
}

const FakeCupti kFakeCuptiControls = {
    .reset = [](std::uint32_t version) { gpu().reset(version); },
    .launch = [](const Launch& launch) { return gpu().launch(launch); },
    .launch_graph = [] { return gpu().launch_graph(); },
    .end_running_records = [] { gpu().end_running_records(); },
    .capture_graph_node = [] { return gpu().capture_graph_node(); },
    .clone_graph_node = [](std::uint64_t original_node) { return gpu().clone_graph_node(original_node); },
    .set_records_held = [](bool is_enabled) { gpu().set_records_held(is_enabled); },
    .release_records = [](bool is_reversed) { gpu().release_records(is_reversed); },
    .add_unknown_record = [] { gpu().add_unknown_record(); },
    .set_other_subscriber = [](bool is_present) { gpu().set_other_subscriber(is_present); },
    .attach_other_profiler = [](bool sets_clock) { gpu().attach_other_profiler(sets_clock); },
    .detach_other_profiler = [] { gpu().detach_other_profiler(); },
    .return_foreign_buffer = [] { gpu().return_foreign_buffer(); },
    .finalize = [] { gpu().finalize(); },
    .jump_clock = [](std::int64_t offset_ns) { gpu().jump_clock(offset_ns); },
    .set_function_result = [](const char* function, int outcome) { gpu().set_function_result(function, outcome); },
    .set_flush_hang = [](bool is_enabled) { gpu().set_flush_hang(is_enabled); },
    .set_times_damaged = [](bool is_enabled) { gpu().set_times_damaged(is_enabled); },
    .calls = [] { return gpu().call_count(); },
    .is_subscribed = [] { return gpu().is_subscribed(); },
    .is_kind_enabled = [](std::uint32_t kind) { return gpu().is_kind_enabled(kind); },
    .is_callback_enabled = [](const char* function) { return gpu().is_callback_enabled(function); },
};

}  // namespace

EXPORTED const FakeCupti* fake_cupti() { return &kFakeCuptiControls; }

EXPORTED CuptiResult cuptiGetVersion(std::uint32_t* version) {
  return call_unless_refused("cuptiGetVersion", [&] { *version = gpu().version(); });
}

EXPORTED CuptiResult cuptiSubscribe(Subscriber* subscriber, Callback callback, void* user) {
  const CuptiResult outcome = gpu().begin_call("cuptiSubscribe");
  return outcome == CuptiResult::success ? gpu().subscribe(subscriber, callback, user) : outcome;
}

EXPORTED CuptiResult cuptiUnsubscribe(Subscriber subscriber) {
  const CuptiResult outcome = gpu().begin_call("cuptiUnsubscribe");
  return outcome == CuptiResult::success ? gpu().unsubscribe(subscriber) : outcome;
}

EXPORTED CuptiResult cuptiEnableCallback(std::uint32_t is_enabled, Subscriber subscriber, CallbackDomain domain,
                                         std::uint32_t id) {
  const CuptiResult outcome = gpu().begin_call("cuptiEnableCallback");
  return outcome == CuptiResult::success ? gpu().enable_callback(is_enabled != 0, subscriber, domain, id) : outcome;
}

EXPORTED CuptiResult cuptiGetCallbackName(CallbackDomain domain, std::uint32_t id, const char** name) {
  if (domain != CallbackDomain::driver) return CuptiResult::invalid_parameter;
  const CuptiResult outcome = gpu().begin_call("cuptiGetCallbackName");
  return outcome == CuptiResult::success ? FakeGpu::callback_name(id, name) : outcome;
}

EXPORTED CuptiResult cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  return call_unless_refused("cuptiActivityRegisterCallbacks", [&] { gpu().register_buffers(requested, completed); });
}

EXPORTED CuptiResult cuptiActivityEnable(RecordKind kind) {
  return call_unless_refused("cuptiActivityEnable", [&] { gpu().set_kind(kind, true); });
}

EXPORTED CuptiResult cuptiActivityDisable(RecordKind kind) {
  return call_unless_refused("cuptiActivityDisable", [&] { gpu().set_kind(kind, false); });
}

EXPORTED CuptiResult cuptiActivityFlushAll(std::uint32_t flags) {
  return call_unless_refused("cuptiActivityFlushAll", [&] { gpu().flush((flags & kFlushForced) != 0); });
}

EXPORTED CuptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_size, Record** record) {
  const CuptiResult outcome = gpu().begin_call("cuptiActivityGetNextRecord");
  return outcome == CuptiResult::success ? gpu().next_record(buffer, valid_size, record) : outcome;
}

EXPORTED CuptiResult cuptiActivityGetNumDroppedRecords(Context, std::uint32_t, std::size_t* dropped_record_count) {
  return call_unless_refused("cuptiActivityGetNumDroppedRecords",
                             [&] { *dropped_record_count = gpu().take_dropped_count(); });
}

EXPORTED CuptiResult cuptiGetTimestamp(std::uint64_t* timestamp) {
  return call_unless_refused("cuptiGetTimestamp", [&] { *timestamp = gpu().now(); });
}

EXPORTED CuptiResult cuptiGetResultString(CuptiResult outcome, const char** text) {
  *text = outcome == CuptiResult::multiple_subscribers ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                       : "CUPTI_ERROR_FAKE";
  return CuptiResult::success;
}

#ifndef FAKE_CUPTI_OLD
EXPORTED CuptiResult cuptiActivityRegisterTimestampCallback(TimestampFunction clock) {
  return call_unless_refused("cuptiActivityRegisterTimestampCallback", [&] { gpu().register_clock(clock); });
}

EXPORTED CuptiResult cuptiFinalize() {
  return call_unless_refused("cuptiFinalize", [] { gpu().finalize(); });
}

EXPORTED CuptiResult cuptiGetGraphNodeId(GraphNode node, std::uint64_t* id) {
  return call_unless_refused("cuptiGetGraphNodeId", [&] { *id = reinterpret_cast<std::uint64_t>(node); });
}
#endif

EXPORTED int cuDriverGetVersion(int* version) {
  *version = 13'000;
  return 0;
}

EXPORTED int cuDeviceGet(int* handle, int ordinal) {
  constexpr int kInvalidDevice = 101;  // CUDA_ERROR_INVALID_DEVICE
  *handle = ordinal;
  return ordinal < 8 ? 0 : kInvalidDevice;
}

EXPORTED int cuDeviceGetUuid(DriverUuid* uuid, int handle) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<std::uint8_t>(16 * handle + i);
  return 0;
}
