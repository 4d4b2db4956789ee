// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_session.h"

#include <new>
#include <utility>

#include "base/clock.h"
#include "base/signal_shield.h"
#include "capture/cupti/bounded_call.h"

namespace joulemap::capture::cupti {
namespace {

constexpr std::chrono::seconds kPatience{2};  // longest wait for another thread that is inside CUPTI

// Global state: CUPTI's buffer and clock callbacks carry no user pointer.
struct ProcessHooks {
  std::atomic<RecordIntake*> intake{nullptr};
  std::atomic<std::uint64_t> clock_calls{0};
};
constinit ProcessHooks hooks;

void on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  RecordIntake* intake = hooks.intake.load();
  if (intake != nullptr) return intake->on_buffer_requested(buffer, size, max_records);
  *buffer = nullptr;
  *size = 0;
  *max_records = 0;
}

void on_buffer_completed(Context context, std::uint32_t stream, std::uint8_t* buffer, std::size_t /*size*/,
                         std::size_t valid_bytes) {
  RecordIntake* intake = hooks.intake.load();
  if (intake != nullptr) intake->on_buffer_completed(context, stream, buffer, valid_bytes);
}

std::uint64_t own_clock() {
  hooks.clock_calls.fetch_add(1, std::memory_order_relaxed);
  return static_cast<std::uint64_t>(monotonic_ns());
}

}  // namespace

CuptiSession::CuptiSession(CuptiApi api, KernelSink& sink, Position position, std::chrono::milliseconds farewell)
    : api_(std::move(api)),
      sink_(sink),
      position_(position),
      farewell_(farewell),
      // CUPTI fits its clock to the device's with a line, so its times can be slightly early.
      intake_(api_, sink, monotonic_ns() - kNanosecondsPerSecond) {}

CuptiSession::~CuptiSession() {
  finish();
  RecordIntake* mine = &intake_;  // still set if finish() gave up
  hooks.intake.compare_exchange_strong(mine, nullptr);
}

Status CuptiSession::start() {
  const SignalShield signals_are_for_the_program;  // CUPTI's threads must not take them
  const std::lock_guard hold_control(control_);
  RecordIntake* nobody = nullptr;
  if (!hooks.intake.compare_exchange_strong(nobody, &intake_)) {
    return Error{ErrorCode::usage, "this process records its kernels already", ""};
  }
  const std::lock_guard hold(switches_);
  listening_ = true;
  alive_.store(true);
  Status acquired = acquire();
  if (!acquired) {
    alive_.store(false);
    unsubscribe();
    hooks.intake.store(nullptr);
    return std::move(acquired).error().with_context("recording kernels with " + api_.path());
  }
  note_moment();
  losses_.restart(seen(monotonic_ns()));
  return Done{};
}

Status CuptiSession::acquire() {
  subscribe();
  set_clock();  // before any kind is enabled, so that all records use one clock
  const Outcome outcome = api_.functions().register_buffers(on_buffer_requested, on_buffer_completed);
  if (outcome != Outcome::success) return Error{ErrorCode::io, "registering buffers: " + api_.text_of(outcome), ""};
  if (listening_) return set_kinds(true);
  return Done{};
}

void CuptiSession::subscribe() {
  if (!api_.can_place() || subscriber_ != nullptr) return;
  const Outcome outcome = api_.functions().subscribe(&subscriber_, on_callback, this);
  if (outcome != Outcome::success) {
    subscriber_ = nullptr;
    const bool taken = outcome == Outcome::multiple_subscribers;
    note("kernels_without_places",
         taken ? "another profiler is subscribed to CUPTI: from then on launches of kernels are not seen"
               : "CUPTI did not tell of launches, so kernels are not tied to layers: " + api_.text_of(outcome),
         taken ? "run without the other profiler (nsys, ncu, cuda-gdb, torch.profiler)" : "");
    return;
  }
  if (callbacks_.launches.empty()) callbacks_ = find_launch_callbacks(api_.functions());
  if (callbacks_.launches.empty()) note("kernels_without_places", "CUPTI does not name the calls that launch kernels");
  const auto enable = [this](Domain domain, std::uint32_t id) {
    api_.functions().enable_callback(1, subscriber_, domain, id);
  };
  for (const std::uint32_t id : callbacks_.copies) enable(Domain::driver, id);
  if (api_.can_trace_graphs()) {
    // Always enabled: a graph may be captured in an untraced step and launched in a traced one.
    for (const std::uint32_t id :
         {kGraphNodeCreated, kGraphNodeCloned, kGraphExecCreated, kGraphNodeUpdated, kGraphNodeSet}) {
      enable(Domain::resource, id);
    }
  }
  set_launch_callbacks(listening_);
}

void CuptiSession::unsubscribe() {
  if (subscriber_ != nullptr) api_.functions().unsubscribe(subscriber_);
  subscriber_ = nullptr;
}

void CuptiSession::set_clock() {
  own_clock_ = false;
  if (!api_.can_set_clock()) return;
  const Outcome outcome = api_.functions().register_clock(own_clock);
  own_clock_ = outcome == Outcome::success;
  if (!own_clock_) note("cupti_clock", "CUPTI keeps its own clock: " + api_.text_of(outcome));
  can_probe_ = own_clock_ && !clock_is_taken();
}

// Callbacks of copies stay enabled in untraced steps: they are few, and return at once.
void CuptiSession::set_launch_callbacks(bool on) {
  if (subscriber_ == nullptr) return;
  for (const std::uint32_t id : callbacks_.launches) {
    api_.functions().enable_callback(on ? 1 : 0, subscriber_, Domain::driver, id);
  }
}

// A noted launch without a record costs nothing; a record without a noted launch has no scope. So noting launches
// starts before records and stops after them.
Status CuptiSession::set_kinds(bool on) {
  if (on) hears_.store(true);
  for (const RecordKind kind : kRecordedKinds) {
    const Outcome outcome = on ? api_.functions().enable(kind) : api_.functions().disable(kind);
    if (outcome == Outcome::success) continue;
    if (on && kind == RecordKind::concurrent_kernel) {
      hears_.store(false);
      return kernels_refused(api_.text_of(outcome), outcome);
    }
    note("cupti_kind", "CUPTI did not switch records of kind " + std::to_string(static_cast<unsigned>(kind)) +
                           (on ? " on: " : " off: ") + api_.text_of(outcome));
  }
  hears_.store(on);
  return Done{};
}

void CuptiSession::on_callback(void* user, Domain domain, std::uint32_t id, const void* data) {
  auto& session = *static_cast<CuptiSession*>(user);
  if (domain == Domain::driver) {
    const auto& call = *static_cast<const ApiCall*>(data);
    if (call.site == kApiExit && session.rest_.load(std::memory_order_relaxed) == Rest::leaving) {
      return session.close_in_callback();
    }
    if (call.site != kApiEnter || !session.hears()) return;
    session.launches_.fetch_add(1, std::memory_order_relaxed);
    session.sink_.on_launch(call.correlation, session.position_.scope(), session.position_.step());
  } else if (domain == Domain::resource && session.alive_.load(std::memory_order_relaxed)) {
    const auto& change = *static_cast<const ResourceData*>(data);
    if (change.descriptor != nullptr) session.on_graph(id, *change.descriptor);
  }
}

void CuptiSession::on_graph(std::uint32_t id, const GraphChange& change) {
  rest_is_allowed_.store(false, std::memory_order_relaxed);
  // Most nodes get parameters individually, and often.
  if (id == kGraphNodeSet && !nested_graphs_.update_is_open()) return;
  std::uint64_t node = 0;
  std::uint64_t original = 0;
  std::uint32_t graph = 0;
  const Functions& functions = api_.functions();
  const bool is_executable = id == kGraphExecCreated;
  if (!is_executable && functions.graph_node_id(change.node, &node) != Outcome::success) return;
  try {
    if (id == kGraphNodeCreated) {
      nested_graphs_.on_created(node);
      sink_.on_graph_node(node, position_.scope());
    } else if (id == kGraphNodeCloned && functions.graph_node_id(change.original_node, &original) == Outcome::success) {
      nested_graphs_.on_copied(original, node);
      sink_.on_graph_node_copied(original, node);
    } else if (is_executable && functions.graph_id != nullptr &&
               functions.graph_id(change.graph, &graph) == Outcome::success) {
      for (const auto& [told, same] : nested_graphs_.on_executable(graph)) sink_.on_graph_node_copied(told, same);
    } else if (id == kGraphNodeUpdated) {
      nested_graphs_.on_updated(node);
    } else if (id == kGraphNodeSet) {
      const auto pair = nested_graphs_.on_parameters_set(node);
      if (pair) sink_.on_graph_node_copied(pair->first, pair->second);
    }
  } catch (const std::bad_alloc&) {
    unplaced_nodes_.fetch_add(1);  // the program goes on; diagnostics() reports it
  }
}

bool CuptiSession::clock_is_taken() {
  const std::uint64_t calls = hooks.clock_calls.load();
  std::uint64_t ignored = 0;
  if (api_.functions().timestamp(&ignored) != Outcome::success) return false;
  return hooks.clock_calls.load() == calls;
}

void CuptiSession::note_moment() {
  const std::int64_t before_ns = monotonic_ns();
  if (own_clock_) return intake_.add_moment(before_ns, before_ns);
  std::uint64_t theirs_ns = 0;
  if (api_.functions().timestamp(&theirs_ns) != Outcome::success) return;
  intake_.add_moment(static_cast<std::int64_t>(theirs_ns), before_ns + (monotonic_ns() - before_ns) / 2);
}

LossWatch::Seen CuptiSession::seen(std::int64_t now_ns) {
  return {.now_ns = now_ns,
          .launches = launches(),
          .records = intake_.counts().records,
          .room = intake_.room_lent(),
          .clock_is_taken = can_probe_ && clock_is_taken()};
}

void CuptiSession::poll(std::int64_t now_ns) {
  const std::unique_lock hold_control(control_, std::try_to_lock);
  if (!hold_control || !alive_.load() || profiled_since_ns_ || rest_.load() != Rest::awake) return;
  if (has_woken_.exchange(false)) losses_.restart(seen(now_ns));
  if (!can_probe_ || !clock_is_taken()) note_moment();
  note_flush(api_.functions().flush_all(0));
  const std::optional<std::int64_t> since_ns = losses_.lost_since(seen(now_ns));
  if (!since_ns) return consider_rest(now_ns);
  recover(now_ns);
  note_loss(lost_to_silence_, *since_ns, now_ns);
}

void CuptiSession::recover(std::int64_t now_ns) {
  const SignalShield signals_are_for_the_program;
  {
    const std::lock_guard hold(switches_);
    lent_ = false;
    is_shared_ = true;
    rest_.store(Rest::awake);
    intake_.write_off_buffers();
    unsubscribe();  // may be invalid: the other profiler may have closed CUPTI for the whole process
    const Status acquired = acquire();
    if (!acquired) note("cupti_lost", acquired.error().message, acquired.error().remedy);
  }
  note_moment();
  losses_.restart(seen(now_ns));
}

void CuptiSession::someone_profiles(bool running, std::int64_t now_ns) {
  const std::unique_lock hold_control(control_, kPatience);
  if (!hold_control || !alive_.load() || running == profiled_since_ns_.has_value()) return;
  if (running) {
    profiled_since_ns_ = now_ns;
    return lend();
  }
  note_loss(lost_to_profiler_, *profiled_since_ns_, now_ns);
  profiled_since_ns_.reset();
  recover(now_ns);
}

void CuptiSession::lend() {
  {
    const std::lock_guard hold(switches_);
    lent_ = true;
    is_shared_ = true;
    if (rest_.load() == Rest::closed) return;
    rest_.store(Rest::awake);
    const Status switched_off = set_kinds(false);
    if (!switched_off) note("cupti_kind", switched_off.error().message);
    unsubscribe();  // some profilers fail when they cannot subscribe
  }
  // Forced: CUPTI would give its current buffers to the other profiler, which discards them.
  note_flush(api_.functions().flush_all(kFlushForced));
}

void CuptiSession::finish() {
  if (!alive_.load()) return;
  const std::unique_lock hold_control(control_, kPatience);
  std::unique_lock hold(switches_, kPatience);
  if (!hold_control || !hold)
    return note("cupti_hangs", "CUPTI was still busy at the end: its last records are missing");
  if (!alive_.exchange(false)) return;
  hears_.store(false);
  if (profiled_since_ns_) note_loss(lost_to_profiler_, *profiled_since_ns_, monotonic_ns());
  const bool has_records = !lent_ && rest_.exchange(Rest::awake) != Rest::closed;
  const auto let_go = [functions = api_.functions(), subscriber = std::exchange(subscriber_, nullptr), has_records] {
    Outcome flushed = Outcome::success;
    if (has_records) {
      for (const RecordKind kind : kRecordedKinds) functions.disable(kind);
      flushed = functions.flush_all(kFlushForced);
    }
    if (subscriber != nullptr) functions.unsubscribe(subscriber);
    return flushed;
  };
  hold.unlock();
  const std::optional<Outcome> flushed = outcome_within(farewell_, let_go);
  intake_.close();
  // Buffers that come back later are ignored; another session may start.
  RecordIntake* mine = &intake_;
  hooks.intake.compare_exchange_strong(mine, nullptr);
  if (!flushed) return note("cupti_hangs", "CUPTI did not come back from its last flush: its last records are missing");
  note_flush(*flushed);
}

void CuptiSession::abandon() noexcept {
  alive_.store(false);
  hears_.store(false);
  rest_.store(Rest::awake);
  intake_.close();
  hooks.intake.store(nullptr);
}

void CuptiSession::note(std::string code, std::string message, std::string remedy) {
  const std::lock_guard hold(notes_);
  noted_.add({std::move(code), 1, std::move(message), std::move(remedy)});
}

void CuptiSession::note_flush(Outcome outcome) {
  if (outcome != Outcome::success) note("cupti_flush", "CUPTI did not hand out its records: " + api_.text_of(outcome));
}

void CuptiSession::note_loss(Losses& losses, std::int64_t since_ns, std::int64_t now_ns) {
  sink_.on_loss(since_ns, now_ns);
  const std::lock_guard hold(notes_);
  losses.add(since_ns, now_ns);
}

Diagnostics CuptiSession::diagnostics() const {
  Diagnostics all = api_.diagnostics();
  {
    const std::lock_guard hold(notes_);
    all.add_all(noted_);
    report_losses(lost_to_silence_, lost_to_profiler_, all);
  }
  report_counts(intake_.counts(), all);
  if (const std::uint64_t nodes = unplaced_nodes_.load(); nodes > 0) {
    all.add({"graphs_without_places", nodes, "nodes of CUDA graphs were not noted, for want of memory", ""});
  }
  return all;
}

}  // namespace joulemap::capture::cupti
