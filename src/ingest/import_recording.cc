// SPDX-License-Identifier: Apache-2.0
#include "ingest/import_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "ingest/scope_assignment/activity_writer.h"
#include "ingest/scope_assignment/scope_assignment.h"
#include "recording/recording_writer.h"

namespace joulemap::ingest {
namespace {

constexpr std::size_t kPowerSamplesPerFlush = 16'384;

std::set<std::string> collect_power_domain_names(const PowerLog& power) {
  std::set<std::string> domains;
  for (const Channel& channel : power.channels) {
    if (measures_energy_or_power(channel)) domains.insert(channel.domain);
  }
  return domains;
}

void shift_trace_times(Trace& trace, std::int64_t offset_ns) {
  if (offset_ns == 0) return;
  for (std::vector<TraceEvent>& block : trace.event_blocks) {
    for (TraceEvent& event : block) {
      std::int64_t shifted_ns = 0;
      if (!__builtin_add_overflow(event.start_ns, offset_ns, &shifted_ns)) event.start_ns = shifted_ns;
    }
  }
}

}  // namespace

ImportSession::ImportSession(ImportOptions options, PowerLog power, recording::PartFolder folder)
    : options_(std::move(options)), power_log_(std::move(power)), recording_folder_(std::move(folder)) {
  for (const Sample& sample : power_log_.samples) {
    const std::int64_t time_ns = sample.reading.time_ns();
    first_power_sample_ns_ = std::min(first_power_sample_ns_.value_or(time_ns), time_ns);
  }
  std::stable_sort(power_log_.samples.begin(), power_log_.samples.end(),
                   [](const Sample& a, const Sample& b) { return a.reading.time_ns() < b.reading.time_ns(); });
  // Clears `part_of` where the log lacks the parent domain, so that the energy of the domain is added to the total.
  const std::set<std::string> domains = collect_power_domain_names(power_log_);
  for (Channel& channel : power_log_.channels) {
    if (!domains.contains(channel.part_of)) channel.part_of.clear();
  }
  import_diagnostics_ = power_log_.diagnostics;
  import_result_.power_rows_dropped = power_log_.dropped_row_count;
}

Result<ImportSession> ImportSession::begin(ImportOptions options, PowerLog power) {
  Result<recording::PartFolder> folder = recording::PartFolder::create(options.output_path, options.command);
  if (!folder) return std::move(folder).error();
  return ImportSession(std::move(options), std::move(power), std::move(*folder));
}

// Describes the part of a trace; nullptr: the recorder's part. All parts share one boot id, because their times are on
// one clock.
RecordingSource ImportSession::make_trace_source(const Trace* trace) const {
  RecordingSource source;
  source.boot_id = recording_folder_.recording_id();
  source.role = trace == nullptr ? "recorder" : "process";
  source.started_ns = static_cast<std::int64_t>(trace_count_);  // distinguishes two traces of one process
  if (trace == nullptr) source.command = options_.command;
  if (trace != nullptr) source.host = trace->host;
  if (source.host.empty()) source.host = "imported";
  if (trace != nullptr && trace->process) source.pid = *trace->process;
  return source;
}

// Where a trace or profile without absolute times begins: at --start, else with the power log, plus --offset-ms.
std::int64_t ImportSession::assumed_start_ns(const std::string& name) {
  if (options_.trace_start_ns) return options_.trace_offset_ns + *options_.trace_start_ns;
  if (!first_power_sample_ns_) return options_.trace_offset_ns;
  if (options_.trace_offset_ns == 0) {
    import_diagnostics_.add(
        {"clock_not_known", 1,
         fmt::format("{} has no start time: joulemap assumes that it starts with the power log", name),
         "set --start UNIX_NS, or --offset-ms relative to the power log"});
  }
  return options_.trace_offset_ns + *first_power_sample_ns_;
}

void ImportSession::shift_to_unix_time(Trace& trace, const std::string& name) {
  shift_trace_times(trace, trace.clock == TraceClock::since_start ? assumed_start_ns(name) : options_.trace_offset_ns);
}

void ImportSession::map_gpus_to_devices(Trace& trace) {
  const auto device_of = [&](const std::string& domain) {
    for (const Channel& channel : power_log_.channels) {
      if (channel.domain == domain && !channel.device.empty()) return channel.device;
    }
    return domain;
  };
  const auto is_measured = [&](const std::string& device) {
    return std::any_of(power_log_.channels.begin(), power_log_.channels.end(),
                       [&](const Channel& channel) { return channel.device == device; });
  };
  for (KernelQueue& queue : trace.kernel_queues) {
    auto mapping = options_.gpu_mappings.find({trace_count_, queue.ordinal});
    if (mapping == options_.gpu_mappings.end()) mapping = options_.gpu_mappings.find({std::nullopt, queue.ordinal});
    if (mapping != options_.gpu_mappings.end()) {
      used_mappings_.insert(mapping->first);
      queue.device = device_of(mapping->second);
    } else if (queue.device.empty() || !is_measured(queue.device)) {
      queue.device = device_of(fmt::format("gpu{}", queue.ordinal));
    }
  }
}

void ImportSession::extend_traced_span(TimeSpan_ns span) {
  if (!traced_span_) traced_span_ = span;
  traced_span_->begin_ns = std::min(traced_span_->begin_ns, span.begin_ns);
  traced_span_->end_ns = std::max(traced_span_->end_ns, span.end_ns);
}

// Traces of one run that overlap in time are those of its ranks, which share their steps. Traces of different times are
// parts of one process.
bool ImportSession::is_unnumbered_rank(const Trace& trace, TimeSpan_ns span) const {
  if (trace.rank || options_.trace_count < 2) return false;
  return !traced_span_ || (span.begin_ns < traced_span_->end_ns && span.end_ns > traced_span_->begin_ns);
}

Status ImportSession::add(Trace trace, const std::string& name) {
  if (trace.read_event_count == 0) {
    import_diagnostics_.add({"no_events", 1, fmt::format("{} contains no events", name),
                             "check that the profiler ran and finished writing"});
  }
  shift_to_unix_time(trace, name);
  map_gpus_to_devices(trace);
  Result<recording::RecordingWriter> writer = recording_folder_.open_part_for_source(make_trace_source(&trace));
  if (!writer) return std::move(writer).error();
  for (const EnvironmentFact& fact : trace.environment) writer->add(fact);
  if (trace.rank) writer->add(EnvironmentFact{std::string(recording::kRankFactName), std::to_string(*trace.rank)});
  const std::size_t threads =
      options_.thread_count > 0 ? options_.thread_count : ActivityWriter::default_thread_count();
  ActivityWriter out(*writer, threads);
  const ScopedTrace scoped_trace = assign_scopes(
      trace, options_.module_names, [&](Activity activity) { out.add(std::move(activity)); }, threads);
  Status status = out.finish();
  for (const Mark& mark : scoped_trace.marks) writer->add(mark);
  if (is_unnumbered_rank(trace, {scoped_trace.begin_ns, scoped_trace.end_ns}))
    writer->add(EnvironmentFact{std::string(recording::kRankFactName), std::to_string(trace_count_)});
  RecordingEnd end;
  end.diagnostics = trace.diagnostics;
  end.diagnostics.add_all(scoped_trace.diagnostics);
  import_result_.diagnostics.add_all(end.diagnostics);
  Status finish_status = writer->finish(std::move(end), recording::Durability::not_synced);
  if (status && !finish_status) status = std::move(finish_status);
  if (scoped_trace.end_ns > scoped_trace.begin_ns) extend_traced_span({scoped_trace.begin_ns, scoped_trace.end_ns});
  import_result_.events += trace.read_event_count;
  import_result_.events_dropped += trace.dropped_event_count;
  import_result_.kernels += scoped_trace.kernels;
  import_result_.kernel_s += seconds(scoped_trace.kernel_time_ns);
  import_result_.thread_time_s += seconds(scoped_trace.thread_time_in_scopes_ns);
  import_result_.steps += scoped_trace.marks.size();
  if (scoped_trace.kernel_time_ns > 0) {
    const double kernel_without_scope_s = seconds(scoped_trace.kernel_time_without_scope_ns);
    const double kernel_with_scope_s = import_result_.kernel_scope_share.value_or(0) *
                                           (import_result_.kernel_s - seconds(scoped_trace.kernel_time_ns)) +
                                       seconds(scoped_trace.kernel_time_ns) - kernel_without_scope_s;
    import_result_.kernel_scope_share = kernel_with_scope_s / import_result_.kernel_s;
  }
  ++trace_count_;
  return status;
}

Status ImportSession::add(const FunctionProfile& profile, const std::string& name) {
  if (profile.functions.empty()) {
    import_diagnostics_.add({"no_events", 1, fmt::format("{} contains no functions", name),
                             "check that the profiler ran and finished writing"});
  }
  Activity activity;
  activity.begin_ns = assumed_start_ns(name);
  std::int64_t total_own_ns = 0;
  for (const ProfiledFunction& function : profile.functions) {
    const auto id = static_cast<std::uint32_t>(activity.scopes.size() + 1);
    const auto self_ns = static_cast<std::int64_t>(function.self_s * static_cast<double>(kNanosecondsPerSecond));
    activity.scopes.push_back({id, 0, ScopeKind::function, function.name});
    activity.scope_tallies.push_back({id, function.call_count, 0, self_ns, self_ns, 0});
    total_own_ns += self_ns;
    import_result_.events += 1;
  }
  if (__builtin_add_overflow(activity.begin_ns, total_own_ns, &activity.end_ns))
    return Error{ErrorCode::usage, fmt::format("{} would end after the year 2262", name), "check --start"};
  Trace source;  // identifies the process
  source.process = static_cast<std::int64_t>(trace_count_ + 1);
  Result<recording::RecordingWriter> writer = recording_folder_.open_part_for_source(make_trace_source(&source));
  if (!writer) return std::move(writer).error();
  const TimeSpan_ns span{activity.begin_ns, activity.end_ns};
  if (span.end_ns > span.begin_ns) extend_traced_span(span);
  import_result_.thread_time_s += seconds(span.end_ns - span.begin_ns);
  ActivityWriter out(*writer, 1);
  out.add(std::move(activity));
  Status status = out.finish();
  RecordingEnd end;
  end.diagnostics = profile.diagnostics;
  end.diagnostics.add(
      {"profile_without_times", 1,
       "a profile has sums over the whole run: power is split evenly over its own times, and cumulative "
       "times are not in a recording",
       "import it with --pattern for cumulative times"});
  import_result_.diagnostics.add_all(end.diagnostics);
  Status finish_status = writer->finish(std::move(end), recording::Durability::not_synced);
  ++trace_count_;
  return status ? std::move(finish_status) : std::move(status);
}

std::optional<ImportSession::TimeSpan_ns> ImportSession::find_domain_span(const std::string& domain) const {
  std::optional<TimeSpan_ns> span;
  for (const Sample& sample : power_log_.samples) {
    const Channel& channel = power_log_.channels[sample.channel];
    if (channel.domain != domain || !measures_energy_or_power(channel)) continue;
    const std::int64_t time_ns = sample.reading.time_ns();
    if (!span) span = TimeSpan_ns{time_ns, time_ns};
    span->begin_ns = std::min(span->begin_ns, time_ns);
    span->end_ns = std::max(span->end_ns, time_ns);
  }
  return span;
}

// Removes the samples of these domains, which do not overlap the rest in time. Their energy is then unknown, not 0.
void ImportSession::exclude_domains(const std::vector<std::string>& domains) {
  const auto is_of_excluded_domain = [&](const Sample& sample) {
    const std::string& domain = power_log_.channels[sample.channel].domain;
    return std::find(domains.begin(), domains.end(), domain) != domains.end();
  };
  std::erase_if(power_log_.samples, is_of_excluded_domain);
}

// What the domain does not cover is not imported: neither its energy nor that of the others is known there.
void ImportSession::report_uncovered_time(const std::string& domain, TimeSpan_ns limits, TimeSpan_ns covered) {
  constexpr double kLargestUnreportedShare = 0.05;
  const double length_s = seconds(limits.end_ns - limits.begin_ns);
  const double covered_s = seconds(covered.end_ns - covered.begin_ns);
  if (covered_s >= (1 - kLargestUnreportedShare) * length_s) return;
  import_diagnostics_.add(
      {"power_covers_part", 1,
       fmt::format("readings of {} cover {:.3g} s of {:.3g} s: the recording contains only that time", domain,
                   covered_s, length_s),
       fmt::format("log the power during the whole run, or remove the rows of {}", domain)});
}

// The interval that the traces and the power domains have in common; {0, 0} without any. Excludes and reports domains
// that do not overlap it.
ImportSession::TimeSpan_ns ImportSession::intersect_traces_and_power() {
  std::optional<TimeSpan_ns> common_span = traced_span_;
  std::vector<std::string> excluded_domains;
  for (const std::string& domain : collect_power_domain_names(power_log_)) {
    const std::optional<TimeSpan_ns> span = find_domain_span(domain);
    if (!span) continue;
    const TimeSpan_ns limits = common_span.value_or(*span);
    const TimeSpan_ns overlap_span{std::max(limits.begin_ns, span->begin_ns), std::min(limits.end_ns, span->end_ns)};
    if (overlap_span.end_ns > overlap_span.begin_ns) {
      report_uncovered_time(domain, limits, overlap_span);
      common_span = overlap_span;
      continue;
    }
    excluded_domains.push_back(domain);
    if (span->begin_ns == span->end_ns) {
      import_diagnostics_.add(
          {"power_told_once", 1, fmt::format("{} has only one reading: its energy is unknown", domain), {}});
      continue;
    }
    const double gap_s = seconds(overlap_span.begin_ns - overlap_span.end_ns);
    import_diagnostics_.add(
        {"power_does_not_overlap", 1,
         fmt::format("{} does not overlap the rest in time, {:.3f} s apart: its energy is unknown", domain, gap_s),
         "shift the trace with --offset-ms; set the time zone of a log with --utc-offset"});
  }
  exclude_domains(excluded_domains);
  return common_span.value_or(TimeSpan_ns{0, 0});
}

void ImportSession::report_unused_mappings() {
  for (const auto& [key, gpu] : options_.gpu_mappings) {
    if (used_mappings_.contains(key)) continue;
    const std::string input = key.first ? fmt::format("{}:", *key.first) : "";
    import_diagnostics_.add({"map_not_used", 1,
                             fmt::format("--map {}{}={}: no trace has this GPU", input, key.second, gpu),
                             "inputs and GPUs are counted from 0"});
  }
}

Status ImportSession::write_recorder_part() {
  report_unused_mappings();
  const TimeSpan_ns span = intersect_traces_and_power();
  import_result_.elapsed_s = seconds(span.end_ns - span.begin_ns);
  const bool has_cpu_power =
      std::any_of(power_log_.samples.begin(), power_log_.samples.end(), [&](const Sample& sample) {
        const Channel& channel = power_log_.channels[sample.channel];
        return measures_energy_or_power(channel) && channel.domain_class != DomainClass::gpu;
      });
  if (has_cpu_power && import_result_.thread_time_s > 0) {
    import_diagnostics_.add(
        {"cpu_time_from_trace",
         1,
         "a trace contains no CPU time: CPU energy is split by the time of threads in each scope, waiting included",
         {}});
  }
  Result<recording::RecordingWriter> writer = recording_folder_.open_part_for_source(make_trace_source(nullptr));
  if (!writer) return std::move(writer).error();
  if (!power_log_.samples.empty()) writer->set_channels(power_log_.channels);
  writer->add(ClockPair{span.begin_ns, span.begin_ns});
  writer->add(ClockPair{span.end_ns, span.end_ns});
  writer->add(Mark{span.begin_ns, MarkKind::command_begin, 0, 0, {}});
  writer->add(Mark{span.end_ns, MarkKind::command_end, 0, 0, {}});
  Status status = Done{};
  for (const Sample& sample : power_log_.samples) {
    writer->add(sample);
    if (writer->pending_item_count() < kPowerSamplesPerFlush) continue;
    Status flush_status = writer->flush();
    if (status && !flush_status) status = std::move(flush_status);
  }
  import_result_.samples = power_log_.samples.size();
  RecordingEnd end;
  end.diagnostics = import_diagnostics_;
  import_result_.diagnostics.add_all(import_diagnostics_);
  Status finish_status = writer->finish(std::move(end), recording::Durability::not_synced);
  return status ? std::move(finish_status) : std::move(status);
}

Result<ImportResult> ImportSession::finish() {
  if (Status write_status = write_recorder_part(); !write_status) return std::move(write_status).error();
  Result<recording::JoinSummary> join_summary = recording_folder_.join();
  if (!join_summary) return std::move(join_summary).error();
  import_result_.file = recording_folder_.file();
  import_result_.file_bytes = join_summary->bytes;
  import_result_.diagnostics.add_all(join_summary->diagnostics);
  return std::move(import_result_);
}

}  // namespace joulemap::ingest
