// SPDX-License-Identifier: Apache-2.0
//
// Text compared with a file of tests/golden. `make update-goldens` rewrites the files; the review reads the
// difference.
#pragma once

#include <string_view>

namespace joulemap {

void expect_golden(std::string_view file_name, std::string_view text);

}  // namespace joulemap
