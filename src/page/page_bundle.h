// SPDX-License-Identifier: Apache-2.0
//
// The script and the style of the page, bundled from web/ when joulemap is built. Both are empty if npm was missing;
// then the page is static (page_html.h).
#pragma once

#include <string_view>

namespace joulemap::page {

struct PageBundle {
  std::string_view script;
  std::string_view style;
};

// Defined in a generated file: by web/build.mjs, or without npm by tools/bundle_page.sh.
PageBundle page_bundle();

}  // namespace joulemap::page
