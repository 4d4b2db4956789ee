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

constexpr std::uint8_t kTracedStepFlag = 1;
constexpr std::uint8_t kKernelRecordsFlag = 2;
constexpr unsigned kMaxTimeUnitShift = 20;

std::uint64_t to_unsigned_bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Number of rows that follow, at most `max_rows`. The remaining bytes do not bound it: a byte can encode several rows.
std::size_t read_row_count(WireReader& reader, std::size_t max_rows) {
  const std::uint64_t rows = reader.read_varint();
  if (rows > max_rows) reader.mark_as_failed();
  return reader.ok() ? static_cast<std::size_t>(rows) : 0;
}

template <class Row, class Member>
void write_id_column(WireWriter& out, const std::vector<Row>& rows, Member Row::*member) {
  out.write_varints(rows, [member](const Row& row) { return std::uint64_t{row.*member}; });
}

template <class Row>
void read_id_column(WireReader& reader, std::vector<Row>& rows, std::uint32_t Row::*member) {
  for (Row& row : rows) row.*member = static_cast<std::uint32_t>(reader.read_varint());
}

template <class Row>
void read_count_column(WireReader& reader, std::vector<Row>& rows, std::uint64_t Row::*member) {
  for (Row& row : rows) row.*member = reader.read_varint();
}

template <class Row>
void write_time_column(WireWriter& out, const std::vector<Row>& rows, std::int64_t Row::*member, unsigned shift) {
  std::vector<std::uint64_t> values(rows.size());
  std::transform(rows.begin(), rows.end(), values.begin(),
                 [=](const Row& row) { return to_unsigned_bits(row.*member >> shift); });
  encode_column(out, values);
}

template <class Row>
void read_time_column(WireReader& reader, std::vector<Row>& rows, std::int64_t Row::*member, unsigned shift) {
  const std::vector<std::uint64_t> values = decode_column(reader, rows.size());
  if (!reader.ok()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].*member = static_cast<std::int64_t>(values[i] << shift);
}

void write_scopes(WireWriter& out, const std::vector<Scope>& scopes) {
  out.write_varint(scopes.size());
  WireWriter fields;
  for (const Scope& scope : scopes) {
    fields.clear();
    fields.write_varint(scope.id);
    fields.write_varint(scope.parent);
    fields.write_u8(static_cast<std::uint8_t>(scope.kind));
    fields.write_text(std::string_view(scope.name).substr(0, kMaxTextBytes));
    out.write_text(fields.bytes());
  }
}

void read_scopes(WireReader& reader, DecodedActivity& decoded) {
  for (std::size_t remaining_scopes = reader.read_count(); remaining_scopes > 0 && reader.ok(); --remaining_scopes) {
    WireReader fields = reader.read_record();
    Scope scope;
    scope.id = static_cast<std::uint32_t>(fields.read_varint());
    scope.parent = static_cast<std::uint32_t>(fields.read_varint());
    const std::uint8_t kind = fields.read_u8();
    scope.name = fields.read_text();
    if (!fields.ok()) return reader.mark_as_failed();
    scope.kind = static_cast<ScopeKind>(kind);
    kind < kScopeKindCount ? decoded.activity.scopes.push_back(std::move(scope)) : void(++decoded.unknown_scope_count);
  }
}

void write_kernel_classes(WireWriter& out, const std::vector<KernelClass>& classes) {
  out.write_varint(classes.size());
  for (const KernelClass& kernel_class : classes) {
    WireWriter fields;
    fields.write_varint(kernel_class.id);
    fields.write_u8(static_cast<std::uint8_t>(kernel_class.kind));
    for (const std::uint32_t extent : kernel_class.grid) fields.write_varint(extent);
    for (const std::uint32_t extent : kernel_class.block) fields.write_varint(extent);
    fields.write_text(std::string_view(kernel_class.name).substr(0, kMaxTextBytes));
    out.write_text(fields.bytes());
  }
}

void read_kernel_classes(WireReader& reader, DecodedActivity& decoded) {
  for (std::size_t remaining_classes = reader.read_count(); remaining_classes > 0 && reader.ok(); --remaining_classes) {
    WireReader fields = reader.read_record();
    KernelClass kernel_class;
    kernel_class.id = static_cast<std::uint32_t>(fields.read_varint());
    const std::uint8_t kind = fields.read_u8();
    for (std::uint32_t& extent : kernel_class.grid) extent = static_cast<std::uint32_t>(fields.read_varint());
    for (std::uint32_t& extent : kernel_class.block) extent = static_cast<std::uint32_t>(fields.read_varint());
    kernel_class.name = fields.read_text();
    if (!fields.ok()) return reader.mark_as_failed();
    kernel_class.kind = static_cast<KernelKind>(kind);
    kind < kKernelKindCount ? decoded.activity.classes.push_back(std::move(kernel_class))
                            : void(++decoded.unknown_scope_count);
  }
}

void write_queues(WireWriter& out, const std::vector<KernelQueue>& queues) {
  out.write_varint(queues.size());
  for (const KernelQueue& queue : queues) {
    WireWriter fields;
    fields.write_varint(queue.id);
    fields.write_text(std::string_view(queue.device).substr(0, kMaxTextBytes));
    for (const std::uint32_t number : {queue.ordinal, queue.context, queue.stream}) fields.write_varint(number);
    out.write_text(fields.bytes());
  }
}

void read_queues(WireReader& reader, std::vector<KernelQueue>& queues) {
  for (std::size_t remaining_queues = reader.read_count(); remaining_queues > 0 && reader.ok(); --remaining_queues) {
    WireReader fields = reader.read_record();
    KernelQueue queue;
    queue.id = static_cast<std::uint32_t>(fields.read_varint());
    queue.device = fields.read_text();
    queue.ordinal = static_cast<std::uint32_t>(fields.read_varint());
    queue.context = static_cast<std::uint32_t>(fields.read_varint());
    queue.stream = static_cast<std::uint32_t>(fields.read_varint());
    if (!fields.ok()) return reader.mark_as_failed();
    queues.push_back(std::move(queue));
  }
}

void write_scope_tallies(WireWriter& out, const std::vector<ScopeTally>& tallies, unsigned shift) {
  out.write_varint(tallies.size());
  write_id_column(out, tallies, &ScopeTally::scope);
  write_id_column(out, tallies, &ScopeTally::count);
  write_id_column(out, tallies, &ScopeTally::sampled_count);
  WireWriter wall_time_column;
  write_time_column(wall_time_column, tallies, &ScopeTally::wall_ns, shift);
  out.write_raw(wall_time_column.bytes());
  // In imported traces the CPU time equals the wall time: its encoded column is written again.
  const bool are_wall_and_cpu_equal =
      std::ranges::equal(tallies, tallies, {}, &ScopeTally::wall_ns, &ScopeTally::cpu_ns);
  are_wall_and_cpu_equal ? out.write_raw(wall_time_column.bytes())
                         : write_time_column(out, tallies, &ScopeTally::cpu_ns, shift);
  write_time_column(out, tallies, &ScopeTally::helper_threads_cpu_ns, shift);
}

void read_scope_tallies(WireReader& reader, std::vector<ScopeTally>& tallies, unsigned shift) {
  tallies.resize(read_row_count(reader, kMaxRowsPerChunk));
  read_id_column(reader, tallies, &ScopeTally::scope);
  read_count_column(reader, tallies, &ScopeTally::count);
  read_count_column(reader, tallies, &ScopeTally::sampled_count);
  for (const auto member : {&ScopeTally::wall_ns, &ScopeTally::cpu_ns, &ScopeTally::helper_threads_cpu_ns}) {
    read_time_column(reader, tallies, member, shift);
  }
}

void write_kernel_tallies(WireWriter& out, const std::vector<KernelTally>& tallies, unsigned shift) {
  out.write_varint(tallies.size());
  for (const auto member : {&KernelTally::class_id, &KernelTally::queue, &KernelTally::scope}) {
    write_id_column(out, tallies, member);
  }
  write_id_column(out, tallies, &KernelTally::count);
  write_time_column(out, tallies, &KernelTally::time_ns, shift);
}

void read_kernel_tallies(WireReader& reader, std::vector<KernelTally>& tallies, unsigned shift) {
  tallies.resize(read_row_count(reader, kMaxRowsPerChunk));
  for (const auto member : {&KernelTally::class_id, &KernelTally::queue, &KernelTally::scope}) {
    read_id_column(reader, tallies, member);
  }
  read_count_column(reader, tallies, &KernelTally::count);
  read_time_column(reader, tallies, &KernelTally::time_ns, shift);
}

void write_step_records(WireWriter& out, const std::vector<StepRecord>& steps, unsigned shift) {
  out.write_varint(steps.size());
  for (const StepRecord& step : steps)
    out.write_u8((step.is_traced ? kTracedStepFlag : 0) | (step.has_kernel_records ? kKernelRecordsFlag : 0));
  write_id_column(out, steps, &StepRecord::kernel_sequence_hash);
  write_id_column(out, steps, &StepRecord::kernels);
  write_time_column(out, steps, &StepRecord::number, 0);
  for (const auto member : {&StepRecord::begin_ns, &StepRecord::end_ns, &StepRecord::summed_kernel_ns}) {
    write_time_column(out, steps, member, shift);
  }
}

void read_step_records(WireReader& reader, std::vector<StepRecord>& steps, unsigned shift) {
  steps.resize(read_row_count(reader, kMaxRowsPerChunk));
  for (StepRecord& step : steps) {
    const std::uint8_t flags = reader.read_u8();
    step.is_traced = (flags & kTracedStepFlag) != 0;
    step.has_kernel_records = (flags & kKernelRecordsFlag) != 0;
  }
  read_count_column(reader, steps, &StepRecord::kernel_sequence_hash);
  read_count_column(reader, steps, &StepRecord::kernels);
  read_time_column(reader, steps, &StepRecord::number, 0);
  for (const auto member : {&StepRecord::begin_ns, &StepRecord::end_ns, &StepRecord::summed_kernel_ns}) {
    read_time_column(reader, steps, member, shift);
  }
}

void write_scope_shares(WireWriter& out, const std::vector<ScopeShare>& shares, unsigned shift) {
  out.write_varint(shares.size());
  write_id_column(out, shares, &ScopeShare::coarse_scope);
  write_id_column(out, shares, &ScopeShare::scope);
  write_id_column(out, shares, &ScopeShare::count);
  write_time_column(out, shares, &ScopeShare::time_ns, shift);
}

void read_scope_shares(WireReader& reader, std::vector<ScopeShare>& shares, unsigned shift) {
  shares.resize(read_row_count(reader, kMaxRowsPerChunk));
  read_id_column(reader, shares, &ScopeShare::coarse_scope);
  read_id_column(reader, shares, &ScopeShare::scope);
  read_count_column(reader, shares, &ScopeShare::count);
  read_time_column(reader, shares, &ScopeShare::time_ns, shift);
}

void write_wait_tallies(WireWriter& out, const std::vector<WaitTally>& waits, unsigned shift) {
  out.write_varint(waits.size());
  write_id_column(out, waits, &WaitTally::queue);
  write_id_column(out, waits, &WaitTally::scope);
  for (const WaitTally& wait : waits) out.write_u8(static_cast<std::uint8_t>(wait.kind));
  write_id_column(out, waits, &WaitTally::count);
  write_time_column(out, waits, &WaitTally::time_ns, shift);
}

// Activities without waits, and those of earlier versions, end before this list. A kind of a newer version counts as
// `host`.
void read_wait_tallies(WireReader& reader, std::vector<WaitTally>& waits, unsigned shift) {
  if (!reader.ok() || reader.unread_bytes().empty()) return;
  waits.resize(read_row_count(reader, kMaxRowsPerChunk));
  read_id_column(reader, waits, &WaitTally::queue);
  read_id_column(reader, waits, &WaitTally::scope);
  for (WaitTally& wait : waits) {
    const std::uint8_t kind = reader.read_u8();
    wait.kind = kind < kWaitKindCount ? static_cast<WaitKind>(kind) : WaitKind::host;
  }
  read_count_column(reader, waits, &WaitTally::count);
  read_time_column(reader, waits, &WaitTally::time_ns, shift);
}

void write_kernels(WireWriter& out, const std::vector<Kernel>& kernels, std::int64_t base_ns, unsigned shift) {
  out.write_varint(kernels.size());
  for (const auto member : {&Kernel::class_id, &Kernel::queue, &Kernel::scope}) write_id_column(out, kernels, member);
  std::uint64_t correlation = 0;
  out.write_varints(kernels, [&](const Kernel& kernel) {
    return zigzag(kernel.correlation - std::exchange(correlation, kernel.correlation));
  });
  write_id_column(out, kernels, &Kernel::bytes);
  std::vector<std::uint64_t> gaps(kernels.size());
  std::vector<std::uint64_t> changes(kernels.size());
  LastKernelDurations last;
  std::uint64_t end = to_unsigned_bits(base_ns >> shift);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Kernel& kernel = kernels[i];
    const std::uint64_t start = to_unsigned_bits(kernel.start_ns >> shift);
    const std::uint64_t duration = to_unsigned_bits((kernel.end_ns - kernel.start_ns) >> shift);
    gaps[i] = start - end;
    end = start + duration;
    changes[i] = duration - std::exchange(last.last_duration(kernel), duration);
  }
  encode_column(out, gaps);
  encode_column(out, changes);
}

void read_kernels(WireReader& reader, std::vector<Kernel>& kernels, std::int64_t base_ns, unsigned shift) {
  kernels.resize(read_row_count(reader, kMaxKernelsPerChunk));
  for (const auto member : {&Kernel::class_id, &Kernel::queue, &Kernel::scope}) read_id_column(reader, kernels, member);
  std::int64_t correlation = 0;
  for (Kernel& kernel : kernels) {
    correlation =
        static_cast<std::int64_t>(to_unsigned_bits(correlation) + to_unsigned_bits(reader.read_signed_varint()));
    kernel.correlation = static_cast<std::uint32_t>(correlation);
  }
  read_count_column(reader, kernels, &Kernel::bytes);
  const std::vector<std::uint64_t> gaps = decode_column(reader, kernels.size());
  const std::vector<std::uint64_t> changes = decode_column(reader, kernels.size());
  if (!reader.ok()) return;
  LastKernelDurations last;
  std::uint64_t end = to_unsigned_bits(base_ns >> shift);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::uint64_t start = end + gaps[i];
    const std::uint64_t duration = last.last_duration(kernels[i]) += changes[i];
    end = start + duration;
    kernels[i].start_ns = static_cast<std::int64_t>(start << shift);
    kernels[i].end_ns = static_cast<std::int64_t>(end << shift);
  }
}

// Bounds times, so that sums in later code cannot overflow: rejects durations of years and negative durations.
constexpr std::int64_t kMaxInterval_ns = std::int64_t{1} << 56;
constexpr std::int64_t kMaxTime_ns = std::int64_t{1} << 61;

bool has_plausible_times(std::int64_t from_ns, std::int64_t to_ns) {
  return from_ns > -kMaxTime_ns && to_ns < kMaxTime_ns && from_ns <= to_ns && to_ns - from_ns <= kMaxInterval_ns;
}

bool has_plausible_times(const Activity& activity) {
  const auto has_plausible_scope_times = [](const ScopeTally& tally) {
    return has_plausible_times(0, tally.wall_ns) && has_plausible_times(0, tally.cpu_ns) &&
           has_plausible_times(0, tally.helper_threads_cpu_ns);
  };
  const auto has_plausible_kernel_time = [](const KernelTally& tally) { return has_plausible_times(0, tally.time_ns); };
  const auto has_plausible_step_times = [](const StepRecord& step) {
    return has_plausible_times(step.begin_ns, step.end_ns) && has_plausible_times(0, step.summed_kernel_ns);
  };
  const auto has_plausible_kernel_times = [](const Kernel& kernel) {
    return has_plausible_times(kernel.start_ns, kernel.end_ns);
  };
  const auto has_plausible_share_time = [](const ScopeShare& share) { return has_plausible_times(0, share.time_ns); };
  const auto has_plausible_wait_time = [](const WaitTally& wait) { return has_plausible_times(0, wait.time_ns); };
  return has_plausible_times(activity.begin_ns, activity.end_ns) &&
         std::ranges::all_of(activity.scope_tallies, has_plausible_scope_times) &&
         std::ranges::all_of(activity.kernel_tallies, has_plausible_kernel_time) &&
         std::ranges::all_of(activity.steps, has_plausible_step_times) &&
         std::ranges::all_of(activity.kernels, has_plausible_kernel_times) &&
         std::ranges::all_of(activity.shares, has_plausible_share_time) &&
         std::ranges::all_of(activity.waits, has_plausible_wait_time);
}

}  // namespace

std::string encode_activity(const Activity& activity, unsigned time_unit_log2) {
  WireWriter out;
  out.write_u8(static_cast<std::uint8_t>(time_unit_log2));
  out.write_signed_varint(activity.begin_ns);
  out.write_signed_varint(activity.end_ns);
  write_scopes(out, activity.scopes);
  write_kernel_classes(out, activity.classes);
  write_queues(out, activity.queues);
  write_scope_tallies(out, activity.scope_tallies, time_unit_log2);
  write_kernel_tallies(out, activity.kernel_tallies, time_unit_log2);
  write_step_records(out, activity.steps, time_unit_log2);
  write_kernels(out, activity.kernels, activity.begin_ns, time_unit_log2);
  write_scope_shares(out, activity.shares, time_unit_log2);
  if (!activity.waits.empty()) write_wait_tallies(out, activity.waits, time_unit_log2);
  return std::move(out).take_bytes();
}

std::optional<DecodedActivity> decode_activity(std::string_view payload) {
  WireReader in(payload);
  DecodedActivity decoded;
  Activity& activity = decoded.activity;
  const unsigned shift = in.read_u8();
  if (shift > kMaxTimeUnitShift) return std::nullopt;
  activity.begin_ns = in.read_signed_varint();
  activity.end_ns = in.read_signed_varint();
  read_scopes(in, decoded);
  read_kernel_classes(in, decoded);
  read_queues(in, activity.queues);
  read_scope_tallies(in, activity.scope_tallies, shift);
  read_kernel_tallies(in, activity.kernel_tallies, shift);
  read_step_records(in, activity.steps, shift);
  read_kernels(in, activity.kernels, activity.begin_ns, shift);
  read_scope_shares(in, activity.shares, shift);
  read_wait_tallies(in, activity.waits, shift);
  if (!in.ok() || !has_plausible_times(activity)) return std::nullopt;
  return decoded;
}

}  // namespace joulemap::recording
