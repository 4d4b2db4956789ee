// SPDX-License-Identifier: Apache-2.0
#include "recording/sample_filter.h"

namespace joulemap::recording {

std::uint32_t SampleFilter::add_source(const RecordingSource& source,
                                       const std::vector<std::optional<Channel>>& channels) {
  const std::uint32_t first_channel = next_channel_number_;
  std::vector<std::optional<ChannelState>>& tracks = channel_states_.emplace_back();
  for (const std::optional<Channel>& channel : channels) {
    if (!channel) {
      tracks.emplace_back();
      continue;
    }
    std::vector<SampledSpan>& spans = sampled_spans_[{source.boot_id, channel->sensor, channel->device, channel->name}];
    tracks.push_back(ChannelState{next_channel_number_++, std::nullopt, &spans});
  }
  return first_channel;
}

bool SampleFilter::accepts_sample(std::uint32_t source, ChannelState& track, std::int64_t before_ns) {
  if (track.last_ns && before_ns < *track.last_ns) {
    ++out_of_order_count_;
    return false;
  }
  SampledSpan* source_span = nullptr;
  for (SampledSpan& span : *track.sampled_spans) {
    if (span.source == source) {
      source_span = &span;
    } else if (before_ns >= span.first_ns && before_ns <= span.last_ns) {
      ++duplicate_count_;
      return false;
    }
  }
  track.last_ns = before_ns;
  if (source_span != nullptr) {
    source_span->last_ns = before_ns;
  } else {
    track.sampled_spans->push_back({source, before_ns, before_ns});
  }
  return true;
}

void SampleFilter::filter(std::uint32_t source, std::vector<Sample>& samples) {
  std::vector<std::optional<ChannelState>>& tracks = channel_states_[source];
  std::size_t kept_count = 0;
  for (Sample sample : samples) {
    if (sample.channel >= tracks.size() || !tracks[sample.channel]) {
      ++unknown_channel_count_;
      continue;
    }
    ChannelState& track = *tracks[sample.channel];
    if (!accepts_sample(source, track, sample.reading.before_ns)) continue;
    sample.channel = track.output_channel;
    samples[kept_count++] = sample;
  }
  samples.resize(kept_count);
}

Diagnostics SampleFilter::diagnostics() const {
  Diagnostics diagnostics;
  if (duplicate_count_ > 0) {
    diagnostics.add({"duplicate_samples",
                     duplicate_count_,
                     "samples that another process on the same machine had already recorded were skipped",
                     {}});
  }
  if (out_of_order_count_ > 0) {
    diagnostics.add(
        {"samples_out_of_order", out_of_order_count_, "samples older than the previous one were skipped", {}});
  }
  if (unknown_channel_count_ > 0) {
    diagnostics.add({"samples_of_unknown_channel", unknown_channel_count_,
                     "samples of channels that this version does not support were skipped", "update joulemap"});
  }
  return diagnostics;
}

}  // namespace joulemap::recording
