// SPDX-License-Identifier: Apache-2.0
#include "bundle/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "bundle/recorded_environment.h"
#include "bundle/verdict.h"
#include "formats/document.h"
#include "formats/json_writer.h"
#include "model_json/verdict_json.h"
#include "report/json/report_json.h"

namespace joulemap::bundle {
namespace {

using formats::DocumentMember;
using formats::DocumentValue;

std::string json_value_text(const DocumentValue& value) {
  if (value.table() != nullptr) return "{...}";
  if (value.array() != nullptr) return fmt::format("[{} elements]", value.array()->size());
  if (const auto text = value.text()) return quoted(*text, 200);
  if (const auto truth = value.boolean()) return *truth ? "true" : "false";
  if (const auto integer = value.integer()) return fmt::format("{}", *integer);
  if (const auto number = value.number()) return fmt::format("{}", *number);
  return "null";
}

class StatementComparison {
 public:
  explicit StatementComparison(std::vector<StatementDifference>& differences) : differences_(differences) {}

  void compare_json_texts(const std::string& member, std::string_view stated_text, std::string_view computed) {
    member_name_ = member;
    if (stated_text == computed) return;
    const Result<DocumentValue> a = formats::read_json(stated_text, member);
    const Result<DocumentValue> b = formats::read_json(computed, member);
    if (a && b) {
      compare_json_values("", *a, *b);
    } else {
      add_difference("", a ? "JSON" : a.error().message, "JSON");
    }
  }

 private:
  void compare_json_values(const std::string& path, const DocumentValue& stated_value, const DocumentValue& computed) {
    if (differences_.size() >= kMaxStatementDifferences) return;
    if (stated_value.table() != nullptr && computed.table() != nullptr) {
      compare_json_objects(path, stated_value, computed);
    } else if (stated_value.array() != nullptr && computed.array() != nullptr) {
      compare_json_arrays(path, *stated_value.array(), *computed.array());
    } else if (!are_equal_within_tolerance(stated_value, computed)) {
      add_difference(path, json_value_text(stated_value), json_value_text(computed));
    }
  }
  void compare_json_objects(const std::string& path, const DocumentValue& stated_object,
                            const DocumentValue& computed) {
    for (const DocumentMember& member : *stated_object.table()) {
      const std::string member_path = path.empty() ? member.key : path + "." + member.key;
      const DocumentValue* const computed_value = computed.find(member.key);
      if (computed_value == nullptr) {
        add_difference(member_path, json_value_text(member.value), "");
      } else {
        compare_json_values(member_path, member.value, *computed_value);
      }
    }
    for (const DocumentMember& member : *computed.table()) {
      if (stated_object.find(member.key) == nullptr)
        add_difference(path.empty() ? member.key : path + "." + member.key, "", json_value_text(member.value));
    }
  }
  void compare_json_arrays(const std::string& path, const DocumentValue::Array& stated_array,
                           const DocumentValue::Array& computed) {
    if (stated_array.size() != computed.size())
      return add_difference(path, fmt::format("{} elements", stated_array.size()),
                            fmt::format("{} elements", computed.size()));
    for (std::size_t i = 0; i < stated_array.size(); ++i)
      compare_json_values(fmt::format("{}[{}]", path, i), stated_array[i], computed[i]);
  }
  static bool are_equal_within_tolerance(const DocumentValue& a, const DocumentValue& b) {
    if (a.content.index() == b.content.index() && !a.number()) {
      return a.is_null() || (a.boolean() && a.boolean() == b.boolean()) || (a.text() && a.text() == b.text());
    }
    if (a.integer() && b.integer()) return a.integer() == b.integer();
    const std::optional<double> x = a.number();
    const std::optional<double> y = b.number();
    return x && y && std::abs(*x - *y) <= kStatementRelativeTolerance * std::max(std::abs(*x), std::abs(*y));
  }
  void add_difference(const std::string& path, std::string stated_text, std::string computed) {
    if (differences_.size() < kMaxStatementDifferences)
      differences_.push_back({member_name_, path, std::move(stated_text), std::move(computed)});
  }

  std::vector<StatementDifference>& differences_;
  std::string member_name_;
};

std::string verdict_text(const MeasurementVerdict& verdict) {
  formats::JsonWriter json;
  json.begin_object();
  write_verdict(json, verdict);
  json.end_object();
  return std::move(json).text();
}

}  // namespace

Result<BundleStatements> compute_statements(const BundleMemberCopies& copies, attribution::ReportQuery query,
                                            const Diagnostics& notes) {
  const std::vector<std::string> paths = copies.recording_paths();
  const std::vector<attribution::RowLevel> levels = {attribution::RowLevel::layer, attribution::RowLevel::domain};
  query.grouping = {};
  Result<std::vector<ReportResult>> reports = attribution::build_reports(paths, query, levels);
  if (!reports) return copies.replace_paths_with_names(std::move(reports).error());
  const Result<RecordedEnvironment> environment = read_environment(paths);
  if (!environment) return copies.replace_paths_with_names(environment.error());
  for (ReportResult& report : *reports) {
    report.inputs = copies.recording_names();
    report.diagnostics.add_all(notes);
    report.diagnostics = copies.replace_paths_with_names(report.diagnostics);
  }
  const ReportResult& by_layer = reports->at(0);
  return BundleStatements{report::report_json(by_layer) + "\n", report::report_json(reports->at(1)) + "\n",
                          environment_json(*environment, by_layer) + "\n",
                          judge_measurement(by_layer, environment->clock_jump_s), by_layer.diagnostics};
}

std::vector<StatementDifference> compare_statements(const OpenedBundle& bundle, const BundleStatements& computed) {
  std::vector<StatementDifference> differences;
  StatementComparison comparison(differences);
  comparison.compare_json_texts(std::string(kManifestMemberName), verdict_text(bundle.manifest.verdict),
                                verdict_text(computed.verdict));
  const auto compare = [&](std::string_view name, const std::string& recomputed_text) {
    comparison.compare_json_texts(std::string(name), bundle.member_content(name).value_or(""), recomputed_text);
  };
  compare(kDomainReportMemberName, computed.domain_report);
  compare(kLayerReportMemberName, computed.layer_report);
  compare(kEnvironmentMemberName, computed.environment);
  return differences;
}

}  // namespace joulemap::bundle
