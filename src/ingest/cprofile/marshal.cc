// SPDX-License-Identifier: Apache-2.0
#include "ingest/cprofile/marshal.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace joulemap::ingest {
namespace {

constexpr std::uint8_t kReferableFlag = 0x80;      // the object gets the next index of later references
constexpr int kMaxNestingDepth = 32;               // a profile has four levels
constexpr std::int32_t kMaxLongIntegerDigits = 4;  // of 15 bits: 60 bits fit std::int64_t

class MarshalReader {
 public:
  explicit MarshalReader(std::string_view bytes) : bytes_(bytes) {}

  Result<MarshalDocument> read() {
    const std::optional<std::uint32_t> root = read_object(0);
    if (root && position_ != bytes_.size()) problem_ = "bytes follow the object";
    if (!root || !problem_.empty()) {
      return Error{ErrorCode::malformed,
                   fmt::format("not a marshal file of cProfile: {} at byte {}", problem_, position_), ""};
    }
    document_.root_index = *root;
    return std::move(document_);
  }

 private:
  using ObjectKind = MarshalObject::Kind;

  std::nullopt_t record_problem(std::string_view problem) {
    if (problem_.empty()) problem_ = problem;
    return std::nullopt;
  }

  std::optional<std::string_view> take_bytes(std::uint64_t size) {
    if (size > bytes_.size() - position_) return record_problem("the file ends within an object");
    const std::string_view part = bytes_.substr(position_, size);
    position_ += size;
    return part;
  }

  std::optional<std::uint64_t> read_little_endian(std::size_t size) {
    const std::optional<std::string_view> part = take_bytes(size);
    if (!part) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<std::uint8_t>((*part)[i])} << (8 * i);
    return value;
  }

  std::optional<std::int32_t> read_signed_32() {
    const std::optional<std::uint64_t> value = read_little_endian(4);
    if (!value) return std::nullopt;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(*value));
  }

  // A size must fit into the rest of the file: each item takes at least a byte.
  std::optional<std::uint64_t> read_object_size(std::size_t bytes) {
    const std::optional<std::uint64_t> value = read_little_endian(bytes);
    if (value && *value > bytes_.size() - position_) return record_problem("the size of an object is too large");
    return value;
  }

  std::uint32_t add_object(MarshalObject object, bool is_referable) {
    const auto index = static_cast<std::uint32_t>(document_.objects.size());
    document_.objects.push_back(std::move(object));
    if (is_referable) referable_objects_.push_back(index);
    return index;
  }

  std::optional<std::uint32_t> add_integer_object(std::optional<std::int64_t> value, bool is_referable) {
    if (!value) return std::nullopt;
    MarshalObject object;
    object.kind = ObjectKind::integer;
    object.integer_value = *value;
    object.real_value = static_cast<double>(*value);
    return add_object(std::move(object), is_referable);
  }

  std::optional<std::uint32_t> add_real_object(std::optional<double> value, bool is_referable) {
    if (!value) return std::nullopt;
    MarshalObject object;
    object.kind = ObjectKind::real;
    object.real_value = *value;
    return add_object(std::move(object), is_referable);
  }

  std::optional<std::uint32_t> read_text_object(std::size_t size_bytes, bool is_referable, bool is_python2_interned) {
    const std::optional<std::uint64_t> length = read_object_size(size_bytes);
    const std::optional<std::string_view> text = length ? take_bytes(*length) : std::nullopt;
    if (!text) return std::nullopt;
    MarshalObject object;
    object.kind = ObjectKind::text;
    object.text = *text;
    const std::uint32_t index = add_object(std::move(object), is_referable);
    if (is_python2_interned) interned_objects_.push_back(index);
    return index;
  }

  // Integers beyond 32 bits: a signed count of 15-bit digits, then the digits.
  std::optional<std::int64_t> read_long_integer() {
    const std::optional<std::int32_t> digits = read_signed_32();
    if (!digits) return std::nullopt;
    if (*digits < -kMaxLongIntegerDigits || *digits > kMaxLongIntegerDigits)
      return record_problem("an integer is too large");
    std::int64_t value = 0;
    const std::int32_t count = *digits < 0 ? -*digits : *digits;
    for (std::int32_t i = 0; i < count; ++i) {
      const std::optional<std::uint64_t> digit = read_little_endian(2);
      if (!digit) return std::nullopt;
      if (*digit >= 1 << 15) return record_problem("an integer is damaged");
      value |= static_cast<std::int64_t>(*digit) << (15 * i);
    }
    return *digits < 0 ? -value : value;
  }

  std::optional<double> read_real_as_text() {
    const std::optional<std::uint64_t> length = read_object_size(1);
    const std::optional<std::string_view> text = length ? take_bytes(*length) : std::nullopt;
    if (!text) return std::nullopt;
    const std::optional<double> value = parse_double(*text);
    if (!value) return record_problem("a number is damaged");
    return value;
  }

  std::optional<std::uint32_t> read_tuple(std::optional<std::uint64_t> count, bool is_referable, int depth) {
    if (!count) return std::nullopt;
    MarshalObject tuple;
    tuple.kind = ObjectKind::tuple;
    const std::uint32_t index = add_object(std::move(tuple), is_referable);
    std::vector<std::uint32_t> items;
    for (std::uint64_t i = 0; i < *count; ++i) {
      const std::optional<std::uint32_t> item = read_object(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(*item);
    }
    document_.objects[index].item_indices = std::move(items);
    return index;
  }

  std::optional<std::uint32_t> read_dict(bool is_referable, int depth) {
    MarshalObject dict;
    dict.kind = ObjectKind::dict;
    const std::uint32_t index = add_object(std::move(dict), is_referable);
    std::vector<std::uint32_t> items;
    while (true) {
      if (position_ == bytes_.size()) return record_problem("the file ends within an object");
      if (bytes_[position_] == '0') {  // the end of a dict
        ++position_;
        break;
      }
      const std::optional<std::uint32_t> key = read_object(depth + 1);
      const std::optional<std::uint32_t> value = key ? read_object(depth + 1) : std::nullopt;
      if (!value) return std::nullopt;
      items.push_back(*key);
      items.push_back(*value);
    }
    document_.objects[index].item_indices = std::move(items);
    return index;
  }

  std::optional<std::uint32_t> read_object_reference(const std::vector<std::uint32_t>& targets) {
    const std::optional<std::uint64_t> number = read_little_endian(4);
    if (!number) return std::nullopt;
    if (*number >= targets.size()) return record_problem("a reference has no object");
    return targets[*number];
  }

  std::optional<std::uint32_t> read_object(int depth) {
    if (depth > kMaxNestingDepth) return record_problem("objects are nested too deeply");
    const std::optional<std::uint64_t> code = read_little_endian(1);
    if (!code) return std::nullopt;
    const bool is_referable = (*code & kReferableFlag) != 0;
    switch (static_cast<char>(*code & ~std::uint64_t{kReferableFlag})) {
      case 'N':
        return add_object({}, false);
      case 'T':
        return add_integer_object(1, false);
      case 'F':
        return add_integer_object(0, false);
      case 'i':
        return add_integer_object(read_signed_32(), is_referable);
      case 'I': {  // 64 bits, Python 2
        const std::optional<std::uint64_t> value = read_little_endian(8);
        return value ? add_integer_object(static_cast<std::int64_t>(*value), is_referable) : std::nullopt;
      }
      case 'l':
        return add_integer_object(read_long_integer(), is_referable);
      case 'g': {
        const std::optional<std::uint64_t> bits = read_little_endian(8);
        return bits ? add_real_object(std::bit_cast<double>(*bits), is_referable) : std::nullopt;
      }
      case 'f':
        return add_real_object(read_real_as_text(), is_referable);
      case 'z':  // ASCII with a one-byte size; 'Z': interned
      case 'Z':
        return read_text_object(1, is_referable, false);
      case 'a':  // ASCII, interned ASCII, Unicode, bytes
      case 'A':
      case 'u':
      case 's':
        return read_text_object(4, is_referable, false);
      case 't':  // interned; Python 2 refers to it with 'R', Python 3 with 'r'
        return read_text_object(4, is_referable, true);
      case ')':
        return read_tuple(read_object_size(1), is_referable, depth);
      case '(':
      case '[':
        return read_tuple(read_object_size(4), is_referable, depth);
      case '{':
        return read_dict(is_referable, depth);
      case 'r':
        return read_object_reference(referable_objects_);
      case 'R':
        return read_object_reference(interned_objects_);
      default:
        return record_problem("an object has an unknown type");
    }
  }

  std::string_view bytes_;
  std::size_t position_ = 0;
  MarshalDocument document_;
  std::vector<std::uint32_t> referable_objects_;
  std::vector<std::uint32_t> interned_objects_;
  std::string problem_;
};

}  // namespace

Result<MarshalDocument> read_marshal(std::string_view bytes) { return MarshalReader(bytes).read(); }

}  // namespace joulemap::ingest
