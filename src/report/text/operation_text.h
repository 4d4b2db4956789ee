// SPDX-License-Identifier: Apache-2.0
//
// `joulemap operation`: predicted cost of one call of an operation by size and precision, as text for people and as
// JSON (schema joulemap.card/1, one line). Pure.
#pragma once

#include <string>

#include "predict/evaluation/operation_table.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string operation_table_text(const predict::OperationTable& table, const TextStyle& style);
std::string operation_table_json(const predict::OperationTable& table);

}  // namespace joulemap::report
