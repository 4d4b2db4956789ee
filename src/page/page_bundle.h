// SPDX-License-Identifier: Apache-2.0
//
// The script and the style of the page, as web/ was bundled when the program was built. Both are empty where npm was not
// there; then the page is static (page_html.h).
#pragma once

#include <string_view>

namespace joulemap::page {

struct PageBundle {
  std::string_view script;
  std::string_view style;
};

// Generated: web/build.mjs, or cmake/PageBundle.cmake without npm.
PageBundle page_bundle();

}  // namespace joulemap::page
