// SPDX-License-Identifier: Apache-2.0
//
// Serializes a RunView for the page's script: schema joulemap.page/1, one line of compact JSON. Pure; seconds, joules,
// watts.
//
// Rows are arrays in the order of "columns". Numbers of curves have six digits. A level with very many rows contains
// the largest, and the sum of the rest. web/src/data.js reads it.
#pragma once

#include <cstddef>
#include <string>

#include "model/run_view.h"

namespace joulemap::page {

struct PageLimits {
  std::size_t rows = 4000;  // per level: some hundred kilobytes
};

std::string page_data(const RunView& view, const PageLimits& limits = {});

}  // namespace joulemap::page
