// SPDX-License-Identifier: Apache-2.0
//
// The cost card of an operation, as text for people and as JSON (schema joulemap.card/1). Pure.
#pragma once

#include <string>

#include "predict/evaluation/operation_card.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string operation_card_text(const predict::OperationCard& card, const TextStyle& style);
std::string operation_card_json(const predict::OperationCard& card);

}  // namespace joulemap::report
