// SPDX-License-Identifier: Apache-2.0
#include "formats/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/text.h"

namespace joulemap::formats {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMaxName = 100;
constexpr std::size_t kMaxMembers = 1000;
constexpr std::uint64_t kMaxSize = (std::uint64_t{1} << 33U) - 1;  // 11 octal digits

// Fields of a ustar header: offset and length.
struct Field {
  std::size_t at;
  std::size_t length;
};
constexpr Field kName = {0, 100};
constexpr Field kMode = {100, 8};
constexpr Field kUser = {108, 8};
constexpr Field kGroup = {116, 8};
constexpr Field kSize = {124, 12};
constexpr Field kTime = {136, 12};
constexpr Field kChecksum = {148, 8};
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kMagicAt = 257;

void put_octal(std::string& header, const Field& field, std::uint64_t value) {
  const std::string digits = fmt::format("{:0{}o}", value, field.length - 1);
  std::copy(digits.begin(), digits.end(), header.begin() + static_cast<std::ptrdiff_t>(field.at));
}

std::string header_of(std::string_view name, std::uint64_t size) {
  std::string header(kBlock, '\0');
  std::copy(name.begin(), name.end(), header.begin());
  put_octal(header, kMode, 0644);
  put_octal(header, kUser, 0);
  put_octal(header, kGroup, 0);
  put_octal(header, kSize, size);
  put_octal(header, kTime, 0);
  header[kTypeAt] = '0';
  constexpr std::string_view kMagic("ustar\00000", 8);
  std::copy(kMagic.begin(), kMagic.end(), header.begin() + kMagicAt);
  // The checksum is the sum of all bytes, with blanks in its own place; it ends with NUL and a blank.
  std::fill_n(header.begin() + kChecksum.at, kChecksum.length, ' ');
  std::uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put_octal(header, {kChecksum.at, kChecksum.length - 1}, sum);
  header[kChecksum.at + kChecksum.length - 2] = '\0';
  return header;
}

std::size_t padding_of(std::uint64_t size) { return (kBlock - size % kBlock) % kBlock; }

bool is_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char byte) { return byte == '\0'; });
}

std::optional<std::uint64_t> octal_of(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = 8 * value + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

Error malformed(std::string message) {
  return {ErrorCode::malformed, std::move(message), "copy the file again, or make it again with joulemap bundle"};
}

// Reads the member at `at` and moves `at` behind it.
Result<TarMember> read_member(std::string_view archive, std::size_t& at) {
  const std::string_view header = archive.substr(at, kBlock);
  std::string_view name = header.substr(kName.at, kName.length);
  name = name.substr(0, name.find('\0'));
  if (!is_tar_name(name)) return malformed(fmt::format("the name {} is not allowed in a bundle", quoted(name)));
  const std::optional<std::uint64_t> size = octal_of(header.substr(kSize.at, kSize.length - 1));
  if (!size || header != header_of(name, *size))
    return malformed(fmt::format("the header of {} is damaged, or not of a regular file", quoted(name)));
  at += kBlock;
  const std::size_t left = archive.size() - at;
  if (*size > left || padding_of(*size) > left - *size)
    return malformed(fmt::format("{} is cut off: {} bytes, {} left", quoted(name), *size, left));
  TarMember member{std::string(name), archive.substr(at, *size)};
  if (!is_zero(archive.substr(at + *size, padding_of(*size))))
    return malformed(fmt::format("bytes behind {} are damaged", quoted(name)));
  at += *size + padding_of(*size);
  return member;
}

}  // namespace

bool is_tar_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return false;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == '/';
  };
  if (!std::ranges::all_of(name, is_plain)) return false;
  return std::ranges::none_of(split(name, '/'),
                              [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

std::string write_tar(std::span<const TarMember> members) {
  std::size_t bytes = 2 * kBlock;
  for (const TarMember& member : members) bytes += kBlock + member.content.size() + padding_of(member.content.size());
  std::string archive;
  archive.reserve(bytes);
  for (const TarMember& member : members) {
    JOULEMAP_CHECK(is_tar_name(member.name) && member.content.size() <= kMaxSize, "a member that no archive can hold");
    archive += header_of(member.name, member.content.size());
    archive += member.content;
    archive.append(padding_of(member.content.size()), '\0');
  }
  archive.append(2 * kBlock, '\0');
  return archive;
}

Result<std::vector<TarMember>> read_tar(std::string_view archive) {
  std::vector<TarMember> members;
  std::set<std::string_view> names;
  std::size_t at = 0;
  while (archive.size() - at >= kBlock && !is_zero(archive.substr(at, kBlock))) {
    Result<TarMember> member = read_member(archive, at);
    if (!member) return std::move(member).error();
    if (members.size() == kMaxMembers) return malformed(fmt::format("it has more than {} members", kMaxMembers));
    members.push_back(std::move(*member));
  }
  if (archive.size() - at != 2 * kBlock || !is_zero(archive.substr(at)))
    return malformed("the end of the archive is missing or damaged");
  for (const TarMember& member : members) {
    if (!names.insert(member.name).second) return malformed(fmt::format("{} occurs twice", quoted(member.name)));
  }
  return members;
}

}  // namespace joulemap::formats
