// SPDX-License-Identifier: Apache-2.0
//
// export --to perfetto: power of domains and other gauges as counter tracks; epochs, steps, phases, regions, probing
// and dithering as slices, each on its own track. Times are CLOCK_MONOTONIC of the measured machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text.h"
#include "formats/protobuf.h"
#include "report/export/exports.h"

namespace joulemap::report {
namespace {

using formats::ProtobufWriter;

// Field numbers and enum values of Perfetto's trace.proto, trace_packet.proto, track_descriptor.proto,
// counter_descriptor.proto, track_event.proto and debug_annotation.proto.
constexpr std::uint32_t kPacketField = 1;
constexpr std::uint32_t kTimestampField = 8;
constexpr std::uint32_t kSequenceIdField = 10;
constexpr std::uint32_t kTrackEventField = 11;
constexpr std::uint32_t kSequenceFlagsField = 13;
constexpr std::uint32_t kTrackDescriptorField = 60;
constexpr std::uint32_t kTrackUuidField = 1;
constexpr std::uint32_t kTrackNameField = 2;
constexpr std::uint32_t kParentTrackField = 5;
constexpr std::uint32_t kCounterField = 8;
constexpr std::uint32_t kUnitNameField = 6;
constexpr std::uint32_t kAnnotationField = 4;
constexpr std::uint32_t kEventTypeField = 9;
constexpr std::uint32_t kEventTrackField = 11;
constexpr std::uint32_t kEventNameField = 23;
constexpr std::uint32_t kDoubleCounterField = 44;
constexpr std::uint32_t kAnnotationNameField = 10;
constexpr std::uint32_t kAnnotationDoubleField = 5;
constexpr int kSliceBeginEventType = 1;
constexpr int kSliceEndEventType = 2;
constexpr int kCounterEventType = 4;
constexpr int kIncrementalStateClearedFlag = 1;

struct TraceSlice {
  std::string name;
  double begin_s = 0;
  double end_s = 0;
  std::vector<std::pair<std::string_view, double>> annotations = {};
};

class PerfettoTrace {
 public:
  PerfettoTrace(std::int64_t begin_ns, const std::string& name) : begin_ns_(begin_ns) {
    auto packet = ProtobufWriter().add(kSequenceIdField, 1).add(kSequenceFlagsField, kIncrementalStateClearedFlag);
    packet.add(kTrackDescriptorField, ProtobufWriter().add(kTrackUuidField, kRootTrackUuid).add(kTrackNameField, name));
    trace_message_.add(kPacketField, packet);
  }

  // `values`: means over consecutive intervals of slice_s. An unknown value adds no event, so that Perfetto shows the
  // previous value: its counters have no gaps.
  void add_counter(const std::string& name, std::string_view unit, double slice_s,
                   const std::vector<std::optional<double>>& values) {
    const std::uint64_t track = begin_track(name, unit);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      add_event(static_cast<double>(i) * slice_s, ProtobufWriter()
                                                      .add(kEventTypeField, kCounterEventType)
                                                      .add(kEventTrackField, track)
                                                      .add(kDoubleCounterField, *values[i]));
    }
  }

  // Distributes overlapping slices over several tracks of the same name.
  void add_slices(const std::string& name, std::vector<TraceSlice> slices) {
    std::ranges::sort(
        slices, {}, [](const TraceSlice& trace_slice) { return std::tuple(trace_slice.begin_s, -trace_slice.end_s); });
    while (!slices.empty()) {
      const std::uint64_t track = begin_track(name, std::nullopt);
      std::vector<TraceSlice> overlapping_slices;
      double until_s = 0;
      bool is_first = true;
      for (TraceSlice& slice : slices) {
        if (!is_first && slice.begin_s < until_s) {
          overlapping_slices.push_back(std::move(slice));
          continue;
        }
        is_first = false;
        until_s = slice.end_s;
        add_slice(track, slice);
      }
      slices = std::move(overlapping_slices);
    }
  }

  const std::string& bytes() const { return trace_message_.bytes(); }

 private:
  static constexpr std::uint64_t kRootTrackUuid =
      0x6a6f756c65000000;  // id of the parent track; an arbitrary unique number

  // `unit`: unit of a counter; none for slices.
  std::uint64_t begin_track(const std::string& name, std::optional<std::string_view> unit) {
    const std::uint64_t uuid = kRootTrackUuid + ++track_count_;
    auto track = ProtobufWriter()
                     .add(kTrackUuidField, uuid)
                     .add(kTrackNameField, to_valid_utf8(name))
                     .add(kParentTrackField, kRootTrackUuid);
    if (unit) track.add(kCounterField, ProtobufWriter().add(kUnitNameField, *unit));
    trace_message_.add(kPacketField, ProtobufWriter().add(kSequenceIdField, 1).add(kTrackDescriptorField, track));
    return uuid;
  }
  void add_slice(std::uint64_t track, const TraceSlice& slice) {
    auto begin = ProtobufWriter().add(kEventTypeField, kSliceBeginEventType).add(kEventTrackField, track);
    begin.add(kEventNameField, to_valid_utf8(slice.name));
    for (const auto& [name, value] : slice.annotations) {
      begin.add(kAnnotationField, ProtobufWriter().add(kAnnotationNameField, name).add(kAnnotationDoubleField, value));
    }
    add_event(slice.begin_s, begin);
    add_event(slice.end_s, ProtobufWriter().add(kEventTypeField, kSliceEndEventType).add(kEventTrackField, track));
  }
  void add_event(double time_s, const ProtobufWriter& event) {
    const std::int64_t time_ns = begin_ns_ + std::llround(time_s * 1e9);
    trace_message_.add(
        kPacketField,
        ProtobufWriter().add(kTimestampField, time_ns).add(kSequenceIdField, 1).add(kTrackEventField, event));
  }

  std::int64_t begin_ns_;
  std::uint64_t track_count_ = 0;
  ProtobufWriter trace_message_;
};

std::vector<TraceSlice> step_or_epoch_slices(const std::vector<StepOrEpochView>& steps_or_epochs,
                                             std::string_view slice_name_prefix) {
  std::vector<TraceSlice> slices;
  for (const StepOrEpochView& step_or_epoch : steps_or_epochs) {
    TraceSlice slice{fmt::format("{} {}", slice_name_prefix, step_or_epoch.number), step_or_epoch.begin_s,
                     step_or_epoch.end_s};
    if (step_or_epoch.energy_j) slice.annotations.emplace_back("energy_j", *step_or_epoch.energy_j);
    if (step_or_epoch.energy_j && step_or_epoch.time_s > 0)
      slice.annotations.emplace_back("power_w", *step_or_epoch.energy_j / step_or_epoch.time_s);
    if (step_or_epoch.loss) slice.annotations.emplace_back("loss", *step_or_epoch.loss);
    if (step_or_epoch.joules_per_loss)
      slice.annotations.emplace_back("joules_per_loss", *step_or_epoch.joules_per_loss);
    slices.push_back(std::move(slice));
  }
  return slices;
}

std::vector<TraceSlice> time_span_slices(const std::vector<NamedTimeSpan>& named_spans) {
  std::vector<TraceSlice> slices;
  for (const NamedTimeSpan& named_span : named_spans)
    slices.push_back({named_span.name, named_span.begin_s, named_span.end_s});
  return slices;
}

}  // namespace

Result<std::string> perfetto_bytes(const RunView& view, const ExportOptions&) {
  PerfettoTrace trace(view.run.start_monotonic_ns.value_or(0), "joulemap: " + command_text(view.run));
  for (const PowerSeries& series : view.run.power) {
    trace.add_counter("power " + series.domain, "W", view.run.slice_s, series.watts);
  }
  for (const ReportTrack& track : view.run.tracks) {
    trace.add_counter(track.name, unit_of(track.quantity), view.run.slice_s, track.values);
  }
  trace.add_slices("epochs", step_or_epoch_slices(view.epochs, "epoch"));
  trace.add_slices("steps", step_or_epoch_slices(view.steps, "step"));
  trace.add_slices("phases", time_span_slices(view.phases));
  trace.add_slices("regions", time_span_slices(view.regions));
  trace.add_slices("probing", time_span_slices(view.probing));
  trace.add_slices("dithering", time_span_slices(view.dithering));
  return trace.bytes();
}

}  // namespace joulemap::report
