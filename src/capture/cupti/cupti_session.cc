// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_session.h"

#include <exception>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/scoped_signal_block.h"
#include "capture/cupti/bounded_call.h"

namespace joulemap::capture::cupti {
namespace {

constexpr std::chrono::seconds kCuptiLockTimeout{2};  // longest wait for another thread that is inside CUPTI

// Global state: CUPTI's buffer and clock callbacks carry no user pointer.
struct CallbackTargets {
  std::atomic<RecordIntake*> record_intake{nullptr};
  std::atomic<std::uint64_t> clock_call_count{0};
};
constinit CallbackTargets callback_targets;

void on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  RecordIntake* intake = callback_targets.record_intake.load();
  if (intake != nullptr) return intake->on_buffer_requested(buffer, size, max_records);
  *buffer = nullptr;
  *size = 0;
  *max_records = 0;
}

void on_buffer_completed(Context context, std::uint32_t stream, std::uint8_t* buffer, std::size_t /*size*/,
                         std::size_t valid_bytes) {
  RecordIntake* intake = callback_targets.record_intake.load();
  if (intake != nullptr) intake->on_buffer_completed(context, stream, buffer, valid_bytes);
}

std::uint64_t own_clock_callback() {
  callback_targets.clock_call_count.fetch_add(1, std::memory_order_relaxed);
  return static_cast<std::uint64_t>(monotonic_ns());
}

}  // namespace

CuptiSession::CuptiSession(CuptiApi api, KernelSink& sink, LaunchContext launch_context,
                           std::chrono::milliseconds finish_timeout)
    : api_(std::move(api)),
      sink_(sink),
      launch_context_(launch_context),
      finish_timeout_(finish_timeout),
      // CUPTI maps device times to its clock by a linear fit, so a record can appear to begin before the session.
      record_intake_(api_, sink, monotonic_ns() - kNanosecondsPerSecond) {}

CuptiSession::~CuptiSession() {
  finish();
  RecordIntake* own_intake = &record_intake_;  // still set if finish() gave up
  callback_targets.record_intake.compare_exchange_strong(own_intake, nullptr);
}

Status CuptiSession::start() {
  const ScopedSignalBlock signal_block;  // CUPTI's threads must not take them
  const std::lock_guard control_guard(control_lock_);
  RecordIntake* expected_intake = nullptr;
  if (!callback_targets.record_intake.compare_exchange_strong(expected_intake, &record_intake_)) {
    return Error{ErrorCode::usage, "this process already records its kernels", ""};
  }
  const std::lock_guard hold(enable_lock_);
  is_tracing_requested_ = true;
  is_active_.store(true);
  Status acquire_status = acquire_cupti();
  if (!acquire_status) {
    is_active_.store(false);
    unsubscribe();
    callback_targets.record_intake.store(nullptr);
    return std::move(acquire_status).error().with_context("recording kernels with " + api_.library_path());
  }
  read_clock_pair();
  loss_detector_.reset(take_loss_snapshot(monotonic_ns()));
  return Done{};
}

Status CuptiSession::acquire_cupti() {
  subscribe();
  register_own_clock();  // before any kind is enabled, so that all records use one clock
  const CuptiResult outcome = api_.functions().register_buffers(on_buffer_requested, on_buffer_completed);
  if (outcome != CuptiResult::success)
    return Error{ErrorCode::io, "registering buffers: " + api_.result_text(outcome), ""};
  if (is_tracing_requested_) return enable_record_kinds(true);
  return Done{};
}

void CuptiSession::subscribe() {
  if (!api_.can_trace_launches() || callback_subscriber_ != nullptr) return;
  const CuptiResult outcome = api_.functions().subscribe(&callback_subscriber_, on_callback, this);
  if (outcome != CuptiResult::success) {
    callback_subscriber_ = nullptr;
    const bool has_other_subscriber = outcome == CuptiResult::multiple_subscribers;
    add_diagnostic(
        "kernels_without_places",
        has_other_subscriber
            ? "another profiler is subscribed to CUPTI: kernel launches are not observed from then on"
            : "CUPTI does not report launches, so kernels cannot be assigned to layers: " + api_.result_text(outcome),
        has_other_subscriber ? "run without the other profiler (nsys, ncu, cuda-gdb, torch.profiler)" : "");
    return;
  }
  if (callback_ids_.launch_calls.empty()) callback_ids_ = find_driver_callback_ids(api_.functions());
  if (callback_ids_.launch_calls.empty())
    add_diagnostic("kernels_without_places", "CUPTI does not name the functions that launch kernels");
  const auto enable_callback_id = [this](CallbackDomain domain, std::uint32_t id) {
    api_.functions().enable_callback(1, callback_subscriber_, domain, id);
  };
  for (const std::uint32_t id : callback_ids_.copy_calls) enable_callback_id(CallbackDomain::driver, id);
  if (api_.can_trace_graphs()) {
    // Always enabled: a graph may be captured in an untraced step and launched in a traced one.
    for (const std::uint32_t id :
         {kGraphNodeCreated, kGraphNodeCloned, kGraphExecCreated, kGraphNodeUpdated, kGraphNodeParamsSet}) {
      enable_callback_id(CallbackDomain::resource, id);
    }
  }
  enable_launch_callbacks(is_tracing_requested_);
}

void CuptiSession::unsubscribe() {
  if (callback_subscriber_ != nullptr) api_.functions().unsubscribe(callback_subscriber_);
  callback_subscriber_ = nullptr;
}

void CuptiSession::register_own_clock() {
  uses_own_clock_ = false;
  if (!api_.can_set_clock()) return;
  const CuptiResult outcome = api_.functions().register_clock(own_clock_callback);
  uses_own_clock_ = outcome == CuptiResult::success;
  if (!uses_own_clock_) add_diagnostic("cupti_clock", "CUPTI uses its own clock: " + api_.result_text(outcome));
  can_check_clock_ = uses_own_clock_ && !is_own_clock_replaced();
}

// Callbacks of copies stay enabled in untraced steps: they are few, and return at once.
void CuptiSession::enable_launch_callbacks(bool is_enabled) {
  if (callback_subscriber_ == nullptr) return;
  for (const auto* callback_ids : {&callback_ids_.launch_calls, &callback_ids_.synchronization_calls}) {
    for (const std::uint32_t id : *callback_ids) {
      api_.functions().enable_callback(is_enabled ? 1 : 0, callback_subscriber_, CallbackDomain::driver, id);
    }
  }
}

// A noted launch without a record costs nothing; a record without a noted launch has no scope. So noting launches
// starts before records and stops after them.
Status CuptiSession::enable_record_kinds(bool is_enabled) {
  if (is_enabled) is_tracing_.store(true);
  for (const RecordKind kind : kRecordedKinds) {
    const CuptiResult outcome =
        is_enabled ? api_.functions().enable_records(kind) : api_.functions().disable_records(kind);
    if (outcome == CuptiResult::success) continue;
    if (is_enabled && kind == RecordKind::concurrent_kernel) {
      is_tracing_.store(false);
      return make_kernels_refused_error(api_.result_text(outcome), outcome);
    }
    add_diagnostic("cupti_kind", "CUPTI could not switch records of kind " +
                                     std::to_string(static_cast<unsigned>(kind)) + (is_enabled ? " on: " : " off: ") +
                                     api_.result_text(outcome));
  }
  is_tracing_.store(is_enabled);
  return Done{};
}

void CuptiSession::on_callback(void* user, CallbackDomain domain, std::uint32_t id, const void* data) {
  auto& session = *static_cast<CuptiSession*>(user);
  if (domain == CallbackDomain::driver) {
    const auto& call = *static_cast<const ApiCall*>(data);
    if (call.enter_or_exit == kApiExit &&
        session.attachment_.load(std::memory_order_relaxed) == Attachment::detaching) {
      return session.detach_in_callback();
    }
    if (!session.is_tracing()) return;
    if (session.callback_ids_.is_synchronization(id)) {
      return session.sink_.on_synchronization(session.launch_context_.current_scope(), call.enter_or_exit == kApiEnter);
    }
    if (call.enter_or_exit != kApiEnter) return;
    session.launch_count_.fetch_add(1, std::memory_order_relaxed);
    session.sink_.on_launch(call.correlation, session.launch_context_.current_scope(),
                            session.launch_context_.current_step());
  } else if (domain == CallbackDomain::resource && session.is_active_.load(std::memory_order_relaxed)) {
    const auto& change = *static_cast<const ResourceData*>(data);
    if (change.resource_descriptor != nullptr) session.on_graph_change(id, *change.resource_descriptor);
  }
}

void CuptiSession::on_graph_change(std::uint32_t id, const GraphChange& change) {
  is_detach_allowed_.store(false, std::memory_order_relaxed);
  // Programs often set parameters of single nodes; only those after an update of a nested graph matter here.
  if (id == kGraphNodeParamsSet && !nested_graphs_.has_pending_update()) return;
  std::uint64_t node = 0;
  std::uint64_t original_node = 0;
  std::uint32_t graph = 0;
  const CuptiFunctions& functions = api_.functions();
  const bool is_executable = id == kGraphExecCreated;
  if (!is_executable && functions.get_graph_node_id(change.changed_node, &node) != CuptiResult::success) return;
  try {
    if (id == kGraphNodeCreated) {
      nested_graphs_.on_node_created(node);
      sink_.on_graph_node(node, launch_context_.current_scope());
    } else if (id == kGraphNodeCloned &&
               functions.get_graph_node_id(change.original_node, &original_node) == CuptiResult::success) {
      nested_graphs_.on_node_copied(original_node, node);
      sink_.on_graph_node_copied(original_node, node);
    } else if (is_executable && functions.get_graph_id != nullptr &&
               functions.get_graph_id(change.graph, &graph) == CuptiResult::success) {
      for (const auto& [reported, equivalent] : nested_graphs_.on_graph_instantiated(graph))
        sink_.on_graph_node_copied(reported, equivalent);
    } else if (id == kGraphNodeUpdated) {
      nested_graphs_.on_node_updated(node);
    } else if (id == kGraphNodeParamsSet) {
      const auto pair = nested_graphs_.on_node_parameters_set(node);
      if (pair) sink_.on_graph_node_copied(pair->first, pair->second);
    }
  } catch (const std::bad_alloc&) {
    lost_graph_node_count_.fetch_add(1);  // the program continues; diagnostics() reports the loss
  }
}

bool CuptiSession::is_own_clock_replaced() {
  const std::uint64_t calls = callback_targets.clock_call_count.load();
  std::uint64_t ignored_timestamp = 0;
  if (api_.functions().get_timestamp(&ignored_timestamp) != CuptiResult::success) return false;
  return callback_targets.clock_call_count.load() == calls;
}

void CuptiSession::read_clock_pair() {
  const std::int64_t before_ns = monotonic_ns();
  if (uses_own_clock_) return record_intake_.add_clock_pair(before_ns, before_ns);
  std::uint64_t cupti_clock_ns = 0;
  if (api_.functions().get_timestamp(&cupti_clock_ns) != CuptiResult::success) return;
  record_intake_.add_clock_pair(static_cast<std::int64_t>(cupti_clock_ns),
                                before_ns + (monotonic_ns() - before_ns) / 2);
}

RecordLossDetector::Snapshot CuptiSession::take_loss_snapshot(std::int64_t now_ns) {
  return {.now_ns = now_ns,
          .launch_count = launch_count(),
          .record_count = record_intake_.record_counts().forwarded_records,
          .lent_record_capacity = record_intake_.lent_record_capacity(),
          .is_clock_replaced = can_check_clock_ && is_own_clock_replaced()};
}

void CuptiSession::poll(std::int64_t now_ns) {
  const std::unique_lock control_guard(control_lock_, std::try_to_lock);
  if (!control_guard || !is_active_.load() || other_profiler_since_ns_ || attachment_.load() != Attachment::attached)
    return;
  if (has_reattached_.exchange(false)) loss_detector_.reset(take_loss_snapshot(now_ns));
  if (!can_check_clock_ || !is_own_clock_replaced()) read_clock_pair();
  report_flush_failure(api_.functions().flush_buffers(0));
  const std::optional<std::int64_t> since_ns = loss_detector_.find_loss_begin_ns(take_loss_snapshot(now_ns));
  if (!since_ns) return detach_if_idle(now_ns);
  add_record_loss(unexplained_losses_, *since_ns, now_ns);  // before further kernels arrive
  reacquire_cupti(now_ns);
}

void CuptiSession::reacquire_cupti(std::int64_t now_ns) {
  const ScopedSignalBlock signal_block;
  {
    const std::lock_guard hold(enable_lock_);
    has_yielded_to_profiler_ = false;
    was_shared_with_profiler_ = true;
    attachment_.store(Attachment::attached);
    record_intake_.abandon_lent_buffers();
    unsubscribe();  // the subscriber may be invalid: the other profiler may have closed CUPTI
    const Status acquire_status = acquire_cupti();
    if (!acquire_status) add_diagnostic("cupti_lost", acquire_status.error().message, acquire_status.error().remedy);
  }
  read_clock_pair();
  loss_detector_.reset(take_loss_snapshot(now_ns));
}

void CuptiSession::set_other_profiler_running(bool is_profiler_running, std::int64_t now_ns) {
  const std::unique_lock control_guard(control_lock_, kCuptiLockTimeout);
  if (!control_guard || !is_active_.load() || is_profiler_running == other_profiler_since_ns_.has_value()) return;
  if (is_profiler_running) {
    other_profiler_since_ns_ = now_ns;
    sink_.on_records_lost(now_ns, INT64_MAX);
    return yield_to_profiler();
  }
  add_record_loss(profiler_losses_, *other_profiler_since_ns_, now_ns);
  other_profiler_since_ns_.reset();
  reacquire_cupti(now_ns);
}

void CuptiSession::yield_to_profiler() {
  {
    const std::lock_guard hold(enable_lock_);
    has_yielded_to_profiler_ = true;
    was_shared_with_profiler_ = true;
    if (attachment_.load() == Attachment::detached) return;
    attachment_.store(Attachment::attached);
    const Status disable_status = enable_record_kinds(false);
    if (!disable_status) add_diagnostic("cupti_kind", disable_status.error().message);
    unsubscribe();  // some profilers fail when they cannot subscribe
  }
  // Forced: CUPTI would give its current buffers to the other profiler, which discards them.
  report_flush_failure(api_.functions().flush_buffers(kFlushForced));
}

void CuptiSession::finish() {
  if (!is_active_.load()) return;
  const std::unique_lock control_guard(control_lock_, kCuptiLockTimeout);
  std::unique_lock hold(enable_lock_, kCuptiLockTimeout);
  if (!control_guard || !hold)
    return add_diagnostic("cupti_hangs", "CUPTI was still busy at the end: its last records are missing");
  if (!is_active_.exchange(false)) return;
  is_tracing_.store(false);
  if (other_profiler_since_ns_) add_record_loss(profiler_losses_, *other_profiler_since_ns_, monotonic_ns());
  const bool has_records =
      !has_yielded_to_profiler_ && attachment_.exchange(Attachment::attached) != Attachment::detached;
  const auto release_cupti = [functions = api_.functions(), subscriber = std::exchange(callback_subscriber_, nullptr),
                              has_records] {
    CuptiResult flush_result = CuptiResult::success;
    if (has_records) {
      for (const RecordKind kind : kRecordedKinds) functions.disable_records(kind);
      flush_result = functions.flush_buffers(kFlushForced);
    }
    if (subscriber != nullptr) functions.unsubscribe(subscriber);
    return flush_result;
  };
  hold.unlock();
  const std::optional<CuptiResult> final_flush_result = call_with_timeout(finish_timeout_, release_cupti);
  record_intake_.stop_accepting_records();
  // Buffers that come back later are ignored; another session may start.
  RecordIntake* own_intake = &record_intake_;
  callback_targets.record_intake.compare_exchange_strong(own_intake, nullptr);
  if (!final_flush_result)
    return add_diagnostic("cupti_hangs", "CUPTI did not return from its last flush: its last records are missing");
  report_flush_failure(*final_flush_result);
}

void CuptiSession::abandon_in_child() noexcept {
  is_active_.store(false);
  is_tracing_.store(false);
  attachment_.store(Attachment::attached);
  record_intake_.stop_accepting_records();
  callback_targets.record_intake.store(nullptr);
}

void CuptiSession::add_diagnostic(std::string code, std::string message, std::string remedy) {
  const std::lock_guard hold(diagnostics_lock_);
  diagnostics_.add({std::move(code), 1, std::move(message), std::move(remedy)});
}

void CuptiSession::report_flush_failure(CuptiResult outcome) {
  if (outcome != CuptiResult::success)
    add_diagnostic("cupti_flush", "CUPTI did not deliver its records: " + api_.result_text(outcome));
}

void CuptiSession::add_record_loss(RecordLosses& losses, std::int64_t since_ns, std::int64_t now_ns) {
  sink_.on_records_lost(since_ns, now_ns);
  const std::lock_guard hold(diagnostics_lock_);
  losses.add(since_ns, now_ns);
}

Diagnostics CuptiSession::diagnostics() const {
  Diagnostics all_diagnostics = api_.diagnostics();
  {
    const std::lock_guard hold(diagnostics_lock_);
    all_diagnostics.add_all(diagnostics_);
    report_record_losses(unexplained_losses_, profiler_losses_, all_diagnostics);
  }
  report_record_counts(record_intake_.record_counts(), all_diagnostics);
  if (const std::uint64_t nodes = lost_graph_node_count_.load(); nodes > 0) {
    all_diagnostics.add({"graphs_without_places", nodes, "nodes of CUDA graphs were not recorded: out of memory", ""});
  }
  return all_diagnostics;
}

// The part of CuptiSession that enables and disables records, and closes CUPTI during untraced steps. Once records were
// enabled, every launch is slower as long as CUPTI is open, with or without records. The cost is a microsecond on an
// H200 (CUDA 13): 4 % of a step that waits for 500 launches. Closing CUPTI takes 2.5 ms, reopening it 12 ms.
// NVIDIA requires closing it from within a callback, when a driver call returns. So the polling thread requests
// closing, and the program's next launch closes CUPTI.

namespace {

// Shortest time without tracing before CUPTI is closed: records of the last launches may still arrive.
constexpr std::int64_t kMinIdleBeforeDetach_ns = kNanosecondsPerSecond / 4;
// After this time without tracing, a buffer that is still lent may be empty and is not awaited.
constexpr std::int64_t kLentBufferTimeout_ns = kNanosecondsPerSecond;

}  // namespace

void CuptiSession::set_tracing(bool is_tracing_enabled) {
  const std::lock_guard hold(enable_lock_);
  if (is_tracing_requested_ == is_tracing_enabled) return;
  is_tracing_requested_ = is_tracing_enabled;
  untraced_since_ns_ = monotonic_ns();
  if (!is_tracing_enabled) record_intake_.set_records_disabled_since(untraced_since_ns_);
  if (!is_active_.load() || has_yielded_to_profiler_) return;
  const Status enable_status = is_tracing_enabled ? ensure_attached() : enable_record_kinds(false);
  if (!is_tracing_enabled) enable_launch_callbacks(false);
  if (!enable_status) add_diagnostic("cupti_kind", enable_status.error().message, enable_status.error().remedy);
}

void CuptiSession::allow_detach(bool is_detach_allowed) {
  const std::lock_guard hold(enable_lock_);
  is_detach_allowed_.store(is_detach_allowed);
  if (is_detach_allowed || !is_active_.load() || has_yielded_to_profiler_ || attachment_.load() == Attachment::attached)
    return;
  const Status attach_status = ensure_attached();
  if (!attach_status) add_diagnostic("cupti_lost", attach_status.error().message, attach_status.error().remedy);
}

// Requires enable_lock_ to be held.
bool CuptiSession::can_detach_now() const {
  return is_detach_allowed_.load() && !is_tracing_requested_ && !has_yielded_to_profiler_ &&
         !was_shared_with_profiler_ && callback_subscriber_ != nullptr && !callback_ids_.launch_calls.empty() &&
         api_.can_detach();
}

// Called by the polling thread, which holds control_lock_ and has just fetched the records.
void CuptiSession::detach_if_idle(std::int64_t now_ns) {
  {
    const std::lock_guard hold(enable_lock_);
    const std::int64_t untraced_ns = now_ns - untraced_since_ns_;
    const bool are_all_records_delivered = !record_intake_.has_lent_buffers() || untraced_ns >= kLentBufferTimeout_ns;
    if (!can_detach_now() || untraced_ns < kMinIdleBeforeDetach_ns || !are_all_records_delivered) return;
  }
  report_flush_failure(api_.functions().flush_buffers(kFlushForced));
  const std::lock_guard hold(enable_lock_);
  if (!can_detach_now()) return;
  attachment_.store(Attachment::detaching);
  enable_launch_callbacks(true);
}

// Closes CUPTI, on a thread of the program whose launch is about to return. If another thread holds enable_lock_, it
// may be inside CUPTI; then a later launch closes it.
void CuptiSession::detach_in_callback() noexcept {
  try {
    const std::unique_lock hold(enable_lock_, std::try_to_lock);
    if (!hold || !is_active_.load() || attachment_.load() != Attachment::detaching) return;
    const CuptiResult outcome = api_.functions().finalize();
    callback_subscriber_ = nullptr;
    record_intake_.abandon_lent_buffers();
    attachment_.store(Attachment::detached);
    if (outcome == CuptiResult::success) return;
    is_detach_allowed_.store(false);
    add_diagnostic("cupti_rest", "CUPTI failed to detach while it was idle: " + api_.result_text(outcome));
  } catch (const std::exception&) {
    is_detach_allowed_.store(false);  // closing failed, and no memory for a diagnostic; do not try again
  }
}

// Reopens CUPTI if it was closed. Requires enable_lock_ to be held. Enables records if tracing is requested.
Status CuptiSession::ensure_attached() {
  const Attachment previous_attachment = attachment_.exchange(Attachment::attached);
  if (previous_attachment == Attachment::detached) {
    const ScopedSignalBlock signal_block;  // CUPTI starts its threads again
    has_reattached_.store(true);
    return acquire_cupti();
  }
  enable_launch_callbacks(is_tracing_requested_);
  return is_tracing_requested_ ? enable_record_kinds(true) : Status(Done{});
}

}  // namespace joulemap::capture::cupti
