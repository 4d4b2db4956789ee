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

// Replaces the paths of recordings in a message by the names of their members.
std::string without_paths(std::string text, std::span<const NamedRecording> recordings) {
  for (const NamedRecording& recording : recordings) {
    for (std::size_t at = text.find(recording.path); at != std::string::npos;
         at = text.find(recording.path, at + recording.name.size()))
      text.replace(at, recording.path.size(), recording.name);
  }
  return text;
}

void remove_paths(ReportResult& report, std::span<const NamedRecording> recordings) {
  report.inputs.clear();
  for (const NamedRecording& recording : recordings) report.inputs.push_back(recording.name);
  Diagnostics renamed;
  for (const Diagnostic& note : report.diagnostics.list()) {
    renamed.add(Diagnostic{note.code, note.count, without_paths(note.message, recordings),
                           without_paths(note.remedy, recordings)});
  }
  report.diagnostics = std::move(renamed);
}

std::string text_of(const DocumentValue& value) {
  if (value.table() != nullptr) return "{...}";
  if (value.array() != nullptr) return fmt::format("[{} elements]", value.array()->size());
  if (const auto text = value.text()) return quoted(*text, 200);
  if (const auto truth = value.boolean()) return *truth ? "true" : "false";
  if (const auto integer = value.integer()) return fmt::format("{}", *integer);
  if (const auto number = value.number()) return fmt::format("{}", *number);
  return "null";
}

class Comparison {
 public:
  explicit Comparison(std::vector<StatementDifference>& differences) : differences_(differences) {}

  void compare(const std::string& member, std::string_view stated, std::string_view computed) {
    member_ = member;
    if (stated == computed) return;
    const Result<DocumentValue> a = formats::read_json(stated, member);
    const Result<DocumentValue> b = formats::read_json(computed, member);
    if (a && b) {
      compare_values("", *a, *b);
    } else {
      add("", a ? "JSON" : a.error().message, "JSON");
    }
  }

 private:
  void compare_values(const std::string& path, const DocumentValue& stated, const DocumentValue& computed) {
    if (differences_.size() >= kMaxDifferences) return;
    if (stated.table() != nullptr && computed.table() != nullptr) {
      compare_tables(path, stated, computed);
    } else if (stated.array() != nullptr && computed.array() != nullptr) {
      compare_arrays(path, *stated.array(), *computed.array());
    } else if (!are_equal(stated, computed)) {
      add(path, text_of(stated), text_of(computed));
    }
  }
  void compare_tables(const std::string& path, const DocumentValue& stated, const DocumentValue& computed) {
    for (const DocumentMember& member : *stated.table()) {
      const std::string at = path.empty() ? member.key : path + "." + member.key;
      const DocumentValue* const other = computed.find(member.key);
      if (other == nullptr) {
        add(at, text_of(member.value), "");
      } else {
        compare_values(at, member.value, *other);
      }
    }
    for (const DocumentMember& member : *computed.table()) {
      if (stated.find(member.key) == nullptr)
        add(path.empty() ? member.key : path + "." + member.key, "", text_of(member.value));
    }
  }
  void compare_arrays(const std::string& path, const DocumentValue::Array& stated,
                      const DocumentValue::Array& computed) {
    if (stated.size() != computed.size())
      return add(path, fmt::format("{} elements", stated.size()), fmt::format("{} elements", computed.size()));
    for (std::size_t i = 0; i < stated.size(); ++i)
      compare_values(fmt::format("{}[{}]", path, i), stated[i], computed[i]);
  }
  static bool are_equal(const DocumentValue& a, const DocumentValue& b) {
    if (a.content.index() == b.content.index() && !a.number()) {
      return a.is_null() || (a.boolean() && a.boolean() == b.boolean()) || (a.text() && a.text() == b.text());
    }
    if (a.integer() && b.integer()) return a.integer() == b.integer();
    const std::optional<double> x = a.number();
    const std::optional<double> y = b.number();
    return x && y && std::abs(*x - *y) <= kRelativeTolerance * std::max(std::abs(*x), std::abs(*y));
  }
  void add(const std::string& path, std::string stated, std::string computed) {
    if (differences_.size() < kMaxDifferences)
      differences_.push_back({member_, path, std::move(stated), std::move(computed)});
  }

  std::vector<StatementDifference>& differences_;
  std::string member_;
};

std::string verdict_text(const Verdict& verdict) {
  formats::JsonWriter json;
  json.begin_object();
  write_verdict(json, verdict);
  json.end_object();
  return std::move(json).text();
}

}  // namespace

Result<Statements> compute_statements(std::span<const NamedRecording> recordings, attribution::ReportQuery query,
                                      const Diagnostics& notes) {
  std::vector<std::string> paths;
  for (const NamedRecording& recording : recordings) paths.push_back(recording.path);
  const std::vector<attribution::RowLevel> levels = {attribution::RowLevel::layer, attribution::RowLevel::domain};
  query.grouping = {};
  Result<std::vector<ReportResult>> reports = attribution::build_reports(paths, query, levels);
  if (!reports) return std::move(reports).error();
  const Result<RecordedEnvironment> environment = read_environment(paths);
  if (!environment) return environment.error();
  for (ReportResult& report : *reports) {
    report.diagnostics.add_all(notes);
    remove_paths(report, recordings);
  }
  const ReportResult& by_layer = reports->at(0);
  return Statements{report::report_json(by_layer) + "\n", report::report_json(reports->at(1)) + "\n",
                    environment_json(*environment, by_layer) + "\n", judge(by_layer, environment->clock_jump_s),
                    by_layer.diagnostics};
}

std::vector<StatementDifference> compare_statements(const OpenedBundle& bundle, const Statements& computed) {
  std::vector<StatementDifference> differences;
  Comparison comparison(differences);
  comparison.compare(std::string(kManifestName), verdict_text(bundle.manifest.verdict), verdict_text(computed.verdict));
  const auto compare = [&](std::string_view name, const std::string& again) {
    comparison.compare(std::string(name), bundle.content(name).value_or(""), again);
  };
  compare(kDomainReportName, computed.domain_report);
  compare(kLayerReportName, computed.layer_report);
  compare(kEnvironmentName, computed.environment);
  return differences;
}

}  // namespace joulemap::bundle
