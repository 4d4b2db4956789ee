// SPDX-License-Identifier: Apache-2.0
#include "predict/model/residual_kriging.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "statistics/cholesky.h"

namespace joulemap::predict {
namespace {

// Variance of repeated measurements, relative to the variance of residuals (the nugget of the kriging).
constexpr double kRelativeNugget = 0.02;
constexpr std::size_t kMaxKrigingNeighbours = 12;
constexpr double kLogSizeUnit = 1e-2;              // unit of stored logarithms of sizes
constexpr double kResidualUnit = 1e-3;             // unit of stored residuals
constexpr std::int32_t kMaxStoredSize = 4095;      // largest value in two digits of radix 64
constexpr std::int32_t kMaxStoredResidual = 2047;  // largest absolute value in two digits with a sign
constexpr std::int32_t kMaxAlignmentClass = 2;

// Correlation lengths of the kriging, in natural logarithms of sizes. They are long for the amount of work, which
// physics models well, and short for widths and the batch of convolutions, by which libraries choose their kernels.
struct CorrelationLengths {
  std::array<double, kKrigingDimensions> sizes = {};
  double alignment = 0;
};

CorrelationLengths correlation_lengths(Kind kind) {
  switch (kind) {
    case Kind::convolution:
      return {{4, 2, 0.7, 0.7}, 2};
    case Kind::dense:
    case Kind::bmm:
    case Kind::attention:
      return {{3, 1.5, 1.5, 1.5}, 4};
    case Kind::recurrent:
      return {{2, 1.5, 1, 1.5}, 4};
    case Kind::pooling:
      return {{3, 2, 6, 1.5}, 2};
    case Kind::embedding:
    case Kind::loss:
    case Kind::optimizer:
      return {{3, 3, 3, 3}, 4};
    default:
      return {{3, 6, 6, 1.5}, 4};
  }
}

class Fnv1aHash {  // FNV-1a
 public:
  void add(std::string_view text) {
    for (const char letter : text) hash_byte(static_cast<unsigned char>(letter));
    hash_byte(0xff);
  }
  void add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) hash_byte(static_cast<unsigned char>(number >> shift));
  }
  std::uint64_t value() const { return value_; }

 private:
  void hash_byte(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
  std::uint64_t value_ = 14695981039346656037ULL;
};

bool is_size_parameter(std::string_view name) {
  constexpr std::array<std::string_view, 25> kSizes = {
      "batch",   "rows",       "width",     "height",  "channels", "out",        "in",        "m",      "k",
      "n",       "heads",      "keys",      "queries", "tokens",   "vocabulary", "classes",   "groups", "elements",
      "tensors", "out_height", "out_width", "steps",   "hidden",   "layers",     "directions"};
  return std::find(kSizes.begin(), kSizes.end(), name) != kSizes.end();
}

std::uint64_t kriging_group_id(const Operation& operation, bool is_cache_cold) {
  Fnv1aHash hash;
  hash.add(name_of(operation.kind));
  hash.add(operation.form);
  hash.add(name_of(operation.dtype));
  hash.add(name_of(operation.pass));
  hash.add(is_cache_cold ? 1 : 0);
  const OperationParameters& p = operation.parameters;
  for (const auto& [name, value] : p.entries()) {
    if (is_size_parameter(name) || (value == 0 && name != "foreach")) continue;  // lists may omit zeros
    hash.add(name);
    hash.add(value);
  }
  hash.add(static_cast<std::int64_t>(classify_convolution_grouping(operation)));
  return hash.value();
}

// Rounds to units and clamps to the range that the text can store.
std::int32_t quantize_and_clamp(double value, double unit, std::int32_t min_units, std::int32_t max_units) {
  return static_cast<std::int32_t>(std::lround(std::clamp<double>(value / unit, min_units, max_units)));
}

std::int32_t quantize_log_size(double size) {
  return quantize_and_clamp(std::log(std::max(1.0, size)), kLogSizeUnit, 0, kMaxStoredSize);
}

std::int32_t quantize_residual(double residual) {
  return quantize_and_clamp(residual, kResidualUnit, -kMaxStoredResidual, kMaxStoredResidual);
}

// Exponent of 2 in the size, at most 2. Rows whose length is a multiple of 4 allow vector loads of four elements.
std::int32_t size_alignment_class(double size) {
  return std::fmod(size, 4) == 0 ? kMaxAlignmentClass : std::fmod(size, 2) == 0 ? 1 : 0;
}

// Coordinates of an operation for kriging: the amount of work, then its dimensions, and the alignment of one size.
ResidualSample make_kriging_coordinates(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  const auto parameter_value = [&p](std::string_view name) { return static_cast<double>(p.get(name, 1)); };
  const auto sizes = [](double first_size, double second_size, double third_size, double fourth_size,
                        double aligned_size) {
    ResidualSample sample;
    sample.log_sizes = {quantize_log_size(first_size), quantize_log_size(second_size), quantize_log_size(third_size),
                        quantize_log_size(fourth_size)};
    sample.alignment_class = size_alignment_class(aligned_size);
    return sample;
  };
  const double pixels = parameter_value("height") * parameter_value("width");
  switch (operation.kind) {
    case Kind::convolution:
      if (const double groups = parameter_value("groups");
          classify_convolution_grouping(operation) == ConvolutionGrouping::groups)
        return sizes(parameter_value("batch") * pixels, groups, parameter_value("channels") / groups,
                     parameter_value("out") / groups, pixels);
      return sizes(parameter_value("batch") * pixels, parameter_value("batch"), parameter_value("channels"),
                   parameter_value("out"), pixels);
    case Kind::dense:
      return sizes(parameter_value("rows"), parameter_value("in"), parameter_value("out"), 1,
                   parameter_value("in") * parameter_value("out"));
    case Kind::bmm:
      return sizes(parameter_value("batch"), parameter_value("m"), parameter_value("n"), parameter_value("k"),
                   parameter_value("n"));
    case Kind::attention:
      return sizes(parameter_value("batch") * parameter_value("heads"), parameter_value("queries"),
                   parameter_value("keys"), parameter_value("width"), parameter_value("keys"));
    case Kind::recurrent:
      return sizes(parameter_value("steps") * parameter_value("layers"),
                   parameter_value("batch") * parameter_value("directions"), parameter_value("hidden"),
                   parameter_value("in"), parameter_value("hidden"));
    case Kind::pooling:
      return sizes(parameter_value("batch") * parameter_value("channels") * pixels, pixels, parameter_value("channels"),
                   parameter_value("out"), pixels);
    case Kind::padding:
    case Kind::resize:
    case Kind::input:
    case Kind::normalization:
      return sizes(parameter_value("batch") * parameter_value("channels") * pixels, parameter_value("batch"),
                   parameter_value("channels"), parameter_value("out"), pixels);
    case Kind::embedding:
      return sizes(parameter_value("tokens"), parameter_value("width"), parameter_value("vocabulary"), 1,
                   parameter_value("width"));
    case Kind::loss:
      return sizes(parameter_value("rows"), parameter_value("classes"), 1, 1, parameter_value("classes"));
    case Kind::optimizer:
      return sizes(parameter_value("elements"), parameter_value("tensors"), 1, 1, 4);
    default:
      return sizes(parameter_value("batch") * parameter_value("rows") * parameter_value("width"),
                   parameter_value("batch"), parameter_value("rows"), 1,
                   operation.kind == Kind::concatenate ? parameter_value("rows") * parameter_value("width")
                                                       : parameter_value("width"));
  }
}

// Least pivot of the covariance matrix of samples, which is nearly singular if samples are nearly equal.
constexpr double kMinCholeskyPivot = 1e-12;

double kriging_distance(const ResidualSample& left_sample, const ResidualSample& right_sample,
                        const CorrelationLengths& lengths) {
  const double alignment_difference = (left_sample.alignment_class - right_sample.alignment_class) / lengths.alignment;
  double squares = alignment_difference * alignment_difference;
  for (std::size_t index = 0; index < kKrigingDimensions; ++index) {
    const double scaled_difference =
        kLogSizeUnit * (left_sample.log_sizes[index] - right_sample.log_sizes[index]) / lengths.sizes[index];
    squares += scaled_difference * scaled_difference;
  }
  return std::sqrt(squares);
}

}  // namespace

ResidualSample make_residual_sample(const Operation& operation, double time, double power) {
  ResidualSample sample = make_kriging_coordinates(operation);
  sample.time_residual = quantize_residual(time);
  sample.power_residual = quantize_residual(power);
  return sample;
}

void ResidualKriging::add(const Operation& operation, bool is_cache_cold, const ResidualSample& sample) {
  samples_by_group[kriging_group_id(operation, is_cache_cold)].push_back(sample);
}

InterpolatedResidual ResidualKriging::interpolate(const Operation& operation, bool is_cache_cold,
                                                  const ResidualSample* excluded_sample) const {
  const auto group = samples_by_group.find(kriging_group_id(operation, is_cache_cold));
  if (group == samples_by_group.end()) return {};
  const CorrelationLengths lengths = correlation_lengths(operation.kind);
  const ResidualSample target = make_residual_sample(operation, 0, 0);
  std::vector<std::pair<double, const ResidualSample*>> neighbours;
  for (const ResidualSample& sample : group->second) {
    if (excluded_sample == nullptr || sample != *excluded_sample)
      neighbours.emplace_back(kriging_distance(target, sample, lengths), &sample);
  }
  const std::size_t count = std::min(kMaxKrigingNeighbours, neighbours.size());
  std::partial_sort(neighbours.begin(), neighbours.begin() + static_cast<std::ptrdiff_t>(count), neighbours.end(),
                    [](const auto& left_neighbour, const auto& right_neighbour) {
                      return left_neighbour.first < right_neighbour.first;
                    });
  std::vector<double> between(count * count);
  std::vector<double> shares(count);
  for (std::size_t i = 0; i < count; ++i) {
    shares[i] = std::exp(-neighbours[i].first);
    for (std::size_t j = 0; j < i; ++j)
      between[i * count + j] = std::exp(-kriging_distance(*neighbours[i].second, *neighbours[j].second, lengths));
    between[i * count + i] = 1 + kRelativeNugget;
  }
  const std::vector<double> target_correlations = shares;
  statistics::solve_cholesky(statistics::cholesky_factor(between, shares.size(), kMinCholeskyPivot), shares);
  InterpolatedResidual interpolated;
  for (std::size_t i = 0; i < count; ++i) {
    interpolated.time_residual += kResidualUnit * shares[i] * neighbours[i].second->time_residual;
    interpolated.power_residual += kResidualUnit * shares[i] * neighbours[i].second->power_residual;
    interpolated.kriging_variance -= shares[i] * target_correlations[i];
  }
  return interpolated;
}

namespace {

constexpr std::string_view kRadix64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr int kBitsPerRadix64Digit = 6;
constexpr std::int32_t kZeroResidualCode =
    kMaxStoredResidual + 1;  // code of a residual of 0 in the text, which has no signs
constexpr int kGroupIdDigits = 11;
constexpr int kSampleCountDigits = 4;
constexpr std::size_t kSampleDigits = 2 * kKrigingDimensions + 1 + 2 + 2;

void append_radix64_number(std::string& text, std::uint64_t number, int digits) {
  JOULEMAP_CHECK(digits == kGroupIdDigits || number >> (digits * kBitsPerRadix64Digit) == 0,
                 "more than the digits hold");
  while (digits-- > 0) text += kRadix64Digits[(number >> (digits * kBitsPerRadix64Digit)) % kRadix64Digits.size()];
}

void append_sample(std::string& text, const ResidualSample& sample) {
  const auto append_number = [&text](std::int32_t number, int digits) {
    append_radix64_number(text, static_cast<std::uint64_t>(number), digits);
  };
  for (const std::int32_t size : sample.log_sizes) append_number(size, 2);
  append_number(sample.alignment_class, 1);
  for (const std::int32_t residual : {sample.time_residual, sample.power_residual})
    append_number(residual + kZeroResidualCode, 2);
}

// Reads numbers from the front of a text. has_only_valid_numbers() is false after the first invalid one.
class Radix64Reader {
 public:
  explicit Radix64Reader(std::string_view text) : text_(text) {}

  std::uint64_t take_number(int digits) {
    std::uint64_t number = 0;
    for (; digits > 0 && has_only_valid_numbers_; --digits) {
      const std::size_t digit = text_.empty() ? std::string_view::npos : kRadix64Digits.find(text_.front());
      has_only_valid_numbers_ = digit != std::string_view::npos && number >> (64 - kBitsPerRadix64Digit) == 0;
      if (!has_only_valid_numbers_) return 0;
      number = number << kBitsPerRadix64Digit | digit;
      text_.remove_prefix(1);
    }
    return number;
  }
  ResidualSample take_sample() {
    const auto take_number_in_range = [this](int digits, std::int32_t zero, std::int32_t min_number,
                                             std::int32_t max_number) {
      const std::int32_t number = static_cast<std::int32_t>(take_number(digits)) - zero;
      has_only_valid_numbers_ = has_only_valid_numbers_ && number >= min_number && number <= max_number;
      return number;
    };
    ResidualSample sample;
    for (std::int32_t& size : sample.log_sizes) size = take_number_in_range(2, 0, 0, kMaxStoredSize);
    sample.alignment_class = take_number_in_range(1, 0, 0, kMaxAlignmentClass);
    for (std::int32_t* residual : {&sample.time_residual, &sample.power_residual})
      *residual = take_number_in_range(2, kZeroResidualCode, -kMaxStoredResidual, kMaxStoredResidual);
    return sample;
  }

  bool has_only_valid_numbers() const { return has_only_valid_numbers_; }
  std::size_t characters_left() const { return text_.size(); }

 private:
  std::string_view text_;
  bool has_only_valid_numbers_ = true;
};

}  // namespace

std::string kriging_text(const ResidualKriging& kriging) {
  std::string text;
  for (const auto& [group, samples] : kriging.samples_by_group) {
    append_radix64_number(text, group, kGroupIdDigits);
    append_radix64_number(text, samples.size(), kSampleCountDigits);
    for (const ResidualSample& sample : samples) append_sample(text, sample);
  }
  return text;
}

Result<ResidualKriging> read_kriging(std::string_view text) {
  const Error format_error{ErrorCode::malformed, "invalid neighbour operations",
                           "create the profile again: joulemap model fit"};
  ResidualKriging kriging;
  Radix64Reader digits(text);
  while (digits.characters_left() > 0) {
    const std::uint64_t group = digits.take_number(kGroupIdDigits);
    const std::uint64_t count = digits.take_number(kSampleCountDigits);
    // Checked before samples are added: the count in a malformed text may exceed memory.
    if (!digits.has_only_valid_numbers() || count > digits.characters_left() / kSampleDigits) return format_error;
    std::vector<ResidualSample>& samples = kriging.samples_by_group[group];
    for (std::uint64_t index = 0; index < count; ++index) samples.push_back(digits.take_sample());
    if (!digits.has_only_valid_numbers()) return format_error;
  }
  return kriging;
}

}  // namespace joulemap::predict
