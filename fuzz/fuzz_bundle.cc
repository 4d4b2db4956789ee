// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of evidence bundles. The first byte selects how the rest is used:
//   0  as a file
//   1  as a manifest, in a valid archive with a valid digest
//   2  as changes of a valid bundle: positions of two bytes, each followed by a value; each change must be found
// An archive that is read must be the one that its members give, and names must stay below the folder.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "bundle/bundle_file.h"
#include "formats/sha256.h"
#include "formats/tar.h"

namespace {

using namespace joulemap;

void check_archive(std::string_view archive) {
  const Result<std::vector<formats::TarMember>> members = formats::read_tar(archive);
  if (!members) return;
  for (const formats::TarMember& member : *members) {
    JOULEMAP_CHECK(formats::is_tar_name(member.name), "a name that leaves the folder");
  }
  JOULEMAP_CHECK(formats::write_tar(*members) == archive, "an archive that is not canonical");
}

bool opens_without_damage(std::string_view archive) {
  check_archive(archive);
  const Result<bundle::OpenedBundle> opened = bundle::open_bundle(archive);
  return opened && opened->damage_descriptions.empty();
}

std::string make_archive_with_manifest(const std::string& text) {
  const std::string digest = formats::sha256_hex(text) + "  manifest.json\n";
  const std::vector<formats::TarMember> members = {
      {"manifest.json", text}, {"manifest.sha256", digest}, {"recordings/run.joule", "content"}};
  return formats::write_tar(members);
}

std::string make_undamaged_bundle() {
  bundle::Manifest manifest;
  manifest.joulemap_version = "0.1.0";
  manifest.options.attribution_mode = "regress";
  const std::vector<formats::TarMember> members = {{"recordings/run.joule", "content"}, {"reports/layer.json", "{}\n"}};
  return bundle::write_bundle(manifest, members).archive_bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 == 0) opens_without_damage(rest);
  if (data[0] % 3 == 1) opens_without_damage(make_archive_with_manifest(rest));
  if (data[0] % 3 == 2) {
    static const std::string whole = make_undamaged_bundle();
    std::string changed = whole;
    for (std::size_t i = 0; i + 2 < rest.size(); i += 3) {
      const std::size_t at = (static_cast<unsigned char>(rest[i]) << 8U) | static_cast<unsigned char>(rest[i + 1]);
      changed[at % changed.size()] = rest[i + 2];
    }
    JOULEMAP_CHECK(opens_without_damage(changed) == (changed == whole), "a change that was not found");
  }
  return 0;
}
