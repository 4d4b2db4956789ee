// SPDX-License-Identifier: Apache-2.0
//
// Dumps a recording as text, one line per item, in the order of the file. tests/support/read_joule.py, which shares no
// code with this program, writes the same lines.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>

#include "recording/recording_reader.h"

namespace joulemap {

class RecordingDump final : public recording::RecordingVisitor {
 public:
  const std::string& text() const { return text_; }

  void on_source(std::uint32_t source, const RecordingSource& it) override {
    line("source {} {} {} {} {} {} {} {} {}", source, it.recording_id, it.host, it.boot_id, it.pid, it.started_ns,
         it.role, it.version, fmt::join(it.command, ","));
  }
  void on_channels(std::uint32_t source, std::uint32_t channel_number, std::span<const Channel> channels) override {
    for (const Channel& it : channels) {
      line("channel {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", channel_number++, source, it.name,
           it.sensor, it.source, it.domain, it.part_of, int(it.domain_class), it.device, int(it.is_countable),
           int(it.kind), int(it.quantity), it.scale, known(it.wrap_range), it.refresh_s, it.averaging_time_s,
           int(it.provenance), it.model, it.relative_uncertainty, it.uncertainty_w);
    }
  }
  void on_samples(std::uint32_t, std::span<const Sample> samples) override {
    for (const Sample& it : samples) {
      line("sample {} {} {} {} {}", it.channel, it.reading.before_ns, it.reading.after_ns, int(it.reading.code),
           it.reading.raw);
    }
  }
  void on_clock(std::uint32_t source, const ClockPair& it) override {
    line("clock {} {} {}", source, it.monotonic_ns, it.unix_ns);
  }
  void on_mark(std::uint32_t source, const Mark& it) override {
    line("mark {} {} {} {} {} {}", source, it.time_ns, int(it.kind), it.id, it.thread, it.name);
  }
  void on_metric(std::uint32_t source, const Metric& it) override {
    line("metric {} {} {} {} {}", source, it.time_ns, known(it.step), it.name, it.value);
  }
  void on_fact(std::uint32_t source, const EnvironmentFact& it) override {
    line("fact {} {} {}", source, it.name, it.value);
  }
  void on_calibration(std::uint32_t source, const ChannelCalibration& it) override {
    line("calibration {} {} {} {} {} {} {} {} {} {} {} {}", source, it.channel, it.device, it.driver,
         known(it.refresh_s), known(it.refresh_spread_s), known(it.phase_s), it.phase_reference_channel,
         known(it.read_wall_s), known(it.read_cpu_s), known(it.idle_w), it.created_unix_ns);
  }
  void on_power(std::uint32_t source, const KernelPower& it) override {
    line("power {} {} {} {} {} {} {} {} {} {} {} {} {} {}", source, it.gpu, int(it.kernel_key.kind), it.kernel_key.name,
         it.kernel_key.size, it.blocks, it.threads_per_block, it.mean_kernel_s, it.watts, it.precision,
         it.sum_of_squared_precisions, it.cochran_q, it.measured_kernel_s, it.recordings);
  }
  void on_activity(std::uint32_t source, const Activity& it) override {
    for (const Scope& row : it.scopes)
      line("place {} {} {} {} {}", source, row.id, row.parent, int(row.kind), row.name);
    for (const KernelClass& row : it.classes) {
      line("class {} {} {} {} {} {}", source, row.id, int(row.kind), fmt::join(row.grid, " "),
           fmt::join(row.block, " "), row.name);
    }
    for (const KernelQueue& row : it.queues) {
      line("queue {} {} {} {} {} {}", source, row.id, row.ordinal, row.context, row.stream, row.device);
    }
    for (const ScopeTally& row : it.scope_tallies) {
      line("time {} {} {} {} {} {} {} {} {}", source, it.begin_ns, it.end_ns, row.scope, row.count, row.wall_ns,
           row.cpu_ns, row.helper_threads_cpu_ns, row.sampled_count);
    }
    for (const KernelTally& row : it.kernel_tallies) {
      line("kernels {} {} {} {} {} {} {} {}", source, it.begin_ns, it.end_ns, row.class_id, row.queue, row.scope,
           row.count, row.time_ns);
    }
    for (const StepRecord& row : it.steps) {
      line("step {} {} {} {} {} {} {} {}", source, row.number, row.begin_ns, row.end_ns, row.summed_kernel_ns,
           row.kernel_sequence_hash, row.kernels, (row.is_traced ? 1 : 0) + (row.has_kernel_records ? 2 : 0));
    }
    for (const Kernel& row : it.kernels) {
      line("kernel {} {} {} {} {} {} {} {}", source, row.start_ns, row.end_ns, row.class_id, row.queue, row.scope,
           row.correlation, row.bytes);
    }
    for (const WaitTally& row : it.waits) {
      line("wait {} {} {} {} {} {} {} {}", source, it.begin_ns, it.end_ns, row.queue, row.scope, int(row.kind),
           row.count, row.time_ns);
    }
    for (const ScopeShare& row : it.shares) {
      line("share {} {} {} {} {}", source, row.coarse_scope, row.scope, row.count, row.time_ns);
    }
  }
  void on_engine_steps(std::uint32_t source, const EngineSteps& it) override {
    for (const EngineRequest& row : it.requests)
      line("request {} {} {} {} {}", source, row.number, row.id, row.tenant, row.model);
    std::size_t entry = 0;
    for (const EngineStep& step : it.steps) {
      line("engine-step {} {} {} {}", source, step.begin_ns, step.end_ns, step.requests);
      for (std::uint32_t i = 0; i < step.requests; ++i) {
        const StepRequest& row = it.entries[entry++];
        line("in-step {} {} {} {} {} {} {} {}", source, row.request, row.prompt_tokens, row.cached_tokens,
             row.decoded_tokens, row.rejected_tokens, row.context_tokens, int(row.events));
      }
    }
  }
  void on_end(std::uint32_t source, const RecordingEnd& it) override {
    line("end {} {} {} {} {} {}", source, known(it.exit_code), known(it.signal), it.overhead_cpu_s, it.missed_ticks,
         it.lost_samples);
    for (const Diagnostic& d : it.diagnostics.list())
      line("diagnostic {} {} {} {}", d.code, d.count, d.message, d.remedy);
  }

 private:
  template <class T>
  static std::string known(const std::optional<T>& value) {
    return value ? fmt::format("{}", *value) : "-";
  }
  template <class... Fields>
  void line(fmt::format_string<Fields...> format, Fields&&... fields) {
    text_ += fmt::format(format, std::forward<Fields>(fields)...) + "\n";
  }

  std::string text_;
};

}  // namespace joulemap
