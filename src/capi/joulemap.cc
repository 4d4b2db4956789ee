// SPDX-License-Identifier: Apache-2.0
//
// The functions of include/joulemap/joulemap.h: each checks its arguments, calls one function, and maps a Result to a
// jm_status and an error text. Exceptions of the standard library (no memory, no more threads) become JM_FAILED.
#include "joulemap/joulemap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "capi/process_state.h"
#include "capi/sized_struct.h"
#include "joulemap/capture.h"
#include "model/engine_step.h"
#include "model/recorded.h"
#include "report/json/doctor_json.h"
#include "session/doctor.h"

using joulemap::Diagnostic;
using joulemap::DomainEnergy;
using joulemap::Error;
using joulemap::ErrorCode;
using joulemap::MarkKind;
using joulemap::Provenance;
using joulemap::Result;
using joulemap::Status;
using joulemap::capi::copy_from_caller;
using joulemap::capi::copy_to_caller;
using joulemap::capi::ProcessState;
using joulemap::sampling::WaitPolicy;
using joulemap::sampling::WindowEngine;
using joulemap::sampling::WindowOptions;
using joulemap::sampling::WindowResult;

namespace {

constexpr double kUnknownValue = std::numeric_limits<double>::quiet_NaN();
// Size of jm_options in version 0.1.0, whose last member was period_s.
constexpr std::size_t kFirstVersionOptions_bytes = offsetof(jm_options, period_s) + sizeof(double);

std::string& last_error_of_thread() {
  thread_local std::string text;
  return text;
}

// Result of this thread's last jm_window_wait or jm_window_peek, which jm_window_domain and jm_window_diagnostic read.
std::optional<WindowResult>& last_window_result_of_thread() {
  thread_local std::optional<WindowResult> result;
  return result;
}

int set_last_error(jm_status status, std::string_view text) {
  last_error_of_thread() = text;
  return status;
}

int set_last_error(const Error& error) {
  const jm_status status = error.code == ErrorCode::usage       ? JM_USAGE
                           : error.code == ErrorCode::not_found ? JM_NOT_FOUND
                                                                : JM_FAILED;
  return set_last_error(status, error.remedy.empty() ? error.message : error.message + "; " + error.remedy);
}

// Converts exceptions of `call`, which may allocate or start a thread, to JM_FAILED.
template <class Call>
int call_catching_exceptions(Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    return set_last_error(JM_FAILED, error.what());
  }
}

int to_jm_status(const Status& status) { return status ? JM_OK : set_last_error(status.error()); }

template <std::size_t N>
void copy_truncated_text(char (&destination)[N], std::string_view source_text) {
  const std::size_t length = std::min(source_text.size(), N - 1);
  std::memcpy(destination, source_text.data(), length);
  destination[length] = '\0';
}

int32_t to_jm_provenance(const std::optional<Provenance>& provenance) {
  if (!provenance) return JM_UNKNOWN;
  return *provenance == Provenance::measured ? JM_MEASURED : JM_ESTIMATED;
}

std::string reason_for_no_energy(const WindowResult& result) {
  std::string text;
  for (const DomainEnergy& row : result.energy.rows) {
    if (!row.joules) text += (text.empty() ? "" : ", ") + row.name + " " + row.reason;
  }
  return text.empty() ? "no sensor is usable here; run joulemap doctor to see why" : text;
}

jm_energy to_jm_energy(const WindowResult& result) {
  const joulemap::EnergyTotals& totals = result.energy.totals;
  jm_energy energy{};
  energy.elapsed_s = result.elapsed_s();
  energy.measured_j = joules_of(totals.measured).value_or(kUnknownValue);
  energy.estimated_j = joules_of(totals.estimated).value_or(kUnknownValue);
  energy.joules = energy.uncertainty_j = energy.mean_w = kUnknownValue;
  energy.settled = result.is_settled ? 1 : 0;
  energy.begin_ns = result.begin_ns;
  energy.end_ns = result.end_ns;
  energy.domains = result.energy.rows.size();
  energy.diagnostics = result.energy.diagnostics.list().size();
  const std::optional<joulemap::EnergyWithProvenance> preferred_total = joulemap::preferred_energy(totals);
  if (!preferred_total) {
    copy_truncated_text(energy.reason, reason_for_no_energy(result));
    return energy;
  }
  energy.joules = preferred_total->joules;
  energy.uncertainty_j = preferred_total->uncertainty_j.value_or(kUnknownValue);
  if (energy.elapsed_s > 0) energy.mean_w = preferred_total->joules / energy.elapsed_s;
  energy.provenance = to_jm_provenance(preferred_total->provenance);
  return energy;
}

int read_window_energy(jm_window window, WaitPolicy wait_policy, jm_energy* energy) {
  if (energy == nullptr) return set_last_error(JM_USAGE, "energy is NULL");
  ProcessState* const state = ProcessState::get_if_created();
  const std::shared_ptr<WindowEngine> engine = state == nullptr ? nullptr : state->window_engine();
  if (!engine) return set_last_error(JM_NOT_FOUND, "this process has not begun a window");
  Result<WindowResult> result = engine->result(window, wait_policy);
  if (!result) return set_last_error(result.error());
  last_window_result_of_thread() = std::move(*result);
  return to_jm_status(copy_to_caller(to_jm_energy(*last_window_result_of_thread()), energy));
}

Result<WindowOptions> to_window_options(const jm_options* options) {
  WindowOptions window_options;
  const auto option_text = [](const char* text, const char* variable) {
    const char* const environment_value = ::secure_getenv(variable);
    return std::string(text != nullptr ? text : environment_value != nullptr ? environment_value : "");
  };
  const Result<jm_options> caller_options = options == nullptr
                                                ? Result<jm_options>(jm_options{})
                                                : copy_from_caller(*options, kFirstVersionOptions_bytes, "jm_options");
  if (!caller_options) return caller_options.error();
  window_options.root.prefix = option_text(caller_options->sysroot, "JOULEMAP_SYSROOT");
  window_options.sensors = option_text(caller_options->sensors, "JOULEMAP_SENSORS");
  if (caller_options->period_s == 0) return window_options;
  if (!(caller_options->period_s >= 1e-4 && caller_options->period_s <= 60))
    return Error{ErrorCode::usage, "period_s must be between 0.0001 and 60", ""};
  window_options.period_ns = std::llround(caller_options->period_s * 1e9);
  return window_options;
}

// Sizes of the structures in the version that introduced them.
constexpr std::size_t kFirstVersionEngineStep_bytes =
    offsetof(jm_engine_step_work, request_count) + sizeof(std::size_t);
constexpr std::size_t kFirstVersionRequestWork_bytes = offsetof(jm_request_work, events) + sizeof(std::uint32_t);

Result<std::vector<jmc_request>> to_captured_requests(const jm_engine_step_work& caller_step) {
  const Result<jm_engine_step_work> step =
      copy_from_caller(caller_step, kFirstVersionEngineStep_bytes, "jm_engine_step_work");
  if (!step) return step.error();
  if (step->requests == nullptr && step->request_count > 0)
    return Error{ErrorCode::usage, "requests is NULL", "set request_count to 0, or requests to an array"};
  if (step->request_count > joulemap::kMaxRequestsPerStep)
    return Error{ErrorCode::usage, "a step has at most 65536 requests", ""};
  std::vector<jmc_request> requests;
  requests.reserve(step->request_count);
  const char* request_pointer = reinterpret_cast<const char*>(step->requests);
  for (std::size_t i = 0; i < step->request_count; ++i) {
    const auto& caller_request = *reinterpret_cast<const jm_request_work*>(request_pointer);
    const Result<jm_request_work> work =
        copy_from_caller(caller_request, kFirstVersionRequestWork_bytes, "jm_request_work");
    if (!work) return work.error();
    if (work->id == nullptr) return Error{ErrorCode::usage, "a request has no id", ""};
    if ((work->events & ~std::uint32_t{joulemap::kRequestEventMask}) != 0)
      return Error{ErrorCode::usage, "events contains bits that are not a jm_request_event",
                   "pass a sum of JM_FINISHED, JM_PREEMPTED and JM_ABORTED"};
    requests.push_back({work->id, work->tenant, work->model, work->prompt_tokens, work->cached_tokens,
                        work->decoded_tokens, work->rejected_tokens, work->context_tokens, work->events});
    request_pointer += caller_request.size;  // an array of the caller's version of the structure
  }
  return requests;
}

}  // namespace

extern "C" {

const char* jm_version(void) { return JOULEMAP_VERSION; }

const char* jm_last_error(void) { return last_error_of_thread().c_str(); }

int jm_start(const jm_options* options) {
  return call_catching_exceptions([&] {
    const Result<WindowOptions> window_options = to_window_options(options);
    return window_options ? to_jm_status(ProcessState::get().start(*window_options))
                          : set_last_error(window_options.error());
  });
}

int jm_stop(void) {
  if (ProcessState* const state = ProcessState::get_if_created()) state->stop();
  return JM_OK;
}

jm_window jm_begin(const char* name) {
  ProcessState* state = ProcessState::get_if_created();
  if (state == nullptr || !state->is_started()) {
    if (call_catching_exceptions([] { return to_jm_status(ProcessState::get().start_if_needed()); }) != JM_OK) return 0;
    state = &ProcessState::get();
  }
  const jm_window window = state->window_table().begin();
  if (window == 0) {
    set_last_error(JM_FULL, "there are one million windows; free those that are no longer needed");
  } else {
    jmc_mark(static_cast<int>(MarkKind::window_begin), window, name);
  }
  return window;
}

int jm_end(jm_window window) {
  ProcessState* const state = ProcessState::get_if_created();
  if (state == nullptr || !state->window_table().end(window))
    return set_last_error(JM_NOT_FOUND, "this window is not open");
  jmc_mark(static_cast<int>(MarkKind::window_end), window, "");
  return JM_OK;
}

void jm_window_free(jm_window window) {
  if (ProcessState* const state = ProcessState::get_if_created()) state->window_table().release(window);
}

int jm_window_wait(jm_window window, jm_energy* energy) {
  return call_catching_exceptions([&] { return read_window_energy(window, WaitPolicy::wait, energy); });
}

int jm_window_peek(jm_window window, jm_energy* energy) {
  return call_catching_exceptions([&] { return read_window_energy(window, WaitPolicy::none, energy); });
}

int jm_window_domain(size_t index, jm_domain* domain) {
  const std::optional<WindowResult>& result = last_window_result_of_thread();
  if (domain == nullptr || !result || index >= result->energy.rows.size())
    return set_last_error(JM_USAGE, "the last result of this thread has no such domain");
  const DomainEnergy& row = result->energy.rows[index];
  jm_domain entry{};
  entry.joules = row.joules.value_or(kUnknownValue);
  entry.uncertainty_j = row.uncertainty_j.value_or(kUnknownValue);
  entry.mean_w = row.mean_w.value_or(kUnknownValue);
  entry.provenance = to_jm_provenance(row.provenance);
  entry.counted = row.is_counted ? 1 : 0;
  copy_truncated_text(entry.name, row.name);
  copy_truncated_text(entry.part_of, row.part_of);
  copy_truncated_text(entry.sensor, row.sensor);
  copy_truncated_text(entry.reason, row.reason);
  return to_jm_status(copy_to_caller(entry, domain));
}

int jm_window_diagnostic(size_t index, jm_diagnostic* diagnostic) {
  const std::optional<WindowResult>& result = last_window_result_of_thread();
  if (diagnostic == nullptr || !result || index >= result->energy.diagnostics.list().size())
    return set_last_error(JM_USAGE, "the last result of this thread has no such diagnostic");
  const Diagnostic& window_diagnostic = result->energy.diagnostics.list()[index];
  jm_diagnostic entry{};
  entry.count = window_diagnostic.count;
  copy_truncated_text(entry.code, window_diagnostic.code);
  copy_truncated_text(entry.message, window_diagnostic.message);
  copy_truncated_text(entry.remedy, window_diagnostic.remedy);
  return to_jm_status(copy_to_caller(entry, diagnostic));
}

int jm_is_recording(void) { return jmc_is_recording(); }

int jm_region_push(const char* name) {
  jmc_region_push(name);
  return JM_OK;
}

int jm_region_pop(void) {
  return jmc_region_pop() != 0 ? JM_OK : set_last_error(JM_USAGE, "no region is open on this thread");
}

int jm_step(const int64_t* number) {
  if (number != nullptr && *number < 0) return set_last_error(JM_USAGE, "the number of a step must be 0 or more");
  jmc_step(number);
  return JM_OK;
}

int jm_epoch(const int64_t* number) {
  if (number != nullptr && *number < 0) return set_last_error(JM_USAGE, "the number of an epoch must be 0 or more");
  jmc_epoch(number);
  return JM_OK;
}

int jm_log(const char* name, double value) {
  jmc_metric(name, value, 0);
  return JM_OK;
}

int jm_engine_step(const jm_engine_step_work* step) {
  if (step == nullptr) return set_last_error(JM_USAGE, "step is NULL");
  if (jmc_is_recording() == 0) return JM_OK;
  return call_catching_exceptions([&] {
    const Result<std::vector<jmc_request>> requests = to_captured_requests(*step);
    if (!requests) return set_last_error(requests.error());
    jmc_engine_step(step->begin_ns, step->end_ns != 0 ? step->end_ns : joulemap::monotonic_ns(), requests->data(),
                    requests->size());
    return static_cast<int>(JM_OK);
  });
}

int jm_doctor_json(const jm_options* options, char** text) {
  if (text == nullptr) return set_last_error(JM_USAGE, "text is NULL");
  return call_catching_exceptions([&] {
    const Result<WindowOptions> window_options = to_window_options(options);
    if (!window_options) return set_last_error(window_options.error());
    const auto doctor_result = joulemap::session::examine_sensors(
        {.root = window_options->root, .sensors = window_options->sensors, .program = "joulemap"});
    if (!doctor_result) return set_last_error(doctor_result.error());
    *text = ::strdup(joulemap::report::doctor_json(*doctor_result).c_str());
    return *text != nullptr ? static_cast<int>(JM_OK) : set_last_error(JM_FAILED, "out of memory");
  });
}

void jm_text_free(char* text) { std::free(text); }

}  // extern "C"
