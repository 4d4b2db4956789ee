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
constexpr std::uint32_t kPacket = 1;
constexpr std::uint32_t kTimestamp = 8;
constexpr std::uint32_t kSequence = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kSequenceFlags = 13;
constexpr std::uint32_t kTrackDescriptor = 60;
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kParent = 5;
constexpr std::uint32_t kCounter = 8;
constexpr std::uint32_t kUnitName = 6;
constexpr std::uint32_t kAnnotation = 4;
constexpr std::uint32_t kEventType = 9;
constexpr std::uint32_t kEventTrack = 11;
constexpr std::uint32_t kEventName = 23;
constexpr std::uint32_t kDoubleCounter = 44;
constexpr std::uint32_t kAnnotationName = 10;
constexpr std::uint32_t kAnnotationDouble = 5;
constexpr int kSliceBegin = 1;
constexpr int kSliceEnd = 2;
constexpr int kCounterEvent = 4;
constexpr int kStateCleared = 1;

struct Slice {
  std::string name;
  double begin_s = 0;
  double end_s = 0;
  std::vector<std::pair<std::string_view, double>> details = {};
};

class Trace {
 public:
  Trace(std::int64_t begin_ns, const std::string& name) : begin_ns_(begin_ns) {
    auto packet = ProtobufWriter().add(kSequence, 1).add(kSequenceFlags, kStateCleared);
    packet.add(kTrackDescriptor, ProtobufWriter().add(kUuid, kRoot).add(kName, name));
    trace_.add(kPacket, packet);
  }

  // `values`: means over consecutive intervals of slice_s. An unknown value adds no event, so that Perfetto shows the
  // previous value: its counters have no gaps.
  void add_counter(const std::string& name, std::string_view unit, double slice_s,
                   const std::vector<std::optional<double>>& values) {
    const std::uint64_t track = begin_track(name, unit);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      add_event(
          static_cast<double>(i) * slice_s,
          ProtobufWriter().add(kEventType, kCounterEvent).add(kEventTrack, track).add(kDoubleCounter, *values[i]));
    }
  }

  // Distributes overlapping slices over several tracks of the same name.
  void add_slices(const std::string& name, std::vector<Slice> slices) {
    std::ranges::sort(slices, {}, [](const Slice& one) { return std::tuple(one.begin_s, -one.end_s); });
    while (!slices.empty()) {
      const std::uint64_t track = begin_track(name, std::nullopt);
      std::vector<Slice> left;
      double until_s = 0;
      bool is_first = true;
      for (Slice& slice : slices) {
        if (!is_first && slice.begin_s < until_s) {
          left.push_back(std::move(slice));
          continue;
        }
        is_first = false;
        until_s = slice.end_s;
        add_slice(track, slice);
      }
      slices = std::move(left);
    }
  }

  const std::string& bytes() const { return trace_.bytes(); }

 private:
  static constexpr std::uint64_t kRoot = 0x6a6f756c65000000;  // id of the parent track; an arbitrary unique number

  // `unit`: unit of a counter; none for slices.
  std::uint64_t begin_track(const std::string& name, std::optional<std::string_view> unit) {
    const std::uint64_t uuid = kRoot + ++tracks_;
    auto track = ProtobufWriter().add(kUuid, uuid).add(kName, to_valid_utf8(name)).add(kParent, kRoot);
    if (unit) track.add(kCounter, ProtobufWriter().add(kUnitName, *unit));
    trace_.add(kPacket, ProtobufWriter().add(kSequence, 1).add(kTrackDescriptor, track));
    return uuid;
  }
  void add_slice(std::uint64_t track, const Slice& slice) {
    auto begin = ProtobufWriter().add(kEventType, kSliceBegin).add(kEventTrack, track);
    begin.add(kEventName, to_valid_utf8(slice.name));
    for (const auto& [name, value] : slice.details) {
      begin.add(kAnnotation, ProtobufWriter().add(kAnnotationName, name).add(kAnnotationDouble, value));
    }
    add_event(slice.begin_s, begin);
    add_event(slice.end_s, ProtobufWriter().add(kEventType, kSliceEnd).add(kEventTrack, track));
  }
  void add_event(double time_s, const ProtobufWriter& event) {
    const std::int64_t time_ns = begin_ns_ + std::llround(time_s * 1e9);
    trace_.add(kPacket, ProtobufWriter().add(kTimestamp, time_ns).add(kSequence, 1).add(kTrackEvent, event));
  }

  std::int64_t begin_ns_;
  std::uint64_t tracks_ = 0;
  ProtobufWriter trace_;
};

std::vector<Slice> slices_of(const std::vector<StepOrEpochView>& stages, std::string_view what) {
  std::vector<Slice> slices;
  for (const StepOrEpochView& stage : stages) {
    Slice slice{fmt::format("{} {}", what, stage.number), stage.begin_s, stage.end_s};
    if (stage.energy_j) slice.details.emplace_back("energy_j", *stage.energy_j);
    if (stage.energy_j && stage.time_s > 0) slice.details.emplace_back("power_w", *stage.energy_j / stage.time_s);
    if (stage.loss) slice.details.emplace_back("loss", *stage.loss);
    if (stage.joules_per_loss) slice.details.emplace_back("joules_per_loss", *stage.joules_per_loss);
    slices.push_back(std::move(slice));
  }
  return slices;
}

std::vector<Slice> slices_of(const std::vector<NamedTimeSpan>& bands) {
  std::vector<Slice> slices;
  for (const NamedTimeSpan& band : bands) slices.push_back({band.name, band.begin_s, band.end_s});
  return slices;
}

}  // namespace

Result<std::string> perfetto_bytes(const RunView& view, const ExportOptions&) {
  Trace trace(view.run.start_monotonic_ns.value_or(0), "joulemap: " + command_text(view.run));
  for (const PowerSeries& series : view.run.power) {
    trace.add_counter("power " + series.domain, "W", view.run.slice_s, series.watts);
  }
  for (const ReportTrack& track : view.run.tracks) {
    trace.add_counter(track.name, unit_of(track.quantity), view.run.slice_s, track.values);
  }
  trace.add_slices("epochs", slices_of(view.epochs, "epoch"));
  trace.add_slices("steps", slices_of(view.steps, "step"));
  trace.add_slices("phases", slices_of(view.phases));
  trace.add_slices("regions", slices_of(view.regions));
  trace.add_slices("probing", slices_of(view.probing));
  trace.add_slices("dithering", slices_of(view.dithering));
  return trace.bytes();
}

}  // namespace joulemap::report
