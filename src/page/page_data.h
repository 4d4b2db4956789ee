// SPDX-License-Identifier: Apache-2.0
//
// A RunView as the page's script reads it: schema joulemap.page/1, one line of JSON, compact. Pure; seconds, joules, watts.
//
// Rows are arrays in the order of "columns", numbers of curves have six digits, and of a level with very many rows the
// largest are told, with the sum of the rest. web/src/data.js is the other side.
#pragma once

#include <cstddef>
#include <string>

#include "model/run_view.h"

namespace joulemap::page {

struct PageLimits {
  std::size_t rows = 4000;  // of each level: some hundred kilobytes
};

std::string page_data(const RunView& view, const PageLimits& limits = {});

}  // namespace joulemap::page
