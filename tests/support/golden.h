// SPDX-License-Identifier: Apache-2.0
//
// Compares text with a file of tests/golden. `make update-goldens` rewrites the files; review the diff.
#pragma once

#include <string_view>

namespace joulemap {

void expect_golden(std::string_view file_name, std::string_view text);

}  // namespace joulemap
