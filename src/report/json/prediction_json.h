// SPDX-License-Identifier: Apache-2.0
//
// `predict --json`: schema joulemap.prediction/1, one line. Every key is always present; unknown values are null. Pure.
#pragma once

#include <string>

#include "predict/model/prediction_report.h"

namespace joulemap::report {

std::string prediction_json(const predict::PredictionReport& report);

}  // namespace joulemap::report
