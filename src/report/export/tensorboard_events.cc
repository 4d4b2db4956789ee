// SPDX-License-Identifier: Apache-2.0
#include "report/export/tensorboard_events.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "formats/tfrecord.h"

namespace joulemap::report {
namespace {

using formats::ProtobufWriter;

// Field and type numbers from TensorFlow's event.proto, summary.proto, tensor.proto and types.proto, and from
// TensorBoard's plugins/hparams/plugin_data_message.proto and api.proto.
namespace event {
constexpr std::uint32_t kWallTime = 1;
constexpr std::uint32_t kStep = 2;
constexpr std::uint32_t kFileVersion = 3;
constexpr std::uint32_t kSummary = 5;
}  // namespace event
namespace summary {
constexpr std::uint32_t kValue = 1;
constexpr std::uint32_t kTag = 1;
constexpr std::uint32_t kSimpleValue = 2;
constexpr std::uint32_t kTensor = 8;
constexpr std::uint32_t kMetadata = 9;
constexpr std::uint32_t kPluginData = 1;
constexpr std::uint32_t kDataClass = 4;
constexpr std::uint32_t kPluginName = 1;
constexpr std::uint32_t kPluginContent = 2;
constexpr int kDataClassTensor = 2;
}  // namespace summary
namespace tensor {
constexpr std::uint32_t kType = 1;
constexpr std::uint32_t kShape = 2;
constexpr std::uint32_t kDoubles = 6;
constexpr std::uint32_t kStrings = 8;
constexpr std::uint32_t kDimension = 2;
constexpr std::uint32_t kDimensionSize = 1;
constexpr int kFloat = 1;
constexpr int kDouble = 2;
constexpr int kString = 7;
}  // namespace tensor
namespace hparams {
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kExperiment = 2;
constexpr std::uint32_t kSessionStart = 3;
constexpr std::uint32_t kSessionEnd = 4;
constexpr std::uint32_t kExperimentCreated = 3;
constexpr std::uint32_t kParameterInfo = 4;
constexpr std::uint32_t kMetricInfo = 5;
constexpr std::uint32_t kInfoName = 1;
constexpr std::uint32_t kInfoType = 4;
constexpr std::uint32_t kMetricTag = 2;
constexpr std::uint32_t kStartParameter = 1;
constexpr std::uint32_t kStartTime = 5;
constexpr std::uint32_t kEndStatus = 1;
constexpr std::uint32_t kEndTime = 2;
constexpr int kSucceeded = 1;
constexpr int kFailed = 2;
constexpr int kStringType = 1;
constexpr int kBoolType = 2;
constexpr int kNumberType = 3;
}  // namespace hparams

namespace layout {
constexpr std::uint32_t kCategory = 2;
constexpr std::uint32_t kCategoryTitle = 1;
constexpr std::uint32_t kChart = 2;
constexpr std::uint32_t kChartTitle = 1;
constexpr std::uint32_t kMultiline = 2;
constexpr std::uint32_t kCurveTag = 1;
}  // namespace layout

ProtobufWriter tensor_shape_message(std::initializer_list<std::size_t> sizes) {
  ProtobufWriter shape;
  for (const std::size_t size : sizes) {
    shape.add(tensor::kDimension, ProtobufWriter().add(tensor::kDimensionSize, static_cast<std::uint64_t>(size)));
  }
  return shape;
}

// An empty tensor, which TensorBoard's HParams plugin requires but does not read.
ProtobufWriter empty_tensor() {
  return ProtobufWriter().add(tensor::kType, tensor::kFloat).add(tensor::kShape, tensor_shape_message({0}));
}

// The value as a google.protobuf.Value.
ProtobufWriter hyper_parameter_value(const HyperParameter& parameter) {
  ProtobufWriter value;
  if (const auto* const number = std::get_if<double>(&parameter.value)) value.add(2, *number);
  if (const auto* const text = std::get_if<std::string>(&parameter.value)) value.add(3, to_valid_utf8(*text));
  if (const auto* const truth = std::get_if<bool>(&parameter.value)) value.add(4, *truth ? 1 : 0);
  return value;
}

int hyper_parameter_type(const HyperParameter& parameter) {
  if (std::holds_alternative<double>(parameter.value)) return hparams::kNumberType;
  return std::holds_alternative<bool>(parameter.value) ? hparams::kBoolType : hparams::kStringType;
}

ProtobufWriter plugin_data_message(std::uint32_t field, const ProtobufWriter& message) {
  return ProtobufWriter().add(hparams::kVersion, 0).add(field, message);
}

}  // namespace

std::vector<HistogramBucket> histogram_buckets(std::span<const double> values, std::size_t max_buckets) {
  if (values.empty()) return {};
  const auto [least, most] = std::ranges::minmax(values);
  const double width = (most - least) / static_cast<double>(max_buckets);
  if (!(width > 0)) {
    const double half = std::max(std::abs(least) * 0.01, 1e-9);
    return {{least - half, least + half, static_cast<double>(values.size())}};
  }
  std::vector<HistogramBucket> buckets;
  for (std::size_t i = 0; i < max_buckets; ++i) {
    buckets.push_back({least + width * static_cast<double>(i), least + width * static_cast<double>(i + 1), 0});
  }
  buckets.back().high = most;
  for (const double value : values) {
    const auto at = static_cast<std::size_t>((value - least) / width);
    buckets[std::min(at, max_buckets - 1)].count += 1;
  }
  return buckets;
}

TensorboardEvents::TensorboardEvents(double begin_s) {
  event_message_.add(event::kWallTime, begin_s).add(event::kFileVersion, "brain.Event:2");
  formats::append_tfrecord(file_bytes_, event_message_.bytes());
}

void TensorboardEvents::add_event(std::int64_t step, double time_s, const ProtobufWriter& summary) {
  event_message_.clear();
  event_message_.add(event::kWallTime, time_s).add(event::kStep, step).add(event::kSummary, summary);
  formats::append_tfrecord(file_bytes_, event_message_.bytes());
}

void TensorboardEvents::add_scalars(std::int64_t step, double time_s, std::span<const TaggedScalar> numbers) {
  if (numbers.empty()) return;
  summary_message_.clear();
  for (const TaggedScalar& number : numbers) {
    value_message_.clear();
    value_message_.add(summary::kTag, number.tag).add(summary::kSimpleValue, static_cast<float>(number.value));
    summary_message_.add(summary::kValue, value_message_);
  }
  add_event(step, time_s, summary_message_);
}

void TensorboardEvents::add_scalar(std::string_view tag, std::int64_t step, double time_s, double value) {
  const TaggedScalar one{tag, value};
  add_scalars(step, time_s, {&one, 1});
}

void TensorboardEvents::add_plugin_value(std::string_view tag, std::int64_t step, double time_s,
                                         std::string_view plugin, const ProtobufWriter& content,
                                         const ProtobufWriter& tensor) {
  const auto data = ProtobufWriter().add(summary::kPluginName, plugin).add(summary::kPluginContent, content);
  const auto metadata =
      ProtobufWriter().add(summary::kPluginData, data).add(summary::kDataClass, summary::kDataClassTensor);
  const auto value = ProtobufWriter()
                         .add(summary::kTag, to_valid_utf8(tag))
                         .add(summary::kMetadata, metadata)
                         .add(summary::kTensor, tensor);
  add_event(step, time_s, ProtobufWriter().add(summary::kValue, value));
}

void TensorboardEvents::add_histogram(std::string_view tag, std::int64_t step, double time_s,
                                      std::span<const HistogramBucket> buckets) {
  std::vector<double> numbers;
  for (const HistogramBucket& bucket : buckets) numbers.insert(numbers.end(), {bucket.low, bucket.high, bucket.count});
  const auto tensor = ProtobufWriter()
                          .add(tensor::kType, tensor::kDouble)
                          .add(tensor::kShape, tensor_shape_message({buckets.size(), 3}))
                          .add_packed(tensor::kDoubles, std::span<const double>(numbers));
  add_plugin_value(tag, step, time_s, "histograms", {}, tensor);
}

void TensorboardEvents::add_text(std::string_view tag, std::int64_t step, double time_s, std::string_view markdown) {
  const auto tensor = ProtobufWriter()
                          .add(tensor::kType, tensor::kString)
                          .add(tensor::kShape, tensor_shape_message({1}))
                          .add(tensor::kStrings, to_valid_utf8(markdown));
  add_plugin_value(tag, step, time_s, "text", {}, tensor);
}

// The layout is a tensorboard.plugins.custom_scalar Layout.
void TensorboardEvents::add_chart_layout(double time_s, std::string_view category, std::span<const Chart> charts) {
  ProtobufWriter list;
  list.add(layout::kCategoryTitle, to_valid_utf8(category));
  for (const Chart& chart : charts) {
    const auto curves = ProtobufWriter().add(layout::kCurveTag, to_valid_utf8(chart.tag_pattern));
    list.add(layout::kChart,
             ProtobufWriter().add(layout::kChartTitle, to_valid_utf8(chart.title)).add(layout::kMultiline, curves));
  }
  const auto whole = ProtobufWriter().add(layout::kCategory, list);
  const auto tensor = ProtobufWriter().add(tensor::kType, tensor::kString).add(tensor::kStrings, whole.bytes());
  add_plugin_value("custom_scalars__config__", 0, time_s, "custom_scalars", {}, tensor);
}

void TensorboardEvents::add_hparams_columns(double time_s, std::span<const HyperParameter> parameters,
                                            std::span<const std::string> metric_tags) {
  auto experiment = ProtobufWriter().add(hparams::kExperimentCreated, time_s);
  for (const HyperParameter& parameter : parameters) {
    experiment.add(hparams::kParameterInfo, ProtobufWriter()
                                                .add(hparams::kInfoName, to_valid_utf8(parameter.name))
                                                .add(hparams::kInfoType, hyper_parameter_type(parameter)));
  }
  for (const std::string& tag : metric_tags) {
    const auto name = ProtobufWriter().add(hparams::kMetricTag, to_valid_utf8(tag));
    experiment.add(hparams::kMetricInfo, ProtobufWriter().add(hparams::kInfoName, name));
  }
  add_plugin_value("_hparams_/experiment", 0, time_s, "hparams", plugin_data_message(hparams::kExperiment, experiment),
                   empty_tensor());
}

void TensorboardEvents::add_hparams_session(const HparamsSession& session) {
  ProtobufWriter start;
  for (const HyperParameter& parameter : session.parameters) {
    start.add(hparams::kStartParameter,
              ProtobufWriter().add(1, to_valid_utf8(parameter.name)).add(2, hyper_parameter_value(parameter)));
  }
  start.add(hparams::kStartTime, session.begin_s);
  add_plugin_value("_hparams_/session_start_info", 0, session.begin_s, "hparams",
                   plugin_data_message(hparams::kSessionStart, start), empty_tensor());
  ProtobufWriter end;
  if (session.succeeded) end.add(hparams::kEndStatus, *session.succeeded ? hparams::kSucceeded : hparams::kFailed);
  end.add(hparams::kEndTime, session.end_s);
  add_plugin_value("_hparams_/session_end_info", 0, session.end_s, "hparams",
                   plugin_data_message(hparams::kSessionEnd, end), empty_tensor());
}

}  // namespace joulemap::report
