// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "formats/json_writer.h"
#include "report/text/operation_text.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

void write_operation_row(JsonWriter& json, const predict::OperationRow& row) {
  constexpr double kPicojoules = 1e12;
  json.begin_object().member("size", row.size).key("parameters").begin_object();
  for (const auto& [name, value] : row.operation.parameters.entries()) json.member(name, value);
  json.end_object()
      .member("precision", name_of(row.operation.dtype))
      .member("pass", name_of(row.operation.pass))
      .member("energy_j", row.energy_j)
      .member("time_s", row.time_s)
      .member("flops", row.flops)
      .member("bytes", row.bytes)
      .member("pj_per_flop", row.flops > 0 ? kPicojoules * row.energy_j / row.flops : NAN)  // NAN: written as null
      .member("bound", name_of(row.bound))
      .member("trust", row.trust_factor)
      .end_object();
}

}  // namespace

std::string operation_table_json(const predict::OperationTable& table) {
  JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.card/1")
      .member("name", table.subject.name)
      .member("kind", name_of(table.subject.kind))
      .text_or_null("form", table.subject.form)
      .text_or_null("variant", table.subject.variant)
      .member("device", table.device)
      .member("basis", table.fitted ? "fitted" : "datasheet")
      .member("is_measured", table.is_measured)
      .key("rows")
      .begin_array();
  for (const predict::OperationRow& row : table.rows) write_operation_row(json, row);
  json.end_array().key("advice").begin_array();
  for (const std::string& sentence : table.advice) json.value(sentence);
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
