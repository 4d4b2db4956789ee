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

constexpr std::size_t kTarBlockBytes = 512;
constexpr std::size_t kMaxTarNameLength = 100;
constexpr std::uint64_t kMaxTarMemberBytes = (std::uint64_t{1} << 33U) - 1;  // 11 octal digits

// Fields of a ustar header: offset and length.
struct TarHeaderField {
  std::size_t offset;
  std::size_t length;
};
constexpr TarHeaderField kTarNameField = {0, 100};
constexpr TarHeaderField kTarModeField = {100, 8};
constexpr TarHeaderField kTarUserIdField = {108, 8};
constexpr TarHeaderField kTarGroupIdField = {116, 8};
constexpr TarHeaderField kTarSizeField = {124, 12};
constexpr TarHeaderField kTarTimeField = {136, 12};
constexpr TarHeaderField kTarChecksumField = {148, 8};
constexpr std::size_t kTarTypeOffset = 156;
constexpr std::size_t kTarMagicOffset = 257;

void write_octal(std::string& header, const TarHeaderField& field, std::uint64_t value) {
  const std::string digits = fmt::format("{:0{}o}", value, field.length - 1);
  std::copy(digits.begin(), digits.end(), header.begin() + static_cast<std::ptrdiff_t>(field.offset));
}

std::string make_tar_header(std::string_view name, std::uint64_t size) {
  std::string header(kTarBlockBytes, '\0');
  std::copy(name.begin(), name.end(), header.begin());
  write_octal(header, kTarModeField, 0644);
  write_octal(header, kTarUserIdField, 0);
  write_octal(header, kTarGroupIdField, 0);
  write_octal(header, kTarSizeField, size);
  write_octal(header, kTarTimeField, 0);
  header[kTarTypeOffset] = '0';
  constexpr std::string_view kTarMagic("ustar\00000", 8);
  std::copy(kTarMagic.begin(), kTarMagic.end(), header.begin() + kTarMagicOffset);
  // The checksum is the sum of all bytes, with blanks in its own place; it ends with NUL and a blank.
  std::fill_n(header.begin() + kTarChecksumField.offset, kTarChecksumField.length, ' ');
  std::uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  write_octal(header, {kTarChecksumField.offset, kTarChecksumField.length - 1}, sum);
  header[kTarChecksumField.offset + kTarChecksumField.length - 2] = '\0';
  return header;
}

std::size_t tar_padding_bytes(std::uint64_t size) { return (kTarBlockBytes - size % kTarBlockBytes) % kTarBlockBytes; }

bool are_all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char byte) { return byte == '\0'; });
}

std::optional<std::uint64_t> parse_octal(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = 8 * value + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

Error malformed_tar_error(std::string message) {
  return {ErrorCode::malformed, std::move(message), "copy the file again, or make it again with joulemap bundle"};
}

// Reads the member at `offset` and moves `offset` behind it.
Result<TarMember> read_tar_member(std::string_view archive, std::size_t& offset) {
  const std::string_view header = archive.substr(offset, kTarBlockBytes);
  std::string_view name = header.substr(kTarNameField.offset, kTarNameField.length);
  name = name.substr(0, name.find('\0'));
  if (!is_tar_name(name))
    return malformed_tar_error(fmt::format("the name {} is not allowed in a bundle", quoted(name)));
  const std::optional<std::uint64_t> size = parse_octal(header.substr(kTarSizeField.offset, kTarSizeField.length - 1));
  if (!size || header != make_tar_header(name, *size))
    return malformed_tar_error(fmt::format("the header of {} is damaged, or not of a regular file", quoted(name)));
  offset += kTarBlockBytes;
  const std::size_t remaining_bytes = archive.size() - offset;
  if (*size > remaining_bytes || tar_padding_bytes(*size) > remaining_bytes - *size)
    return malformed_tar_error(fmt::format("{} is cut off: {} bytes, {} left", quoted(name), *size, remaining_bytes));
  TarMember member{std::string(name), archive.substr(offset, *size)};
  if (!are_all_zero(archive.substr(offset + *size, tar_padding_bytes(*size))))
    return malformed_tar_error(fmt::format("bytes behind {} are damaged", quoted(name)));
  offset += *size + tar_padding_bytes(*size);
  return member;
}

}  // namespace

bool is_tar_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxTarNameLength) return false;
  const auto is_allowed_in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == '/';
  };
  if (!std::ranges::all_of(name, is_allowed_in_name)) return false;
  return std::ranges::none_of(split(name, '/'),
                              [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

std::string write_tar(std::span<const TarMember> members) {
  JOULEMAP_CHECK(members.size() <= kMaxTarMembers, "more members than read_tar() accepts");
  std::size_t bytes = 2 * kTarBlockBytes;
  for (const TarMember& member : members)
    bytes += kTarBlockBytes + member.content.size() + tar_padding_bytes(member.content.size());
  std::string archive;
  archive.reserve(bytes);
  for (const TarMember& member : members) {
    JOULEMAP_CHECK(is_tar_name(member.name) && member.content.size() <= kMaxTarMemberBytes,
                   "a member that no archive can hold");
    archive += make_tar_header(member.name, member.content.size());
    archive += member.content;
    archive.append(tar_padding_bytes(member.content.size()), '\0');
  }
  archive.append(2 * kTarBlockBytes, '\0');
  return archive;
}

Result<std::vector<TarMember>> read_tar(std::string_view archive) {
  std::vector<TarMember> members;
  std::set<std::string_view> names;
  std::size_t offset = 0;
  while (archive.size() - offset >= kTarBlockBytes && !are_all_zero(archive.substr(offset, kTarBlockBytes))) {
    Result<TarMember> member = read_tar_member(archive, offset);
    if (!member) return std::move(member).error();
    if (members.size() == kMaxTarMembers)
      return malformed_tar_error(fmt::format("it has more than {} members", kMaxTarMembers));
    members.push_back(std::move(*member));
  }
  if (archive.size() - offset != 2 * kTarBlockBytes || !are_all_zero(archive.substr(offset)))
    return malformed_tar_error("the end of the archive is missing or damaged");
  for (const TarMember& member : members) {
    if (!names.insert(member.name).second)
      return malformed_tar_error(fmt::format("{} occurs twice", quoted(member.name)));
  }
  return members;
}

}  // namespace joulemap::formats
