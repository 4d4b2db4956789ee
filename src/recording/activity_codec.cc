// SPDX-License-Identifier: Apache-2.0
#include "recording/activity_codec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "recording/column.h"
#include "recording/last_kernel_durations.h"
#include "recording/record_codec.h"
#include "recording/wire.h"

namespace joulemap::recording {
namespace {

constexpr std::uint8_t kTraced = 1;
constexpr std::uint8_t kDetailed = 2;
constexpr unsigned kMaxShift = 20;

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Number of rows that follow, at most `most`. The remaining bytes do not bound it: a byte can encode several rows.
std::size_t take_rows(WireReader& in, std::size_t most) {
  const std::uint64_t rows = in.varint();
  if (rows > most) in.fail();
  return in.ok() ? static_cast<std::size_t>(rows) : 0;
}

template <class Row, class Member>
void put_ids(WireWriter& out, const std::vector<Row>& rows, Member Row::*member) {
  out.varints(rows, [member](const Row& row) { return std::uint64_t{row.*member}; });
}

template <class Row>
void take_ids(WireReader& in, std::vector<Row>& rows, std::uint32_t Row::*member) {
  for (Row& row : rows) row.*member = static_cast<std::uint32_t>(in.varint());
}

template <class Row>
void take_counts(WireReader& in, std::vector<Row>& rows, std::uint64_t Row::*member) {
  for (Row& row : rows) row.*member = in.varint();
}

template <class Row>
void put_times(WireWriter& out, const std::vector<Row>& rows, std::int64_t Row::*member, unsigned shift) {
  std::vector<std::uint64_t> values(rows.size());
  std::transform(rows.begin(), rows.end(), values.begin(), [=](const Row& row) { return bits(row.*member >> shift); });
  encode_column(out, values);
}

template <class Row>
void take_times(WireReader& in, std::vector<Row>& rows, std::int64_t Row::*member, unsigned shift) {
  const std::vector<std::uint64_t> values = decode_column(in, rows.size());
  if (!in.ok()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].*member = static_cast<std::int64_t>(values[i] << shift);
}

void put_scopes(WireWriter& out, const std::vector<Scope>& scopes) {
  out.varint(scopes.size());
  WireWriter fields;
  for (const Scope& scope : scopes) {
    fields.clear();
    fields.varint(scope.id);
    fields.varint(scope.parent);
    fields.u8(static_cast<std::uint8_t>(scope.kind));
    fields.text(std::string_view(scope.name).substr(0, kMaxTextBytes));
    out.text(fields.bytes());
  }
}

void take_scopes(WireReader& in, DecodedActivity& decoded) {
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    WireReader fields = in.record();
    Scope scope;
    scope.id = static_cast<std::uint32_t>(fields.varint());
    scope.parent = static_cast<std::uint32_t>(fields.varint());
    const std::uint8_t kind = fields.u8();
    scope.name = fields.text();
    if (!fields.ok()) return in.fail();
    scope.kind = static_cast<ScopeKind>(kind);
    kind < kScopeKindCount ? decoded.activity.scopes.push_back(std::move(scope)) : void(++decoded.unknown);
  }
}

void put_classes(WireWriter& out, const std::vector<KernelClass>& classes) {
  out.varint(classes.size());
  for (const KernelClass& known : classes) {
    WireWriter fields;
    fields.varint(known.id);
    fields.u8(static_cast<std::uint8_t>(known.kind));
    for (const std::uint32_t extent : known.grid) fields.varint(extent);
    for (const std::uint32_t extent : known.block) fields.varint(extent);
    fields.text(std::string_view(known.name).substr(0, kMaxTextBytes));
    out.text(fields.bytes());
  }
}

void take_classes(WireReader& in, DecodedActivity& decoded) {
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    WireReader fields = in.record();
    KernelClass known;
    known.id = static_cast<std::uint32_t>(fields.varint());
    const std::uint8_t kind = fields.u8();
    for (std::uint32_t& extent : known.grid) extent = static_cast<std::uint32_t>(fields.varint());
    for (std::uint32_t& extent : known.block) extent = static_cast<std::uint32_t>(fields.varint());
    known.name = fields.text();
    if (!fields.ok()) return in.fail();
    known.kind = static_cast<KernelKind>(kind);
    kind < kKernelKindCount ? decoded.activity.classes.push_back(std::move(known)) : void(++decoded.unknown);
  }
}

void put_queues(WireWriter& out, const std::vector<KernelQueue>& queues) {
  out.varint(queues.size());
  for (const KernelQueue& queue : queues) {
    WireWriter fields;
    fields.varint(queue.id);
    fields.text(std::string_view(queue.device).substr(0, kMaxTextBytes));
    for (const std::uint32_t number : {queue.ordinal, queue.context, queue.stream}) fields.varint(number);
    out.text(fields.bytes());
  }
}

void take_queues(WireReader& in, std::vector<KernelQueue>& queues) {
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    WireReader fields = in.record();
    KernelQueue queue;
    queue.id = static_cast<std::uint32_t>(fields.varint());
    queue.device = fields.text();
    queue.ordinal = static_cast<std::uint32_t>(fields.varint());
    queue.context = static_cast<std::uint32_t>(fields.varint());
    queue.stream = static_cast<std::uint32_t>(fields.varint());
    if (!fields.ok()) return in.fail();
    queues.push_back(std::move(queue));
  }
}

void put_scope_tallies(WireWriter& out, const std::vector<ScopeTally>& tallies, unsigned shift) {
  out.varint(tallies.size());
  put_ids(out, tallies, &ScopeTally::scope);
  put_ids(out, tallies, &ScopeTally::count);
  put_ids(out, tallies, &ScopeTally::sampled);
  WireWriter walls;
  put_times(walls, tallies, &ScopeTally::wall_ns, shift);
  out.raw(walls.bytes());
  // In imported traces the CPU time equals the wall time: its encoded column is written again.
  const bool are_same_views = std::ranges::equal(tallies, tallies, {}, &ScopeTally::wall_ns, &ScopeTally::cpu_ns);
  are_same_views ? out.raw(walls.bytes()) : put_times(out, tallies, &ScopeTally::cpu_ns, shift);
  put_times(out, tallies, &ScopeTally::helper_threads_ns, shift);
}

void take_scope_tallies(WireReader& in, std::vector<ScopeTally>& tallies, unsigned shift) {
  tallies.resize(take_rows(in, kMaxRowsPerChunk));
  take_ids(in, tallies, &ScopeTally::scope);
  take_counts(in, tallies, &ScopeTally::count);
  take_counts(in, tallies, &ScopeTally::sampled);
  for (const auto member : {&ScopeTally::wall_ns, &ScopeTally::cpu_ns, &ScopeTally::helper_threads_ns}) {
    take_times(in, tallies, member, shift);
  }
}

void put_kernel_tallies(WireWriter& out, const std::vector<KernelTally>& tallies, unsigned shift) {
  out.varint(tallies.size());
  for (const auto member : {&KernelTally::class_id, &KernelTally::queue, &KernelTally::scope}) {
    put_ids(out, tallies, member);
  }
  put_ids(out, tallies, &KernelTally::count);
  put_times(out, tallies, &KernelTally::time_ns, shift);
}

void take_kernel_tallies(WireReader& in, std::vector<KernelTally>& tallies, unsigned shift) {
  tallies.resize(take_rows(in, kMaxRowsPerChunk));
  for (const auto member : {&KernelTally::class_id, &KernelTally::queue, &KernelTally::scope}) {
    take_ids(in, tallies, member);
  }
  take_counts(in, tallies, &KernelTally::count);
  take_times(in, tallies, &KernelTally::time_ns, shift);
}

void put_steps(WireWriter& out, const std::vector<StepRecord>& steps, unsigned shift) {
  out.varint(steps.size());
  for (const StepRecord& step : steps) out.u8((step.traced ? kTraced : 0) | (step.has_kernel_records ? kDetailed : 0));
  put_ids(out, steps, &StepRecord::kernel_sequence_hash);
  put_ids(out, steps, &StepRecord::kernels);
  put_times(out, steps, &StepRecord::number, 0);
  for (const auto member : {&StepRecord::begin_ns, &StepRecord::end_ns, &StepRecord::gpu_ns}) {
    put_times(out, steps, member, shift);
  }
}

void take_steps(WireReader& in, std::vector<StepRecord>& steps, unsigned shift) {
  steps.resize(take_rows(in, kMaxRowsPerChunk));
  for (StepRecord& step : steps) {
    const std::uint8_t flags = in.u8();
    step.traced = (flags & kTraced) != 0;
    step.has_kernel_records = (flags & kDetailed) != 0;
  }
  take_counts(in, steps, &StepRecord::kernel_sequence_hash);
  take_counts(in, steps, &StepRecord::kernels);
  take_times(in, steps, &StepRecord::number, 0);
  for (const auto member : {&StepRecord::begin_ns, &StepRecord::end_ns, &StepRecord::gpu_ns}) {
    take_times(in, steps, member, shift);
  }
}

void put_shares(WireWriter& out, const std::vector<ScopeShare>& shares, unsigned shift) {
  out.varint(shares.size());
  put_ids(out, shares, &ScopeShare::coarse_scope);
  put_ids(out, shares, &ScopeShare::scope);
  put_ids(out, shares, &ScopeShare::count);
  put_times(out, shares, &ScopeShare::time_ns, shift);
}

void take_shares(WireReader& in, std::vector<ScopeShare>& shares, unsigned shift) {
  shares.resize(take_rows(in, kMaxRowsPerChunk));
  take_ids(in, shares, &ScopeShare::coarse_scope);
  take_ids(in, shares, &ScopeShare::scope);
  take_counts(in, shares, &ScopeShare::count);
  take_times(in, shares, &ScopeShare::time_ns, shift);
}

void put_waits(WireWriter& out, const std::vector<WaitTally>& waits, unsigned shift) {
  out.varint(waits.size());
  put_ids(out, waits, &WaitTally::queue);
  put_ids(out, waits, &WaitTally::scope);
  for (const WaitTally& wait : waits) out.u8(static_cast<std::uint8_t>(wait.kind));
  put_ids(out, waits, &WaitTally::count);
  put_times(out, waits, &WaitTally::time_ns, shift);
}

// Activities without waits, and those of earlier versions, end before this list. A kind of a newer version counts as
// `host`.
void take_waits(WireReader& in, std::vector<WaitTally>& waits, unsigned shift) {
  if (!in.ok() || in.rest().empty()) return;
  waits.resize(take_rows(in, kMaxRowsPerChunk));
  take_ids(in, waits, &WaitTally::queue);
  take_ids(in, waits, &WaitTally::scope);
  for (WaitTally& wait : waits) {
    const std::uint8_t kind = in.u8();
    wait.kind = kind < kWaitKinds ? static_cast<WaitKind>(kind) : WaitKind::host;
  }
  take_counts(in, waits, &WaitTally::count);
  take_times(in, waits, &WaitTally::time_ns, shift);
}

void put_kernels(WireWriter& out, const std::vector<Kernel>& kernels, std::int64_t base_ns, unsigned shift) {
  out.varint(kernels.size());
  for (const auto member : {&Kernel::class_id, &Kernel::queue, &Kernel::scope}) put_ids(out, kernels, member);
  std::uint64_t correlation = 0;
  out.varints(kernels, [&](const Kernel& kernel) {
    return zigzag(kernel.correlation - std::exchange(correlation, kernel.correlation));
  });
  put_ids(out, kernels, &Kernel::bytes);
  std::vector<std::uint64_t> gaps(kernels.size());
  std::vector<std::uint64_t> changes(kernels.size());
  LastKernelDurations last;
  std::uint64_t end = bits(base_ns >> shift);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Kernel& kernel = kernels[i];
    const std::uint64_t start = bits(kernel.start_ns >> shift);
    const std::uint64_t duration = bits((kernel.end_ns - kernel.start_ns) >> shift);
    gaps[i] = start - end;
    end = start + duration;
    changes[i] = duration - std::exchange(last.last_duration(kernel), duration);
  }
  encode_column(out, gaps);
  encode_column(out, changes);
}

void take_kernels(WireReader& in, std::vector<Kernel>& kernels, std::int64_t base_ns, unsigned shift) {
  kernels.resize(take_rows(in, kMaxKernelsPerChunk));
  for (const auto member : {&Kernel::class_id, &Kernel::queue, &Kernel::scope}) take_ids(in, kernels, member);
  std::int64_t correlation = 0;
  for (Kernel& kernel : kernels) {
    correlation = static_cast<std::int64_t>(bits(correlation) + bits(in.svarint()));
    kernel.correlation = static_cast<std::uint32_t>(correlation);
  }
  take_counts(in, kernels, &Kernel::bytes);
  const std::vector<std::uint64_t> gaps = decode_column(in, kernels.size());
  const std::vector<std::uint64_t> changes = decode_column(in, kernels.size());
  if (!in.ok()) return;
  LastKernelDurations last;
  std::uint64_t end = bits(base_ns >> shift);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::uint64_t start = end + gaps[i];
    const std::uint64_t duration = last.last_duration(kernels[i]) += changes[i];
    end = start + duration;
    kernels[i].start_ns = static_cast<std::int64_t>(start << shift);
    kernels[i].end_ns = static_cast<std::int64_t>(end << shift);
  }
}

// Bounds times, so that sums in later code cannot overflow: rejects durations of years and negative durations.
constexpr std::int64_t kLongest_ns = std::int64_t{1} << 56;
constexpr std::int64_t kLatest_ns = std::int64_t{1} << 61;

bool is_sane(std::int64_t from_ns, std::int64_t to_ns) {
  return from_ns > -kLatest_ns && to_ns < kLatest_ns && from_ns <= to_ns && to_ns - from_ns <= kLongest_ns;
}

bool is_sane(const Activity& activity) {
  const auto tally_is = [](const ScopeTally& tally) {
    return is_sane(0, tally.wall_ns) && is_sane(0, tally.cpu_ns) && is_sane(0, tally.helper_threads_ns);
  };
  const auto sum_is = [](const KernelTally& tally) { return is_sane(0, tally.time_ns); };
  const auto step_is = [](const StepRecord& step) {
    return is_sane(step.begin_ns, step.end_ns) && is_sane(0, step.gpu_ns);
  };
  const auto kernel_is = [](const Kernel& kernel) { return is_sane(kernel.start_ns, kernel.end_ns); };
  const auto share_is = [](const ScopeShare& share) { return is_sane(0, share.time_ns); };
  const auto wait_is = [](const WaitTally& wait) { return is_sane(0, wait.time_ns); };
  return is_sane(activity.begin_ns, activity.end_ns) && std::ranges::all_of(activity.scope_tallies, tally_is) &&
         std::ranges::all_of(activity.kernel_tallies, sum_is) && std::ranges::all_of(activity.steps, step_is) &&
         std::ranges::all_of(activity.kernels, kernel_is) && std::ranges::all_of(activity.shares, share_is) &&
         std::ranges::all_of(activity.waits, wait_is);
}

}  // namespace

std::string encode_activity(const Activity& activity, unsigned time_unit_log2) {
  WireWriter out;
  out.u8(static_cast<std::uint8_t>(time_unit_log2));
  out.svarint(activity.begin_ns);
  out.svarint(activity.end_ns);
  put_scopes(out, activity.scopes);
  put_classes(out, activity.classes);
  put_queues(out, activity.queues);
  put_scope_tallies(out, activity.scope_tallies, time_unit_log2);
  put_kernel_tallies(out, activity.kernel_tallies, time_unit_log2);
  put_steps(out, activity.steps, time_unit_log2);
  put_kernels(out, activity.kernels, activity.begin_ns, time_unit_log2);
  put_shares(out, activity.shares, time_unit_log2);
  if (!activity.waits.empty()) put_waits(out, activity.waits, time_unit_log2);
  return std::move(out).take();
}

std::optional<DecodedActivity> decode_activity(std::string_view payload) {
  WireReader in(payload);
  DecodedActivity decoded;
  Activity& activity = decoded.activity;
  const unsigned shift = in.u8();
  if (shift > kMaxShift) return std::nullopt;
  activity.begin_ns = in.svarint();
  activity.end_ns = in.svarint();
  take_scopes(in, decoded);
  take_classes(in, decoded);
  take_queues(in, activity.queues);
  take_scope_tallies(in, activity.scope_tallies, shift);
  take_kernel_tallies(in, activity.kernel_tallies, shift);
  take_steps(in, activity.steps, shift);
  take_kernels(in, activity.kernels, activity.begin_ns, shift);
  take_shares(in, activity.shares, shift);
  take_waits(in, activity.waits, shift);
  if (!in.ok() || !is_sane(activity)) return std::nullopt;
  return decoded;
}

}  // namespace joulemap::recording
