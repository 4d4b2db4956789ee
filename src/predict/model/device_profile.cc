// SPDX-License-Identifier: Apache-2.0
#include "predict/model/device_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "formats/document.h"
#include "formats/json_writer.h"
#include "predict/model/tree_text.h"

namespace joulemap::predict {
namespace {

// Changes by schema version. 2: host costs by name and kind; copies from the host are limited by the bus. 3: samples
// for kriging in digits of radix 64. 4: one coefficient for each term. Profiles of version 3 are still read.
constexpr std::string_view kProfileSchema = "joulemap.profile/4";
constexpr std::string_view kFormerProfileSchema = "joulemap.profile/3";

// Rounds to five significant digits, which keep files small: coefficients are accurate to a few percent only.
double round_to_five_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::fabs(value))));
  if (!std::isfinite(scale)) return value;  // below 1e-304
  return std::round(value * scale) / scale;
}

template <class Numbers>
void write_numbers(formats::JsonWriter& json, std::string_view name, const Numbers& numbers) {
  json.key(name).begin_array();
  for (const double number : numbers) json.value(round_to_five_digits(number));
  json.end_array();
}

template <std::size_t N>
void write_coefficient_groups(formats::JsonWriter& json, std::string_view name, const Coefficients<N>& groups) {
  json.key(name).begin_object();
  for (const auto& [group, coefficients] : groups) write_numbers(json, group, coefficients);
  json.end_object();
}

void write_datasheet(formats::JsonWriter& json, const Datasheet& datasheet) {
  json.key("datasheet")
      .begin_object()
      .member("name", datasheet.name)
      .member("multiprocessors", datasheet.multiprocessors);
  write_numbers(json, "peak_flops", datasheet.peak_flops);
  json.member("memory_bytes_per_s", datasheet.memory_bytes_per_s).member("cache_bytes", datasheet.cache_bytes);
  json.member("cache_bytes_per_s", datasheet.cache_bytes_per_s).member("power_limit_w", datasheet.power_limit_w);
  json.member("idle_w", datasheet.idle_w).end_object();
}

void write_host_costs(formats::JsonWriter& json, std::string_view name, const HostCostVector& costs) {
  json.key(name).begin_object();
  for (std::size_t index = 0; index < kHostCostCount; ++index) {
    if (costs[index] > 0) json.member(host_cost_name(index), round_to_five_digits(costs[index]));
  }
  json.end_object();
}

void write_network(formats::JsonWriter& json, const NetworkModel& model) {
  json.key("network")
      .begin_object()
      .member("power_limit_w", round_to_five_digits(model.power_limit_w))
      .member("gpu_time_scale", round_to_five_digits(model.gpu_time_scale));
  json.key("energy_scales").begin_object();
  for (std::size_t index = 0; index < kEnergyGroupNames.size(); ++index)
    json.member(kEnergyGroupNames[index], round_to_five_digits(model.energy_scales[index]));
  json.end_object();
  write_host_costs(json, "host_inference_s", model.inference_host_costs_s);
  write_host_costs(json, "host_training_s", model.training_host_costs_s);
  json.member("python_per_call", round_to_five_digits(model.python_calls_per_operation));
  json.member("inference_width", round_to_five_digits(model.inference_log_half_width))
      .member("training_width", round_to_five_digits(model.training_log_half_width));
  json.member("host_width", round_to_five_digits(model.host_bound_width_factor))
      .member("layer_width", round_to_five_digits(model.layer_log_half_width));
  json.key("launches").begin_object();
  for (const auto& [group, launches] : model.launches) json.member(group, round_to_five_digits(launches));
  json.end_object().end_object();
}

// Only profiles of the learner `linear` have one: the intercept, then the slopes.
void write_linear_function(formats::JsonWriter& json, std::string_view name, const LinearFunction& function) {
  if (function.slopes.empty()) return;
  std::vector<double> numbers = {function.intercept};
  numbers.insert(numbers.end(), function.slopes.begin(), function.slopes.end());
  write_numbers(json, name, numbers);
}

// Limits of the numbers in a profile. Predictions multiply them and exponentiate sums of trees: larger ones would
// overflow.
constexpr double kMaxProfileNumber = 1e18;  // above any GPU's FLOP/s
constexpr double kMaxTreePrediction = 100;  // sum over all trees, a natural logarithm
constexpr double kMaxLogHalfWidth = 100;    // half width of an interval, a natural logarithm

// Reads numbers and records the name of the first one that is missing or out of range.
class ProfileNumberReader {
 public:
  double read_number(const formats::DocumentValue* table, std::string_view name, double max_value = kMaxProfileNumber) {
    return require_in_range(table == nullptr ? std::nullopt : table->number(name), name, 0, max_value);
  }
  double require_in_range(std::optional<double> number, std::string_view name, double min_value = 0,
                          double max_value = kMaxProfileNumber) {
    if ((!number || !(*number >= min_value && *number <= max_value)) && first_invalid_name_.empty())
      first_invalid_name_ = name;
    return number.value_or(0);
  }
  template <class Array>
  void read_array(const formats::DocumentValue* numbers_json, std::string_view name, Array& numbers,
                  double min_value = 0) {
    if (numbers_json == nullptr || numbers_json->array() == nullptr ||
        numbers_json->array()->size() != numbers.size()) {
      if (first_invalid_name_.empty()) first_invalid_name_ = name;
      return;
    }
    for (std::size_t index = 0; index < numbers.size(); ++index) {
      const double number = require_in_range((*numbers_json->array())[index].number(), name, min_value);
      numbers[index] = static_cast<typename Array::value_type>(number);
    }
  }
  const std::string& first_invalid_name() const { return first_invalid_name_; }

 private:
  std::string first_invalid_name_;
};

// Converts the coefficients of schema 3, which has six. The fifth belonged to `elements` or, for some kinds, to `bus`,
// `serial_groups` or `step_latency`; the second to `tiles` or, for optimizers, to `tensor_launches`. Each kind uses
// only one term of such a set, so that all of them can get the same value.
constexpr std::size_t kSchema3TermCount = 6;

template <std::size_t N>
TermValues<N> convert_schema3_terms(std::span<const double> schema3_values) {
  TermValues<N> values{};
  std::copy_n(schema3_values.begin(), kSchema3TermCount, values.begin());
  for (const PhysicsTerm term : {PhysicsTerm::bus, PhysicsTerm::serial_groups, PhysicsTerm::step_latency})
    values[term] = values[PhysicsTerm::elements];
  values[PhysicsTerm::tensor_launches] = values[PhysicsTerm::tiles];
  if constexpr (N > kPhysicsTermCount) values[kPhysicsTermCount] = schema3_values[kSchema3TermCount];
  return values;
}

template <std::size_t N>
TermValues<N> read_term_values(const formats::DocumentMember& member, ProfileNumberReader& numbers) {
  TermValues<N> values{};
  constexpr std::size_t kFormerSize = kSchema3TermCount + (N - kPhysicsTermCount);
  if (const auto* values_json = member.value.array(); values_json != nullptr && values_json->size() == kFormerSize) {
    std::array<double, kFormerSize> schema3_values{};
    numbers.read_array(&member.value, member.key, schema3_values);
    return convert_schema3_terms<N>(schema3_values);
  }
  numbers.read_array(&member.value, member.key, values);
  return values;
}

template <std::size_t N>
Coefficients<N> read_coefficient_groups(const formats::DocumentValue* object, std::string_view name,
                                        ProfileNumberReader& numbers) {
  Coefficients<N> groups;
  if (object == nullptr || object->table() == nullptr) {
    numbers.read_number(nullptr, name);
    return groups;
  }
  for (const formats::DocumentMember& member : *object->table())
    groups[member.key] = read_term_values<N>(member, numbers);
  return groups;
}

Datasheet read_datasheet(const formats::DocumentValue* object, ProfileNumberReader& numbers) {
  Datasheet datasheet;
  if (object != nullptr) datasheet.name = object->text_or_empty("name");
  datasheet.multiprocessors = numbers.read_number(object, "multiprocessors");
  numbers.read_array(object == nullptr ? nullptr : object->find("peak_flops"), "peak_flops", datasheet.peak_flops);
  datasheet.memory_bytes_per_s = numbers.read_number(object, "memory_bytes_per_s");
  datasheet.cache_bytes = numbers.read_number(object, "cache_bytes");
  datasheet.cache_bytes_per_s = numbers.read_number(object, "cache_bytes_per_s");
  datasheet.power_limit_w = numbers.read_number(object, "power_limit_w");
  datasheet.idle_w = numbers.read_number(object, "idle_w");
  return datasheet;
}

// Costs of 0 are not in the file. A table without any cost is malformed.
HostCostVector read_host_costs(const formats::DocumentValue* object, std::string_view name,
                               ProfileNumberReader& numbers) {
  HostCostVector costs{};
  const formats::DocumentValue* host = object == nullptr ? nullptr : object->find(name);
  if (host == nullptr || host->table() == nullptr || host->table()->empty()) {
    numbers.read_number(nullptr, name);
    return costs;
  }
  for (std::size_t index = 0; index < kHostCostCount; ++index) {
    if (host->find(host_cost_name(index)) != nullptr) costs[index] = numbers.read_number(host, host_cost_name(index));
  }
  return costs;
}

NetworkModel read_network(const formats::DocumentValue* object, ProfileNumberReader& numbers) {
  NetworkModel model;
  model.power_limit_w = numbers.read_number(object, "power_limit_w");
  const formats::DocumentValue* scales = object == nullptr ? nullptr : object->find("energy_scales");
  for (std::size_t index = 0; index < kEnergyGroupNames.size(); ++index)
    model.energy_scales[index] = numbers.read_number(scales, kEnergyGroupNames[index]);
  model.gpu_time_scale = numbers.read_number(object, "gpu_time_scale");
  model.inference_host_costs_s = read_host_costs(object, "host_inference_s", numbers);
  model.training_host_costs_s = read_host_costs(object, "host_training_s", numbers);
  model.python_calls_per_operation = numbers.read_number(object, "python_per_call");
  model.inference_log_half_width = numbers.read_number(object, "inference_width", kMaxLogHalfWidth);
  model.training_log_half_width = numbers.read_number(object, "training_width", kMaxLogHalfWidth);
  model.host_bound_width_factor = numbers.read_number(object, "host_width", kMaxLogHalfWidth);
  model.layer_log_half_width = numbers.read_number(object, "layer_width", kMaxLogHalfWidth);
  const formats::DocumentValue* launches = object == nullptr ? nullptr : object->find("launches");
  if (launches != nullptr && launches->table() != nullptr) {
    for (const formats::DocumentMember& member : *launches->table())
      model.launches[member.key] = numbers.require_in_range(member.value.number(), member.key);
  }
  return model;
}

void read_training_range(const formats::DocumentValue* object, ProfileNumberReader& numbers,
                         TrainingRange& training_range) {
  if (object == nullptr || object->is_null()) return;
  training_range.min_features.resize(feature_names().size());
  training_range.max_features.resize(feature_names().size());
  numbers.read_array(object->find("least"), "least", training_range.min_features, -kMaxProfileNumber);
  numbers.read_array(object->find("most"), "most", training_range.max_features, -kMaxProfileNumber);
}

LinearFunction read_linear_function(const formats::DocumentValue* coefficients_json, std::string_view name,
                                    std::size_t columns, ProfileNumberReader& numbers) {
  if (coefficients_json == nullptr) return {};
  std::vector<double> values(columns + 1);
  numbers.read_array(coefficients_json, name, values, -kMaxProfileNumber);
  return {{values.begin() + 1, values.end()}, values.front()};
}

bool is_plausible_datasheet(const Datasheet& datasheet) {
  bool is_plausible = datasheet.multiprocessors > 0 && datasheet.memory_bytes_per_s > 0 && datasheet.cache_bytes > 0 &&
                      datasheet.cache_bytes_per_s > 0 && datasheet.power_limit_w > 0 && datasheet.idle_w >= 0 &&
                      datasheet.idle_w < datasheet.power_limit_w;
  for (const double peak : datasheet.peak_flops) is_plausible = is_plausible && peak > 0;
  return is_plausible;
}

// An upper bound of the absolute value of RegressionTrees::predict(): the sum over trees of the largest leaf.
double max_tree_prediction(const RegressionTrees& trees) {
  double sum = 0;
  for (std::size_t root = 0; root < trees.roots.size(); ++root) {
    const auto begin = static_cast<std::size_t>(trees.roots[root]);
    const auto end =
        root + 1 < trees.roots.size() ? static_cast<std::size_t>(trees.roots[root + 1]) : trees.nodes.size();
    double max_leaf_value = 0;
    for (std::size_t node_index = begin; node_index < end; ++node_index) {
      if (trees.nodes[node_index].feature < 0)
        max_leaf_value = std::max<double>(max_leaf_value, std::fabs(trees.nodes[node_index].value));
    }
    sum += max_leaf_value;
  }
  return sum;
}

}  // namespace

std::string profile_json(const DeviceProfile& profile) {
  formats::JsonWriter json;
  json.begin_object().member("schema", kProfileSchema).member("device", profile.device);
  json.member("basis", profile.basis == ProfileBasis::fitted ? "fitted" : "datasheet")
      .member("software", profile.software);
  json.member("operations", profile.operations).member("networks", profile.networks);
  write_datasheet(json, profile.operation_model.datasheet);
  write_network(json, profile.network_model);
  write_coefficient_groups(json, "times", profile.operation_model.times);
  write_coefficient_groups(json, "energies", profile.operation_model.energy_coefficients);
  json.key("box").begin_object();
  write_numbers(json, "least", profile.operation_model.training_range.min_features);
  write_numbers(json, "most", profile.operation_model.training_range.max_features);
  json.end_object();
  json.member("time_trees", trees_text(profile.operation_model.learned_time.trees));
  json.member("power_trees", trees_text(profile.operation_model.learned_power.trees));
  write_linear_function(json, "time_linear", profile.operation_model.learned_time.linear);
  write_linear_function(json, "power_linear", profile.operation_model.learned_power.linear);
  json.member("alike", kriging_text(profile.operation_model.kriging));
  json.end_object();
  return std::move(json).text() + "\n";
}

Result<DeviceProfile> read_profile(std::string_view json, std::string_view name) {
  const Result<formats::DocumentValue> document = formats::read_json(json, name);
  if (!document) return document.error();
  const auto refusal_error = [&name](std::string_view reason) {
    return Error{ErrorCode::malformed, fmt::format("{} is not a GPU profile: {}", name, reason),
                 "create one: joulemap model fit DIR -o PROFILE"};
  };
  const std::string schema = document->text_or_empty("schema");
  if (schema != kProfileSchema && schema != kFormerProfileSchema)
    return refusal_error(fmt::format("its schema is not {}", kProfileSchema));
  ProfileNumberReader numbers;
  DeviceProfile profile;
  profile.device = document->text_or_empty("device");
  profile.basis = document->text_or_empty("basis") == "datasheet" ? ProfileBasis::datasheet : ProfileBasis::fitted;
  profile.software = document->text_or_empty("software");
  profile.operations = document->integer("operations").value_or(0);
  profile.networks = document->integer("networks").value_or(0);
  profile.operation_model.datasheet = read_datasheet(document->find("datasheet"), numbers);
  profile.network_model = read_network(document->find("network"), numbers);
  profile.network_model.idle_w = profile.operation_model.datasheet.idle_w;
  profile.operation_model.times = read_coefficient_groups<kPhysicsTermCount>(document->find("times"), "times", numbers);
  profile.operation_model.energy_coefficients =
      read_coefficient_groups<kPhysicsTermCount + 1>(document->find("energies"), "energies", numbers);
  read_training_range(document->find("box"), numbers, profile.operation_model.training_range);
  if (!numbers.first_invalid_name().empty())
    return refusal_error(
        fmt::format("\"{}\" is missing, out of range or of the wrong size", numbers.first_invalid_name()));
  if (!is_plausible_datasheet(profile.operation_model.datasheet)) return refusal_error("its datasheet is invalid");
  const std::size_t columns = feature_names().size() + kKrigingFeatureCount;
  Result<RegressionTrees> times = read_trees(document->text_or_empty("time_trees"), columns);
  Result<RegressionTrees> powers = read_trees(document->text_or_empty("power_trees"), columns + kPowerFeatureCount);
  Result<ResidualKriging> kriging = read_kriging(document->text_or_empty("alike"));
  if (!times) return refusal_error(times.error().message);
  if (!powers) return refusal_error(powers.error().message);
  if (!kriging) return refusal_error(kriging.error().message);
  if (max_tree_prediction(*times) > kMaxTreePrediction || max_tree_prediction(*powers) > kMaxTreePrediction)
    return refusal_error("its trees are out of range");
  LearnedResidual& learned_time = profile.operation_model.learned_time;
  LearnedResidual& learned_power = profile.operation_model.learned_power;
  learned_time.linear = read_linear_function(document->find("time_linear"), "time_linear", columns, numbers);
  learned_power.linear =
      read_linear_function(document->find("power_linear"), "power_linear", columns + kPowerFeatureCount, numbers);
  if (!numbers.first_invalid_name().empty())
    return refusal_error(
        fmt::format("\"{}\" is missing, out of range or of the wrong size", numbers.first_invalid_name()));
  learned_time.trees = std::move(*times);
  learned_power.trees = std::move(*powers);
  profile.operation_model.kriging = std::move(*kriging);
  return profile;
}

}  // namespace joulemap::predict
