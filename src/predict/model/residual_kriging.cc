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
constexpr double kNoise = 0.02;
constexpr std::size_t kNearest = 12;
constexpr double kHundredth = 1e-2;          // unit of stored logarithms of sizes
constexpr double kThousandth = 1e-3;         // unit of stored residuals
constexpr std::int32_t kMaxSize = 4095;      // largest value in two digits of radix 64
constexpr std::int32_t kMaxResidual = 2047;  // largest absolute value in two digits with a sign
constexpr std::int32_t kMaxAlignment = 2;

// Correlation lengths of the kriging, in natural logarithms of sizes. They are long for the amount of work, which
// physics models well, and short for widths and the batch of convolutions, by which libraries choose their kernels.
struct Lengths {
  std::array<double, kKrigingDimensions> sizes = {};
  double alignment = 0;
};

Lengths lengths_of(Kind kind) {
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

class Hash {  // FNV-1a
 public:
  void add(std::string_view text) {
    for (const char letter : text) add_byte(static_cast<unsigned char>(letter));
    add_byte(0xff);
  }
  void add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<unsigned char>(number >> shift));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
  std::uint64_t value_ = 14695981039346656037ULL;
};

bool is_size(std::string_view name) {
  constexpr std::array<std::string_view, 25> kSizes = {
      "batch",   "rows",       "width",     "height",  "channels", "out",        "in",        "m",      "k",
      "n",       "heads",      "keys",      "queries", "tokens",   "vocabulary", "classes",   "groups", "elements",
      "tensors", "out_height", "out_width", "steps",   "hidden",   "layers",     "directions"};
  return std::find(kSizes.begin(), kSizes.end(), name) != kSizes.end();
}

std::uint64_t group_of(const Operation& operation, bool cold) {
  Hash hash;
  hash.add(name_of(operation.kind));
  hash.add(operation.form);
  hash.add(name_of(operation.dtype));
  hash.add(name_of(operation.pass));
  hash.add(cold ? 1 : 0);
  const Parameters& p = operation.parameters;
  for (const auto& [name, value] : p.entries()) {
    if (is_size(name) || (value == 0 && name != "foreach")) continue;  // lists may omit zeros
    hash.add(name);
    hash.add(value);
  }
  hash.add(static_cast<std::int64_t>(convolution_grouping(operation)));
  return hash.value();
}

// Rounds to units and clamps to the range that the text can store.
std::int32_t in_units(double value, double unit, std::int32_t least, std::int32_t most) {
  return static_cast<std::int32_t>(std::lround(std::clamp<double>(value / unit, least, most)));
}

std::int32_t size_in_units(double size) { return in_units(std::log(std::max(1.0, size)), kHundredth, 0, kMaxSize); }

std::int32_t residual_in_units(double residual) { return in_units(residual, kThousandth, -kMaxResidual, kMaxResidual); }

// Exponent of 2 in the size, at most 2. Rows whose length is a multiple of 4 allow vector loads of four elements.
std::int32_t alignment_of(double size) {
  return std::fmod(size, 4) == 0 ? kMaxAlignment : std::fmod(size, 2) == 0 ? 1 : 0;
}

// Coordinates of an operation for kriging: the amount of work, then its dimensions, and the alignment of one size.
ResidualSample sizes_of(const Operation& operation) {
  const Parameters& p = operation.parameters;
  const auto of = [&p](std::string_view name) { return static_cast<double>(p.get(name, 1)); };
  const auto sizes = [](double first, double second, double third, double fourth, double aligned) {
    ResidualSample sample;
    sample.sizes = {size_in_units(first), size_in_units(second), size_in_units(third), size_in_units(fourth)};
    sample.alignment = alignment_of(aligned);
    return sample;
  };
  const double pixels = of("height") * of("width");
  switch (operation.kind) {
    case Kind::convolution:
      if (const double groups = of("groups"); convolution_grouping(operation) == ConvolutionGrouping::groups)
        return sizes(of("batch") * pixels, groups, of("channels") / groups, of("out") / groups, pixels);
      return sizes(of("batch") * pixels, of("batch"), of("channels"), of("out"), pixels);
    case Kind::dense:
      return sizes(of("rows"), of("in"), of("out"), 1, of("in") * of("out"));
    case Kind::bmm:
      return sizes(of("batch"), of("m"), of("n"), of("k"), of("n"));
    case Kind::attention:
      return sizes(of("batch") * of("heads"), of("queries"), of("keys"), of("width"), of("keys"));
    case Kind::recurrent:
      return sizes(of("steps") * of("layers"), of("batch") * of("directions"), of("hidden"), of("in"), of("hidden"));
    case Kind::pooling:
      return sizes(of("batch") * of("channels") * pixels, pixels, of("channels"), of("out"), pixels);
    case Kind::padding:
    case Kind::resize:
    case Kind::input:
    case Kind::normalization:
      return sizes(of("batch") * of("channels") * pixels, of("batch"), of("channels"), of("out"), pixels);
    case Kind::embedding:
      return sizes(of("tokens"), of("width"), of("vocabulary"), 1, of("width"));
    case Kind::loss:
      return sizes(of("rows"), of("classes"), 1, 1, of("classes"));
    case Kind::optimizer:
      return sizes(of("elements"), of("tensors"), 1, 1, 4);
    default:
      return sizes(of("batch") * of("rows") * of("width"), of("batch"), of("rows"), 1,
                   operation.kind == Kind::concatenate ? of("rows") * of("width") : of("width"));
  }
}

// Least pivot of the covariance matrix of samples, which is nearly singular if samples are nearly equal.
constexpr double kMinPivot = 1e-12;

double distance(const ResidualSample& one, const ResidualSample& other, const Lengths& lengths) {
  const double misaligned = (one.alignment - other.alignment) / lengths.alignment;
  double squares = misaligned * misaligned;
  for (std::size_t index = 0; index < kKrigingDimensions; ++index) {
    const double apart = kHundredth * (one.sizes[index] - other.sizes[index]) / lengths.sizes[index];
    squares += apart * apart;
  }
  return std::sqrt(squares);
}

}  // namespace

ResidualSample make_residual_sample(const Operation& operation, double time, double power) {
  ResidualSample sample = sizes_of(operation);
  sample.time = residual_in_units(time);
  sample.power = residual_in_units(power);
  return sample;
}

void ResidualKriging::add(const Operation& operation, bool cold, const ResidualSample& sample) {
  groups[group_of(operation, cold)].push_back(sample);
}

InterpolatedResidual ResidualKriging::interpolate(const Operation& operation, bool cold,
                                                  const ResidualSample* excluded_sample) const {
  const auto group = groups.find(group_of(operation, cold));
  if (group == groups.end()) return {};
  const Lengths lengths = lengths_of(operation.kind);
  const ResidualSample target = make_residual_sample(operation, 0, 0);
  std::vector<std::pair<double, const ResidualSample*>> near;
  for (const ResidualSample& sample : group->second) {
    if (excluded_sample == nullptr || sample != *excluded_sample)
      near.emplace_back(distance(target, sample, lengths), &sample);
  }
  const std::size_t count = std::min(kNearest, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end(),
                    [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<double> between(count * count);
  std::vector<double> shares(count);
  for (std::size_t i = 0; i < count; ++i) {
    shares[i] = std::exp(-near[i].first);
    for (std::size_t j = 0; j < i; ++j)
      between[i * count + j] = std::exp(-distance(*near[i].second, *near[j].second, lengths));
    between[i * count + i] = 1 + kNoise;
  }
  const std::vector<double> target_to = shares;
  statistics::solve_cholesky(statistics::cholesky(between, shares.size(), kMinPivot), shares);
  InterpolatedResidual interpolated;
  for (std::size_t i = 0; i < count; ++i) {
    interpolated.time += kThousandth * shares[i] * near[i].second->time;
    interpolated.power += kThousandth * shares[i] * near[i].second->power;
    interpolated.kriging_variance -= shares[i] * target_to[i];
  }
  return interpolated;
}

namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr int kBitsOfDigit = 6;
constexpr std::int32_t kNoResidual = kMaxResidual + 1;  // code of a residual of 0 in the text, which has no signs
constexpr int kHashDigits = 11;
constexpr int kCountDigits = 4;
constexpr std::size_t kSampleDigits = 2 * kKrigingDimensions + 1 + 2 + 2;

void put(std::string& text, std::uint64_t number, int digits) {
  JOULEMAP_CHECK(digits == kHashDigits || number >> (digits * kBitsOfDigit) == 0, "more than the digits hold");
  while (digits-- > 0) text += kDigits[(number >> (digits * kBitsOfDigit)) % kDigits.size()];
}

void put(std::string& text, const ResidualSample& sample) {
  const auto put_number = [&text](std::int32_t number, int digits) {
    put(text, static_cast<std::uint64_t>(number), digits);
  };
  for (const std::int32_t size : sample.sizes) put_number(size, 2);
  put_number(sample.alignment, 1);
  for (const std::int32_t residual : {sample.time, sample.power}) put_number(residual + kNoResidual, 2);
}

// Reads numbers from the front of a text. is_sound() is false after the first invalid one.
class Digits {
 public:
  explicit Digits(std::string_view text) : text_(text) {}

  std::uint64_t take(int digits) {
    std::uint64_t number = 0;
    for (; digits > 0 && sound_; --digits) {
      const std::size_t digit = text_.empty() ? std::string_view::npos : kDigits.find(text_.front());
      sound_ = digit != std::string_view::npos && number >> (64 - kBitsOfDigit) == 0;
      if (!sound_) return 0;
      number = number << kBitsOfDigit | digit;
      text_.remove_prefix(1);
    }
    return number;
  }
  ResidualSample take_sample() {
    const auto take_within = [this](int digits, std::int32_t zero, std::int32_t least, std::int32_t most) {
      const std::int32_t number = static_cast<std::int32_t>(take(digits)) - zero;
      sound_ = sound_ && number >= least && number <= most;
      return number;
    };
    ResidualSample sample;
    for (std::int32_t& size : sample.sizes) size = take_within(2, 0, 0, kMaxSize);
    sample.alignment = take_within(1, 0, 0, kMaxAlignment);
    for (std::int32_t* residual : {&sample.time, &sample.power})
      *residual = take_within(2, kNoResidual, -kMaxResidual, kMaxResidual);
    return sample;
  }

  bool is_sound() const { return sound_; }
  std::size_t left() const { return text_.size(); }

 private:
  std::string_view text_;
  bool sound_ = true;
};

}  // namespace

std::string kriging_text(const ResidualKriging& kriging) {
  std::string text;
  for (const auto& [group, samples] : kriging.groups) {
    put(text, group, kHashDigits);
    put(text, samples.size(), kCountDigits);
    for (const ResidualSample& sample : samples) put(text, sample);
  }
  return text;
}

Result<ResidualKriging> read_kriging(std::string_view text) {
  const Error wrong{ErrorCode::malformed, "invalid neighbour operations",
                    "create the profile again: joulemap model fit"};
  ResidualKriging kriging;
  Digits digits(text);
  while (digits.left() > 0) {
    const std::uint64_t group = digits.take(kHashDigits);
    const std::uint64_t count = digits.take(kCountDigits);
    // Checked before samples are added: the count in a malformed text may exceed memory.
    if (!digits.is_sound() || count > digits.left() / kSampleDigits) return wrong;
    std::vector<ResidualSample>& samples = kriging.groups[group];
    for (std::uint64_t index = 0; index < count; ++index) samples.push_back(digits.take_sample());
    if (!digits.is_sound()) return wrong;
  }
  return kriging;
}

}  // namespace joulemap::predict
