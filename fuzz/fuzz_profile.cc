// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes GPU profiles. The first byte selects how the rest is used:
//   0  as the text of a profile
//   1  as changes to the built-in H200 profile, with two small trees instead of its own: the index of a value (two
//      bytes) and of its replacement in kHostileJsonValues (one byte), repeated
// A profile that was read can be written and read again, and its predictions are finite.
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "predict/model/device_profile.h"
#include "predict/model/predictor.h"

namespace {

using namespace joulemap;
using namespace joulemap::predict;

constexpr std::array<std::string_view, 16> kHostileJsonValues = {
    "0",  "-1", "1e308", "-1e308", "1e-308", "1e999", "null",        "\"text\"",
    "[]", "{}", "true",  "1e30",   "-1e30",  "1e-30", "\"nan inf\"", "9223372036854775807"};

// Range of a number or a string in a JSON text.
struct Value {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Value> find_json_values(const std::string& json) {
  std::vector<Value> values;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const std::size_t begin = at;
    if (json[at] == '"') {
      at = json.find('"', at + 1);  // the strings of small_profile_json() contain no escapes
      if (json[at + 1] != ':') values.push_back({begin, at + 1});
    } else if (std::isdigit(static_cast<unsigned char>(json[at])) != 0 || json[at] == '-') {
      while (std::string_view("+-.eE0123456789").find(json[at]) != std::string_view::npos) ++at;
      values.push_back({begin, at});
    }
  }
  return values;
}

const std::string& small_profile_json() {
  static const std::string text = [] {
    DeviceProfile profile = h200_profile();
    profile.operation_model.learned_time.trees = {{{3, 0.5F, 1, 2}, {-1, 0.25F}, {-1, -0.25F}}, {0}};
    profile.operation_model.learned_power.trees = profile.operation_model.learned_time.trees;
    profile.operation_model.kriging = {};
    return profile_json(profile);
  }();
  return text;
}

std::string mutate_profile(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Value> values = find_json_values(small_profile_json());
  std::vector<std::string_view> replaced(values.size());
  for (std::size_t i = 0; i + 2 < size; i += 3) {
    const std::size_t which = (data[i] | static_cast<std::size_t>(data[i + 1]) << 8U) % values.size();
    replaced[which] = kHostileJsonValues[data[i + 2] % kHostileJsonValues.size()];
  }
  std::string json;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (replaced[i].empty()) continue;
    json.append(small_profile_json(), copied, values[i].begin - copied).append(replaced[i]);
    copied = values[i].end;
  }
  return json.append(small_profile_json(), copied);
}

Graph make_two_layer_graph() {
  Graph graph;
  Operation dense;
  dense.layer = "dense";
  dense.kind = Kind::dense;
  dense.parameters = {{"rows", 64}, {"in", 256}, {"out", 512}, {"bias", 1}};
  Operation convolution;
  convolution.layer = "convolution";
  convolution.kind = Kind::convolution;
  convolution.parameters = {{"batch", 8},    {"channels", 64}, {"out", 64},   {"height", 28},
                            {"width", 28},   {"kernel", 3},    {"stride", 1}, {"padding", 1},
                            {"dilation", 1}, {"groups", 1},    {"bias", 0}};
  graph.operations = {dense, convolution};
  graph.weight_tensor_count = 3;
  graph.weight_element_count = 256 * 512 + 512 + 64 * 64 * 9;
  return graph;
}

void check_prediction(const DeviceProfile& profile) {
  for (const bool training : {false, true}) {
    const Prediction prediction = joulemap::predict::predict(profile, make_two_layer_graph(), {.training = training});
    for (const double value : {prediction.energy_j, prediction.low_j, prediction.high_j.value_or(0), prediction.time_s,
                               prediction.power_w}) {
      JOULEMAP_CHECK(std::isfinite(value) && value >= 0, "a prediction that is no number");
    }
    JOULEMAP_CHECK(
        prediction.low_j <= prediction.energy_j && (!prediction.high_j || prediction.energy_j <= *prediction.high_j),
        "an interval without its estimate");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text = data[0] % 2 == 0 ? std::string(reinterpret_cast<const char*>(data) + 1, size - 1)
                                            : mutate_profile(data + 1, size - 1);
  const Result<DeviceProfile> profile = read_profile(text, "fuzzed");
  if (!profile) return 0;
  check_prediction(*profile);
  const Result<DeviceProfile> again = read_profile(profile_json(*profile), "again");
  JOULEMAP_CHECK(again.has_value(), again ? "" : again.error().message);
  const LearnedResidual& residual = profile->operation_model.learned_time;
  JOULEMAP_CHECK(again->operation_model.learned_time.trees.nodes.size() == residual.trees.nodes.size(), "other trees");
  JOULEMAP_CHECK(again->operation_model.learned_time.linear.slopes.size() == residual.linear.slopes.size(),
                 "another linear function");
  return 0;
}
