// SPDX-License-Identifier: Apache-2.0
//
// The functions of include/joulemap/capture.h. No exception leaves them: when memory runs out in a hook, the data of
// that call is dropped and the program goes on.
#include <exception>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/cuda_capture.h"
#include "joulemap/capture.h"

using joulemap::Diagnostic;
using joulemap::EnvironmentFact;
using joulemap::MarkKind;
using joulemap::ScopeKind;
using joulemap::StepRequest;
using joulemap::capture::Capture;
using joulemap::capture::ReportedRequest;
using joulemap::capture::ThreadTrack;
using joulemap::capture::TrainingLoopEvent;

namespace {

std::string_view text_or_empty(const char* text) { return text == nullptr ? std::string_view() : text; }

std::optional<std::int64_t> to_optional_number(const int64_t* number) {
  return number == nullptr ? std::nullopt : std::optional<std::int64_t>(*number);
}

// Returns the result of `call`, or `default_value` when this process is not recorded or `call` throws.
template <class T, class Call>
T call_if_recorded(T default_value, Call call) noexcept {
  try {
    Capture* const capture = Capture::get();
    return capture == nullptr ? default_value : call(*capture);
  } catch (const std::exception&) {
    return default_value;
  }
}

template <class Call>
void call_if_recorded(Call call) noexcept {
  call_if_recorded(0, [&](Capture& capture) {
    call(capture);
    return 0;
  });
}

}  // namespace

extern "C" {

int jmc_is_recording(void) {
  return call_if_recorded(0, [](Capture&) { return 1; });
}

jmc_scope jmc_child_scope(jmc_scope parent, int kind, const char* name) {
  if (kind < 0 || kind >= static_cast<int>(joulemap::kScopeKindCount)) return parent;
  return call_if_recorded(jmc_scope{0}, [&](Capture& capture) {
    return capture.find_or_add_child_scope(parent, static_cast<ScopeKind>(kind), text_or_empty(name));
  });
}

jmc_scope jmc_current_scope(void) {
  return call_if_recorded(jmc_scope{0}, [](Capture& capture) { return capture.current_scope(); });
}

size_t jmc_enter(jmc_scope scope) {
  return call_if_recorded(std::size_t{0}, [&](Capture& capture) { return capture.enter(scope); });
}

void jmc_leave(void) {
  call_if_recorded([](Capture& capture) { capture.leave(); });
}

void jmc_leave_to(size_t depth) {
  call_if_recorded([&](Capture& capture) { capture.leave_to_depth(depth); });
}

size_t jmc_depth(void) {
  return call_if_recorded(std::size_t{0}, [](Capture& capture) { return capture.scope_depth(); });
}

void jmc_backward_begin(jmc_scope scope) {
  call_if_recorded([&](Capture& capture) { capture.begin_backward(scope); });
}

void jmc_backward_end(void) {
  call_if_recorded([](Capture& capture) { capture.end_backward(); });
}

void jmc_set_backward_scope(jmc_scope scope) {
  call_if_recorded([&](Capture& capture) { capture.set_backward_scope(scope, ThreadTrack::ReentryCounting::ignored); });
}

void jmc_backward_operation(jmc_scope scope) {
  call_if_recorded([&](Capture& capture) { capture.set_backward_scope(scope, ThreadTrack::ReentryCounting::counted); });
}

void jmc_step(const int64_t* number) {
  call_if_recorded([&](Capture& capture) { capture.step(to_optional_number(number)); });
}

void jmc_epoch(const int64_t* number) {
  call_if_recorded([&](Capture& capture) { capture.epoch(to_optional_number(number)); });
}

void jmc_metric(const char* name, double value, int64_t time_ns) {
  call_if_recorded([&](Capture& capture) {
    capture.mark_log().add_metric(text_or_empty(name), value, time_ns != 0 ? time_ns : joulemap::monotonic_ns());
  });
}

void jmc_mark(int kind, uint64_t id, const char* name) {
  if (kind < 0 || kind >= static_cast<int>(joulemap::kMarkKindCount)) return;
  call_if_recorded(
      [&](Capture& capture) { capture.mark_log().add_mark(static_cast<MarkKind>(kind), id, text_or_empty(name)); });
}

void jmc_region_push(const char* name) {
  call_if_recorded([&](Capture& capture) { capture.push_region(text_or_empty(name)); });
}

int jmc_region_pop(void) {
  return call_if_recorded(1, [](Capture& capture) { return capture.pop_region() ? 1 : 0; });
}

void jmc_engine_step(int64_t begin_ns, int64_t end_ns, const jmc_request* requests, size_t count) {
  call_if_recorded([&](Capture& capture) {
    thread_local std::vector<ReportedRequest> reported;  // reused: a step of many requests must not allocate
    reported.clear();
    for (size_t i = 0; i < count; ++i) {
      const jmc_request& request = requests[i];
      reported.push_back({text_or_empty(request.id), text_or_empty(request.tenant), text_or_empty(request.model),
                          StepRequest{0, request.prompt_tokens, request.cached_tokens, request.decoded_tokens,
                                      request.rejected_tokens, request.context_tokens,
                                      static_cast<std::uint8_t>(request.events & joulemap::kRequestEventMask)}});
    }
    capture.add_engine_step(begin_ns, end_ns, reported);
  });
}

int jmc_on_event(int event) {
  if (event < 0 || event >= joulemap::capture::kTrainingLoopEventCount) return 0;
  return call_if_recorded(0, [&](Capture& capture) {
    return capture.on_training_loop_event(static_cast<TrainingLoopEvent>(event)) ? 1 : 0;
  });
}

int jmc_on_loader_event(int event, uint64_t iterator) {
  if (event != JMC_LOADER_NEXT && event != JMC_LOADER_END) return 0;
  return call_if_recorded(0, [&](Capture& capture) {
    return capture.on_training_loop_event(static_cast<TrainingLoopEvent>(event), iterator) ? 1 : 0;
  });
}

int jmc_step_is_sampled(void) {
  return call_if_recorded(0, [](Capture& capture) { return capture.current_tracing_decision().is_sampled ? 1 : 0; });
}

int jmc_step_is_traced(void) {
  return call_if_recorded(0, [](Capture& capture) { return capture.current_tracing_decision().is_traced ? 1 : 0; });
}

void jmc_probing(int is_active) {
  call_if_recorded([&](Capture& capture) { capture.set_probing(is_active != 0); });
}

void jmc_own_work(int is_active) {
  call_if_recorded([&](Capture& capture) { capture.set_doing_joulemap_work(is_active != 0); });
}

void jmc_allow_cupti_detach(int is_allowed) {
  call_if_recorded([&](Capture& capture) { capture.allow_detach(is_allowed != 0); });
}

void jmc_other_profiler(int is_running) {
  call_if_recorded([&](Capture& capture) { capture.set_other_profiler_running(is_running != 0); });
}

void jmc_hlo_op(const char* module, const char* instruction, const char* op_name) {
  call_if_recorded([&](Capture& capture) {
    capture.register_hlo_op(text_or_empty(module), text_or_empty(instruction), text_or_empty(op_name));
  });
}

void jmc_function_sample(const char* name, int64_t time_ns) {
  call_if_recorded([&](Capture& capture) { capture.add_function_sample(text_or_empty(name), time_ns); });
}

void jmc_diagnose(const char* code, const char* message, const char* remedy) {
  call_if_recorded([&](Capture& capture) {
    const auto text = [](const char* argument) { return std::string(text_or_empty(argument)); };
    capture.mark_log().add_diagnostic(Diagnostic{text(code), 1, text(message), text(remedy)});
  });
}

void jmc_fact(const char* name, const char* value) {
  call_if_recorded([&](Capture& capture) {
    capture.mark_log().add_fact(EnvironmentFact{std::string(text_or_empty(name)), std::string(text_or_empty(value))});
  });
}

int jmc_join_recording(void) {
  if (!Capture::join_recording()) return 0;
  // The environment variable that makes the CUDA driver load this library has no effect on a driver already loaded.
  if (joulemap::capture::is_cuda_loaded()) joulemap::capture::start_cuda_capture();
  return 1;
}

void jmc_leave_recording(void) {
  Capture::leave_recording();
  joulemap::capture::allow_cuda_capture_restart();
}

void jmc_finish(void) { Capture::finish_existing_instance(); }

}  // extern "C"
