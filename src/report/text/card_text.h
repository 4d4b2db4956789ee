// SPDX-License-Identifier: Apache-2.0
//
// The cost card of an operation, as text for people and as JSON (schema joulemap.card/1). Pure.
#pragma once

#include <string>

#include "predict/evaluation/card.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string card_text(const predict::Card& card, const TextStyle& style);
std::string card_json(const predict::Card& card);

}  // namespace joulemap::report
