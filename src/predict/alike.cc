// SPDX-License-Identifier: Apache-2.0
#include "predict/alike.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace joulemap::predict {
namespace {

// Equal operations that were measured again differ by so much of what residuals differ by (variances).
constexpr double kNoise = 0.02;
constexpr std::size_t kNearest = 12;
constexpr double kThousandth = 1e-3;
constexpr std::size_t kMostSamples = 1'000'000;

// How far, as a logarithm, a size may be off until residuals have little in common: far for how much there is to do, which
// physics follows well; near for the widths, and of convolutions for the batch, by which libraries choose their kernels.
using Lengths = std::array<double, kAlikeSizes>;

Lengths lengths_of(Kind kind) {
  switch (kind) {
    case Kind::convolution:
      return {4, 2, 0.7, 0.7, 2};
    case Kind::dense:
    case Kind::bmm:
    case Kind::attention:
      return {3, 1.5, 1.5, 1.5, 4};
    case Kind::pooling:
      return {3, 2, 6, 1.5, 2};
    case Kind::embedding:
    case Kind::loss:
    case Kind::optimizer:
      return {3, 3, 3, 3, 4};
    default:
      return {3, 6, 6, 1.5, 4};
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
  constexpr std::array<std::string_view, 21> kSizes = {
      "batch",      "rows",    "width",  "height",   "channels", "out",        "in",
      "m",          "k",       "n",      "heads",    "keys",     "queries",    "tokens",
      "vocabulary", "classes", "groups", "elements", "tensors",  "out_height", "out_width"};
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
  for (const auto& [name, value] : p.all()) {
    if (is_size(name) || (value == 0 && name != "foreach")) continue;  // some lists tell what is not so, others do not
    hash.add(name);
    hash.add(value);
  }
  const std::int64_t groups = p.get("groups", 1);
  if (groups > 1) hash.add(groups == p.get("channels", 0) ? "depthwise" : "grouped");
  return hash.value();
}

// How often a size halves without a rest, up to 4: whether rows of numbers can be read four at once.
double alignment_of(double size) { return std::fmod(size, 4) == 0 ? 2 : std::fmod(size, 2) == 0 ? 1 : 0; }

// How much there is to do comes first, then what of it is whose; alignment last.
std::array<double, kAlikeSizes> sizes_of(const Operation& operation) {
  const Parameters& p = operation.parameters;
  const auto of = [&p](std::string_view name) { return static_cast<double>(p.get(name, 1)); };
  const auto logarithms = [](double first, double second, double third, double fourth, double aligned) {
    const auto logarithm = [](double size) { return std::log(std::max(1.0, size)); };
    return std::array<double, kAlikeSizes>{logarithm(first), logarithm(second), logarithm(third), logarithm(fourth),
                                           alignment_of(aligned)};
  };
  const double pixels = of("height") * of("width");
  switch (operation.kind) {
    case Kind::convolution:
      return logarithms(of("batch") * pixels, of("batch"), of("channels"), of("out"), pixels);
    case Kind::dense:
      return logarithms(of("rows"), of("in"), of("out"), 1, of("in") * of("out"));
    case Kind::bmm:
      return logarithms(of("batch"), of("m"), of("n"), of("k"), of("n"));
    case Kind::attention:
      return logarithms(of("batch") * of("heads"), of("queries"), of("keys"), of("width"), of("keys"));
    case Kind::pooling:
      return logarithms(of("batch") * of("channels") * pixels, pixels, of("channels"), of("out"), pixels);
    case Kind::padding:
    case Kind::resize:
    case Kind::input:
    case Kind::normalization:
      return logarithms(of("batch") * of("channels") * pixels, of("batch"), of("channels"), of("out"), pixels);
    case Kind::embedding:
      return logarithms(of("tokens"), of("width"), of("vocabulary"), 1, of("width"));
    case Kind::loss:
      return logarithms(of("rows"), of("classes"), 1, 1, of("classes"));
    case Kind::optimizer:
      return logarithms(of("elements"), of("tensors"), 1, 1, 4);
    default:
      return logarithms(of("batch") * of("rows") * of("width"), of("batch"), of("rows"), 1,
                        operation.kind == Kind::concatenate ? of("rows") * of("width") : of("width"));
  }
}

double distance(const AlikeSample& one, const AlikeSample& other, const Lengths& lengths) {
  double squares = 0;
  for (std::size_t index = 0; index < kAlikeSizes; ++index) {
    const double apart = kThousandth * (one.sizes[index] - other.sizes[index]) / lengths[index];
    squares += apart * apart;
  }
  return std::sqrt(squares);
}

// Solves a x = b by Cholesky's way: a symmetric and positive, in rows, of which the left lower half is read; b becomes x.
void solve(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / a[j * n + j];
    }
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
}

std::int32_t thousandths(double value) {
  return static_cast<std::int32_t>(std::lround(std::clamp(value, -1e5, 1e5) / kThousandth));
}

}  // namespace

AlikeSample sample_of(const Operation& operation, double time, double power) {
  AlikeSample sample;
  const auto sizes = sizes_of(operation);
  for (std::size_t index = 0; index < kAlikeSizes; ++index) sample.sizes[index] = thousandths(sizes[index]);
  sample.time = thousandths(time);
  sample.power = thousandths(power);
  return sample;
}

void Alike::add(const Operation& operation, bool cold, const AlikeSample& sample) {
  groups[group_of(operation, cold)].push_back(sample);
}

Interpolated Alike::ask(const Operation& operation, bool cold, const AlikeSample* without) const {
  const auto group = groups.find(group_of(operation, cold));
  if (group == groups.end()) return {};
  const Lengths lengths = lengths_of(operation.kind);
  const AlikeSample here = sample_of(operation, 0, 0);
  std::vector<std::pair<double, const AlikeSample*>> near;
  for (const AlikeSample& sample : group->second) {
    if (without == nullptr || sample != *without) near.emplace_back(distance(here, sample, lengths), &sample);
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
  const std::vector<double> here_to = shares;
  solve(between, shares);
  Interpolated told;
  for (std::size_t i = 0; i < count; ++i) {
    told.time += kThousandth * shares[i] * near[i].second->time;
    told.power += kThousandth * shares[i] * near[i].second->power;
    told.doubt -= shares[i] * here_to[i];
  }
  return told;
}

std::string alike_text(const Alike& alike) {
  std::string text;
  for (const auto& [group, samples] : alike.groups) {
    fmt::format_to(std::back_inserter(text), "{:x}", group);
    for (const AlikeSample& sample : samples) {
      text += ' ';
      for (const std::int32_t size : sample.sizes) fmt::format_to(std::back_inserter(text), "{},", size);
      fmt::format_to(std::back_inserter(text), "{},{}", sample.time, sample.power);
    }
    text += ';';
  }
  return text;
}

namespace {

// Takes a number and what ends it off the front of a text; nothing where there is none.
template <class Number>
bool take(std::string_view& text, Number& number, char& end, int base = 10) {
  const auto [at, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failed != std::errc() || at == text.data() + text.size()) return false;
  end = *at;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()) + 1);
  return true;
}

bool take(std::string_view& text, AlikeSample& sample, char& end) {
  for (std::int32_t& size : sample.sizes) {
    if (!take(text, size, end) || end != ',') return false;
  }
  return take(text, sample.time, end) && end == ',' && take(text, sample.power, end) && (end == ' ' || end == ';');
}

}  // namespace

Result<Alike> read_alike(std::string_view text) {
  const Error wrong{ErrorCode::malformed, "operations alike that make no sense", "joulemap model fit"};
  Alike alike;
  std::size_t count = 0;
  while (!text.empty()) {
    std::uint64_t group = 0;
    char end = 0;
    if (!take(text, group, end, 16) || (end != ' ' && end != ';')) return wrong;
    std::vector<AlikeSample>& samples = alike.groups[group];
    while (end == ' ') {
      AlikeSample sample;
      if (++count > kMostSamples || !take(text, sample, end)) return wrong;
      samples.push_back(sample);
    }
  }
  return alike;
}

}  // namespace joulemap::predict
