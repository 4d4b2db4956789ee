// SPDX-License-Identifier: Apache-2.0
//
// Whether the inference of a program evaluates the model that it trains. Pure.
#pragma once

#include "model/report_result.h"

namespace joulemap {

// `report`: by layer or by operation. False without training, and where a teacher infers in every training step. True if
// the recording does not contain steps.
bool is_inference_evaluation(const ReportResult& report);

}  // namespace joulemap
