// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap bundle` and `joulemap verify`. Pure.
#pragma once

#include <string>

#include "model/bundle_result.h"

namespace joulemap::report {

std::string bundle_text(const BundleResult& result);
// Schema joulemap.bundle/1, one line.
std::string bundle_json(const BundleResult& result);

std::string verification_text(const VerificationResult& result);
// Schema joulemap.verification/1, one line.
std::string verification_json(const VerificationResult& result);

}  // namespace joulemap::report
