// SPDX-License-Identifier: Apache-2.0
//
// Whether the inference of a program evaluates the model that it trains. Pure.
#pragma once

#include "model/report_result.h"

namespace joulemap {

// True if single calls of the model take place between most training steps: an agent that acts, or a target network. Such
// evaluation steps evaluate nothing. `report`: of any level.
bool is_inference_part_of_training(const ReportResult& report);

// `report`: by layer or by operation. False without training, and where a teacher infers in every training step. True if
// the recording does not contain steps.
bool is_inference_evaluation(const ReportResult& report);

}  // namespace joulemap
