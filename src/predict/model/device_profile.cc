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
constexpr std::string_view kSchema = "joulemap.profile/4";
constexpr std::string_view kFormerSchema = "joulemap.profile/3";

// Rounds to five significant digits, which keep files small: coefficients are accurate to a few percent only.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::fabs(value))));
  if (!std::isfinite(scale)) return value;  // below 1e-304
  return std::round(value * scale) / scale;
}

template <class Numbers>
void write_numbers(formats::JsonWriter& json, std::string_view name, const Numbers& numbers) {
  json.key(name).begin_array();
  for (const double number : numbers) json.value(rounded(number));
  json.end_array();
}

template <std::size_t N>
void write_groups(formats::JsonWriter& json, std::string_view name, const Coefficients<N>& groups) {
  json.key(name).begin_object();
  for (const auto& [group, coefficients] : groups) write_numbers(json, group, coefficients);
  json.end_object();
}

void write_sheet(formats::JsonWriter& json, const Datasheet& sheet) {
  json.key("datasheet").begin_object().member("name", sheet.name).member("multiprocessors", sheet.multiprocessors);
  write_numbers(json, "peak_flops", sheet.peak_flops);
  json.member("memory_bytes_per_s", sheet.memory_bytes_per_s).member("cache_bytes", sheet.cache_bytes);
  json.member("cache_bytes_per_s", sheet.cache_bytes_per_s).member("power_limit_w", sheet.power_limit_w);
  json.member("idle_w", sheet.idle_w).end_object();
}

void write_host(formats::JsonWriter& json, std::string_view name, const HostCostVector& costs) {
  json.key(name).begin_object();
  for (std::size_t index = 0; index < kHostCostCount; ++index) {
    if (costs[index] > 0) json.member(host_cost_name(index), rounded(costs[index]));
  }
  json.end_object();
}

void write_network(formats::JsonWriter& json, const NetworkModel& model) {
  json.key("network")
      .begin_object()
      .member("power_limit_w", rounded(model.power_limit_w))
      .member("gpu_time_scale", rounded(model.gpu_time_scale));
  json.key("energy_scales").begin_object();
  for (std::size_t index = 0; index < kEnergyGroups.size(); ++index)
    json.member(kEnergyGroups[index], rounded(model.energy_scales[index]));
  json.end_object();
  write_host(json, "host_inference_s", model.inference);
  write_host(json, "host_training_s", model.training);
  json.member("python_per_call", rounded(model.python_calls_per_operation));
  json.member("inference_width", rounded(model.inference_interval_width))
      .member("training_width", rounded(model.training_interval_width));
  json.member("host_width", rounded(model.host_bound_width_factor))
      .member("layer_width", rounded(model.layer_interval_width));
  json.key("launches").begin_object();
  for (const auto& [group, launches] : model.launches) json.member(group, rounded(launches));
  json.end_object().end_object();
}

// Limits of the numbers in a profile. Predictions multiply them and exponentiate sums of trees: larger ones would
// overflow.
constexpr double kMaxNumber = 1e18;    // above any GPU's FLOP/s
constexpr double kMaxTreeShare = 100;  // sum over all trees, a natural logarithm
constexpr double kMaxWidth = 100;      // half width of an interval, a natural logarithm

// Reads numbers and records the name of the first one that is missing or out of range.
class Numbers {
 public:
  double of(const formats::DocumentValue* table, std::string_view name, double most = kMaxNumber) {
    return checked(table == nullptr ? std::nullopt : table->number(name), name, 0, most);
  }
  double checked(std::optional<double> found, std::string_view name, double least = 0, double most = kMaxNumber) {
    if ((!found || !(*found >= least && *found <= most)) && missing_.empty()) missing_ = name;
    return found.value_or(0);
  }
  template <class Array>
  void fill(const formats::DocumentValue* list, std::string_view name, Array& numbers, double least = 0) {
    if (list == nullptr || list->array() == nullptr || list->array()->size() != numbers.size()) {
      if (missing_.empty()) missing_ = name;
      return;
    }
    for (std::size_t index = 0; index < numbers.size(); ++index) {
      const double number = checked((*list->array())[index].number(), name, least);
      numbers[index] = static_cast<typename Array::value_type>(number);
    }
  }
  const std::string& missing() const { return missing_; }

 private:
  std::string missing_;
};

// Converts the coefficients of schema 3, which has six. The fifth belonged to `elements` or, for some kinds, to `bus`,
// `serial_groups` or `step_latency`; the second to `tiles` or, for optimizers, to `tensor_launches`. Each kind uses
// only one term of such a set, so that all of them can get the same value.
constexpr std::size_t kFormerTerms = 6;

template <std::size_t N>
TermValues<N> from_former_terms(std::span<const double> former) {
  TermValues<N> values{};
  std::copy_n(former.begin(), kFormerTerms, values.begin());
  for (const Term term : {Term::bus, Term::serial_groups, Term::step_latency}) values[term] = values[Term::elements];
  values[Term::tensor_launches] = values[Term::tiles];
  if constexpr (N > kTermCount) values[kTermCount] = former[kFormerTerms];
  return values;
}

template <std::size_t N>
TermValues<N> read_terms(const formats::DocumentMember& member, Numbers& numbers) {
  TermValues<N> values{};
  constexpr std::size_t kFormerSize = kFormerTerms + (N - kTermCount);
  if (const auto* list = member.value.array(); list != nullptr && list->size() == kFormerSize) {
    std::array<double, kFormerSize> former{};
    numbers.fill(&member.value, member.key, former);
    return from_former_terms<N>(former);
  }
  numbers.fill(&member.value, member.key, values);
  return values;
}

template <std::size_t N>
Coefficients<N> read_groups(const formats::DocumentValue* object, std::string_view name, Numbers& numbers) {
  Coefficients<N> groups;
  if (object == nullptr || object->table() == nullptr) {
    numbers.of(nullptr, name);
    return groups;
  }
  for (const formats::DocumentMember& member : *object->table()) groups[member.key] = read_terms<N>(member, numbers);
  return groups;
}

Datasheet read_sheet(const formats::DocumentValue* object, Numbers& numbers) {
  Datasheet sheet;
  if (object != nullptr) sheet.name = object->text_or_empty("name");
  sheet.multiprocessors = numbers.of(object, "multiprocessors");
  numbers.fill(object == nullptr ? nullptr : object->find("peak_flops"), "peak_flops", sheet.peak_flops);
  sheet.memory_bytes_per_s = numbers.of(object, "memory_bytes_per_s");
  sheet.cache_bytes = numbers.of(object, "cache_bytes");
  sheet.cache_bytes_per_s = numbers.of(object, "cache_bytes_per_s");
  sheet.power_limit_w = numbers.of(object, "power_limit_w");
  sheet.idle_w = numbers.of(object, "idle_w");
  return sheet;
}

// Costs of 0 are not in the file. A table without any cost is malformed.
HostCostVector read_host(const formats::DocumentValue* object, std::string_view name, Numbers& numbers) {
  HostCostVector costs{};
  const formats::DocumentValue* host = object == nullptr ? nullptr : object->find(name);
  if (host == nullptr || host->table() == nullptr || host->table()->empty()) {
    numbers.of(nullptr, name);
    return costs;
  }
  for (std::size_t index = 0; index < kHostCostCount; ++index) {
    if (host->find(host_cost_name(index)) != nullptr) costs[index] = numbers.of(host, host_cost_name(index));
  }
  return costs;
}

NetworkModel read_network(const formats::DocumentValue* object, Numbers& numbers) {
  NetworkModel model;
  model.power_limit_w = numbers.of(object, "power_limit_w");
  const formats::DocumentValue* scales = object == nullptr ? nullptr : object->find("energy_scales");
  for (std::size_t index = 0; index < kEnergyGroups.size(); ++index)
    model.energy_scales[index] = numbers.of(scales, kEnergyGroups[index]);
  model.gpu_time_scale = numbers.of(object, "gpu_time_scale");
  model.inference = read_host(object, "host_inference_s", numbers);
  model.training = read_host(object, "host_training_s", numbers);
  model.python_calls_per_operation = numbers.of(object, "python_per_call");
  model.inference_interval_width = numbers.of(object, "inference_width", kMaxWidth);
  model.training_interval_width = numbers.of(object, "training_width", kMaxWidth);
  model.host_bound_width_factor = numbers.of(object, "host_width", kMaxWidth);
  model.layer_interval_width = numbers.of(object, "layer_width", kMaxWidth);
  const formats::DocumentValue* launches = object == nullptr ? nullptr : object->find("launches");
  if (launches != nullptr && launches->table() != nullptr) {
    for (const formats::DocumentMember& member : *launches->table())
      model.launches[member.key] = numbers.checked(member.value.number(), member.key);
  }
  return model;
}

void read_training_range(const formats::DocumentValue* object, Numbers& numbers, TrainingRange& training_range) {
  if (object == nullptr || object->is_null()) return;
  training_range.min_features.resize(feature_names().size());
  training_range.max_features.resize(feature_names().size());
  numbers.fill(object->find("least"), "least", training_range.min_features, -kMaxNumber);
  numbers.fill(object->find("most"), "most", training_range.max_features, -kMaxNumber);
}

bool is_sensible(const Datasheet& sheet) {
  bool sensible = sheet.multiprocessors > 0 && sheet.memory_bytes_per_s > 0 && sheet.cache_bytes > 0 &&
                  sheet.cache_bytes_per_s > 0 && sheet.power_limit_w > 0 && sheet.idle_w >= 0 &&
                  sheet.idle_w < sheet.power_limit_w;
  for (const double peak : sheet.peak_flops) sensible = sensible && peak > 0;
  return sensible;
}

// An upper bound of the absolute value of RegressionTrees::predict(): the sum over trees of the largest leaf.
double most_of(const RegressionTrees& trees) {
  double sum = 0;
  for (std::size_t root = 0; root < trees.roots.size(); ++root) {
    const auto begin = static_cast<std::size_t>(trees.roots[root]);
    const auto end =
        root + 1 < trees.roots.size() ? static_cast<std::size_t>(trees.roots[root + 1]) : trees.nodes.size();
    double most = 0;
    for (std::size_t at = begin; at < end; ++at) {
      if (trees.nodes[at].feature < 0) most = std::max<double>(most, std::fabs(trees.nodes[at].value));
    }
    sum += most;
  }
  return sum;
}

}  // namespace

std::string profile_json(const DeviceProfile& profile) {
  formats::JsonWriter json;
  json.begin_object().member("schema", kSchema).member("device", profile.device);
  json.member("basis", profile.basis == ProfileBasis::fitted ? "fitted" : "datasheet")
      .member("software", profile.software);
  json.member("operations", profile.operations).member("networks", profile.networks);
  write_sheet(json, profile.operation_model.sheet);
  write_network(json, profile.network_model);
  write_groups(json, "times", profile.operation_model.times);
  write_groups(json, "energies", profile.operation_model.energies);
  json.key("box").begin_object();
  write_numbers(json, "least", profile.operation_model.training_range.min_features);
  write_numbers(json, "most", profile.operation_model.training_range.max_features);
  json.end_object();
  json.member("time_trees", trees_text(profile.operation_model.time_trees));
  json.member("power_trees", trees_text(profile.operation_model.power_trees));
  json.member("alike", kriging_text(profile.operation_model.kriging));
  json.end_object();
  return std::move(json).text() + "\n";
}

Result<DeviceProfile> read_profile(std::string_view json, std::string_view name) {
  const Result<formats::DocumentValue> document = formats::read_json(json, name);
  if (!document) return document.error();
  const auto refused = [&name](std::string_view why) {
    return Error{ErrorCode::malformed, fmt::format("{} is not a GPU profile: {}", name, why),
                 "create one: joulemap model fit DIR -o PROFILE"};
  };
  const std::string schema = document->text_or_empty("schema");
  if (schema != kSchema && schema != kFormerSchema) return refused(fmt::format("its schema is not {}", kSchema));
  Numbers numbers;
  DeviceProfile profile;
  profile.device = document->text_or_empty("device");
  profile.basis = document->text_or_empty("basis") == "datasheet" ? ProfileBasis::datasheet : ProfileBasis::fitted;
  profile.software = document->text_or_empty("software");
  profile.operations = document->integer("operations").value_or(0);
  profile.networks = document->integer("networks").value_or(0);
  profile.operation_model.sheet = read_sheet(document->find("datasheet"), numbers);
  profile.network_model = read_network(document->find("network"), numbers);
  profile.network_model.idle_w = profile.operation_model.sheet.idle_w;
  profile.operation_model.times = read_groups<kTermCount>(document->find("times"), "times", numbers);
  profile.operation_model.energies = read_groups<kTermCount + 1>(document->find("energies"), "energies", numbers);
  read_training_range(document->find("box"), numbers, profile.operation_model.training_range);
  if (!numbers.missing().empty())
    return refused(fmt::format("\"{}\" is missing, out of range or of the wrong size", numbers.missing()));
  if (!is_sensible(profile.operation_model.sheet)) return refused("its datasheet is invalid");
  const std::size_t columns = feature_names().size() + kKrigingColumns;
  Result<RegressionTrees> times = read_trees(document->text_or_empty("time_trees"), columns);
  Result<RegressionTrees> powers = read_trees(document->text_or_empty("power_trees"), columns + kPowerColumns);
  Result<ResidualKriging> kriging = read_kriging(document->text_or_empty("alike"));
  if (!times) return refused(times.error().message);
  if (!powers) return refused(powers.error().message);
  if (!kriging) return refused(kriging.error().message);
  if (most_of(*times) > kMaxTreeShare || most_of(*powers) > kMaxTreeShare) return refused("its trees are out of range");
  profile.operation_model.time_trees = std::move(*times);
  profile.operation_model.power_trees = std::move(*powers);
  profile.operation_model.kriging = std::move(*kriging);
  return profile;
}

}  // namespace joulemap::predict
