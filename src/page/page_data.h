// SPDX-License-Identifier: Apache-2.0
//
// Serializes a RunView as JSON for the script of the page (web/src/data.js): schema joulemap.page/1, one line. Pure;
// seconds, joules, watts.
//
// To keep the file small, rows are arrays in the order of "columns", names are indices into "names", most numbers have
// six significant digits, and a level contains only its largest rows and the sum of the rest.
#pragma once

#include <cstddef>
#include <string>

#include "model/run_view.h"

namespace joulemap::page {

struct PageLimits {
  std::size_t rows = 4000;  // rows per level; that many take some hundred kilobytes
};

std::string page_data(const RunView& view, const PageLimits& limits = {});

}  // namespace joulemap::page
