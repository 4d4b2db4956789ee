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
constexpr std::uint32_t kWallTimeField = 1;
constexpr std::uint32_t kStepField = 2;
constexpr std::uint32_t kFileVersionField = 3;
constexpr std::uint32_t kSummaryField = 5;
}  // namespace event
namespace summary {
constexpr std::uint32_t kValueField = 1;
constexpr std::uint32_t kTagField = 1;
constexpr std::uint32_t kSimpleValueField = 2;
constexpr std::uint32_t kTensorField = 8;
constexpr std::uint32_t kMetadataField = 9;
constexpr std::uint32_t kPluginDataField = 1;
constexpr std::uint32_t kDataClassField = 4;
constexpr std::uint32_t kPluginNameField = 1;
constexpr std::uint32_t kPluginContentField = 2;
constexpr int kTensorDataClass = 2;
}  // namespace summary
namespace tensor {
constexpr std::uint32_t kTypeField = 1;
constexpr std::uint32_t kShapeField = 2;
constexpr std::uint32_t kDoublesField = 6;
constexpr std::uint32_t kStringsField = 8;
constexpr std::uint32_t kDimensionField = 2;
constexpr std::uint32_t kTensorDimensionSizeField = 1;
constexpr int kFloatDataType = 1;
constexpr int kDoubleDataType = 2;
constexpr int kStringDataType = 7;
}  // namespace tensor
namespace hparams {
constexpr std::uint32_t kVersionField = 1;
constexpr std::uint32_t kExperimentField = 2;
constexpr std::uint32_t kSessionStartField = 3;
constexpr std::uint32_t kSessionEndField = 4;
constexpr std::uint32_t kExperimentCreatedField = 3;
constexpr std::uint32_t kParameterInfoField = 4;
constexpr std::uint32_t kMetricInfoField = 5;
constexpr std::uint32_t kInfoNameField = 1;
constexpr std::uint32_t kInfoTypeField = 4;
constexpr std::uint32_t kMetricTagField = 2;
constexpr std::uint32_t kStartParameterField = 1;
constexpr std::uint32_t kSessionStartTimeField = 5;
constexpr std::uint32_t kSessionEndStatusField = 1;
constexpr std::uint32_t kSessionEndTimeField = 2;
constexpr int kSessionSucceededStatus = 1;
constexpr int kSessionFailedStatus = 2;
constexpr int kStringHparamType = 1;
constexpr int kBoolHparamType = 2;
constexpr int kNumberHparamType = 3;
}  // namespace hparams

namespace layout {
constexpr std::uint32_t kCategoryField = 2;
constexpr std::uint32_t kCategoryTitleField = 1;
constexpr std::uint32_t kChartField = 2;
constexpr std::uint32_t kChartTitleField = 1;
constexpr std::uint32_t kMultilineField = 2;
constexpr std::uint32_t kCurveTagField = 1;
}  // namespace layout

ProtobufWriter tensor_shape_message(std::initializer_list<std::size_t> sizes) {
  ProtobufWriter shape;
  for (const std::size_t size : sizes) {
    shape.add(tensor::kDimensionField,
              ProtobufWriter().add(tensor::kTensorDimensionSizeField, static_cast<std::uint64_t>(size)));
  }
  return shape;
}

// An empty tensor, which TensorBoard's HParams plugin requires but does not read.
ProtobufWriter make_empty_tensor_message() {
  return ProtobufWriter()
      .add(tensor::kTypeField, tensor::kFloatDataType)
      .add(tensor::kShapeField, tensor_shape_message({0}));
}

// The value as a google.protobuf.Value.
ProtobufWriter hyper_parameter_value_message(const HyperParameter& parameter) {
  ProtobufWriter value;
  if (const auto* const number = std::get_if<double>(&parameter.value)) value.add(2, *number);
  if (const auto* const text = std::get_if<std::string>(&parameter.value)) value.add(3, to_valid_utf8(*text));
  if (const auto* const truth = std::get_if<bool>(&parameter.value)) value.add(4, *truth ? 1 : 0);
  return value;
}

int hyper_parameter_type(const HyperParameter& parameter) {
  if (std::holds_alternative<double>(parameter.value)) return hparams::kNumberHparamType;
  return std::holds_alternative<bool>(parameter.value) ? hparams::kBoolHparamType : hparams::kStringHparamType;
}

ProtobufWriter plugin_data_message(std::uint32_t field, const ProtobufWriter& message) {
  return ProtobufWriter().add(hparams::kVersionField, 0).add(field, message);
}

}  // namespace

std::vector<HistogramBucket> make_histogram_buckets(std::span<const double> values, std::size_t max_buckets) {
  if (values.empty()) return {};
  const auto [min_value, max_value] = std::ranges::minmax(values);
  const double width = (max_value - min_value) / static_cast<double>(max_buckets);
  if (!(width > 0)) {
    const double half_width = std::max(std::abs(min_value) * 0.01, 1e-9);
    return {{min_value - half_width, min_value + half_width, static_cast<double>(values.size())}};
  }
  std::vector<HistogramBucket> buckets;
  for (std::size_t i = 0; i < max_buckets; ++i) {
    buckets.push_back({min_value + width * static_cast<double>(i), min_value + width * static_cast<double>(i + 1), 0});
  }
  buckets.back().high = max_value;
  for (const double value : values) {
    const auto bucket_index = static_cast<std::size_t>((value - min_value) / width);
    buckets[std::min(bucket_index, max_buckets - 1)].count += 1;
  }
  return buckets;
}

TensorboardEvents::TensorboardEvents(double begin_s) {
  event_message_.add(event::kWallTimeField, begin_s).add(event::kFileVersionField, "brain.Event:2");
  formats::append_tfrecord(file_bytes_, event_message_.bytes());
}

void TensorboardEvents::add_event(std::int64_t step, double time_s, const ProtobufWriter& summary) {
  event_message_.clear();
  event_message_.add(event::kWallTimeField, time_s).add(event::kStepField, step).add(event::kSummaryField, summary);
  formats::append_tfrecord(file_bytes_, event_message_.bytes());
}

void TensorboardEvents::add_scalars(std::int64_t step, double time_s, std::span<const TaggedScalar> numbers) {
  if (numbers.empty()) return;
  summary_message_.clear();
  for (const TaggedScalar& number : numbers) {
    value_message_.clear();
    value_message_.add(summary::kTagField, number.tag)
        .add(summary::kSimpleValueField, static_cast<float>(number.value));
    summary_message_.add(summary::kValueField, value_message_);
  }
  add_event(step, time_s, summary_message_);
}

void TensorboardEvents::add_scalar(std::string_view tag, std::int64_t step, double time_s, double value) {
  const TaggedScalar tagged_scalar{tag, value};
  add_scalars(step, time_s, {&tagged_scalar, 1});
}

void TensorboardEvents::add_plugin_value(std::string_view tag, std::int64_t step, double time_s,
                                         std::string_view plugin, const ProtobufWriter& content,
                                         const ProtobufWriter& tensor) {
  const auto data = ProtobufWriter().add(summary::kPluginNameField, plugin).add(summary::kPluginContentField, content);
  const auto metadata =
      ProtobufWriter().add(summary::kPluginDataField, data).add(summary::kDataClassField, summary::kTensorDataClass);
  const auto value = ProtobufWriter()
                         .add(summary::kTagField, to_valid_utf8(tag))
                         .add(summary::kMetadataField, metadata)
                         .add(summary::kTensorField, tensor);
  add_event(step, time_s, ProtobufWriter().add(summary::kValueField, value));
}

void TensorboardEvents::add_histogram(std::string_view tag, std::int64_t step, double time_s,
                                      std::span<const HistogramBucket> buckets) {
  std::vector<double> numbers;
  for (const HistogramBucket& bucket : buckets) numbers.insert(numbers.end(), {bucket.low, bucket.high, bucket.count});
  const auto tensor = ProtobufWriter()
                          .add(tensor::kTypeField, tensor::kDoubleDataType)
                          .add(tensor::kShapeField, tensor_shape_message({buckets.size(), 3}))
                          .add_packed(tensor::kDoublesField, std::span<const double>(numbers));
  add_plugin_value(tag, step, time_s, "histograms", {}, tensor);
}

void TensorboardEvents::add_text(std::string_view tag, std::int64_t step, double time_s, std::string_view markdown) {
  const auto tensor = ProtobufWriter()
                          .add(tensor::kTypeField, tensor::kStringDataType)
                          .add(tensor::kShapeField, tensor_shape_message({1}))
                          .add(tensor::kStringsField, to_valid_utf8(markdown));
  add_plugin_value(tag, step, time_s, "text", {}, tensor);
}

// The layout is a tensorboard.plugins.custom_scalar Layout.
void TensorboardEvents::add_chart_layout(double time_s, std::string_view category, std::span<const Chart> charts) {
  ProtobufWriter category_message;
  category_message.add(layout::kCategoryTitleField, to_valid_utf8(category));
  for (const Chart& chart : charts) {
    const auto curves = ProtobufWriter().add(layout::kCurveTagField, to_valid_utf8(chart.tag_pattern));
    category_message.add(layout::kChartField, ProtobufWriter()
                                                  .add(layout::kChartTitleField, to_valid_utf8(chart.title))
                                                  .add(layout::kMultilineField, curves));
  }
  const auto layout_message = ProtobufWriter().add(layout::kCategoryField, category_message);
  const auto tensor = ProtobufWriter()
                          .add(tensor::kTypeField, tensor::kStringDataType)
                          .add(tensor::kStringsField, layout_message.bytes());
  add_plugin_value("custom_scalars__config__", 0, time_s, "custom_scalars", {}, tensor);
}

void TensorboardEvents::add_hparams_columns(double time_s, std::span<const HyperParameter> parameters,
                                            std::span<const std::string> metric_tags) {
  auto experiment = ProtobufWriter().add(hparams::kExperimentCreatedField, time_s);
  for (const HyperParameter& parameter : parameters) {
    experiment.add(hparams::kParameterInfoField, ProtobufWriter()
                                                     .add(hparams::kInfoNameField, to_valid_utf8(parameter.name))
                                                     .add(hparams::kInfoTypeField, hyper_parameter_type(parameter)));
  }
  for (const std::string& tag : metric_tags) {
    const auto name = ProtobufWriter().add(hparams::kMetricTagField, to_valid_utf8(tag));
    experiment.add(hparams::kMetricInfoField, ProtobufWriter().add(hparams::kInfoNameField, name));
  }
  add_plugin_value("_hparams_/experiment", 0, time_s, "hparams",
                   plugin_data_message(hparams::kExperimentField, experiment), make_empty_tensor_message());
}

void TensorboardEvents::add_hparams_session(const HparamsSession& session) {
  ProtobufWriter start;
  for (const HyperParameter& parameter : session.parameters) {
    start.add(hparams::kStartParameterField,
              ProtobufWriter().add(1, to_valid_utf8(parameter.name)).add(2, hyper_parameter_value_message(parameter)));
  }
  start.add(hparams::kSessionStartTimeField, session.begin_s);
  add_plugin_value("_hparams_/session_start_info", 0, session.begin_s, "hparams",
                   plugin_data_message(hparams::kSessionStartField, start), make_empty_tensor_message());
  ProtobufWriter end;
  if (session.succeeded)
    end.add(hparams::kSessionEndStatusField,
            *session.succeeded ? hparams::kSessionSucceededStatus : hparams::kSessionFailedStatus);
  end.add(hparams::kSessionEndTimeField, session.end_s);
  add_plugin_value("_hparams_/session_end_info", 0, session.end_s, "hparams",
                   plugin_data_message(hparams::kSessionEndField, end), make_empty_tensor_message());
}

}  // namespace joulemap::report
