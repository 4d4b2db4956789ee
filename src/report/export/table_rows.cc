// SPDX-License-Identifier: Apache-2.0
#include "report/export/table_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

double sort_key_of_row(const ReportRow& row, SortBy sort) {
  switch (sort) {
    case SortBy::time:
      return row.time_s;
    case SortBy::power:
      return row.power_w.value_or(0);
    case SortBy::count:
      return static_cast<double>(row.count.value_or(0));
    default:
      return row.energy_j.value_or(0);
  }
}

std::string table_row_name(const ReportRow& row, std::string_view level_name) {
  if (level_name == "kernel") return row.display_name;
  std::string name;
  for (const std::string& element : row.path) name += (name.empty() ? "" : " ") + element;
  return name;
}

TableRow sum_remaining_rows(const std::vector<TableRow>& rows, std::size_t first_row_index) {
  TableRow remainder_row{fmt::format("{} more", rows.size() - first_row_index), {}, true};
  for (std::size_t i = first_row_index; i < rows.size(); ++i) {
    const ReportRow& row = rows[i].row;
    remainder_row.row.time_s += row.time_s;
    if (row.energy_j) remainder_row.row.energy_j = remainder_row.row.energy_j.value_or(0) + *row.energy_j;
  }
  return remainder_row;
}

// One row per domain, from ReportResult::domains: its `rows` lack parts of domains, and estimates.
std::vector<TableRow> table_rows_of_domains(const ReportResult& result) {
  std::vector<TableRow> rows;
  for (const DomainEnergy& domain : result.domains) {
    TableRow out{domain.name, {}, false};
    out.row.time_s = result.elapsed_s;
    out.row.energy_j = domain.joules;
    out.row.power_w = domain.mean_w;
    if (domain.joules && domain.uncertainty_j) {
      out.row.low_j = std::max(*domain.joules - *domain.uncertainty_j, 0.0);
      out.row.high_j = *domain.joules + *domain.uncertainty_j;
    }
    const std::string part = domain.is_counted || domain.part_of.empty() ? "" : ", in " + domain.part_of;
    out.row.basis = domain.provenance ? std::string(to_string(*domain.provenance)) + part : domain.reason;
    rows.push_back(std::move(out));
  }
  return rows;
}

}  // namespace

std::optional<double> interval_half_width_j(const ReportRow& row) {
  return row.low_j && row.high_j ? std::optional((*row.high_j - *row.low_j) / 2) : std::nullopt;
}

TableContent make_table_content(const ReportResult& result, const TreeQuery& query, std::size_t max_rows) {
  TableContent content;
  if (result.by == "domain") {
    content.rows = table_rows_of_domains(result);
    return content;
  }
  std::set<std::string> devices;
  for (const ReportRow& row : result.rows) {
    if (!scopes::path_matches_filter(row.path, row.device, query.name_filter)) continue;
    content.rows.push_back({table_row_name(row, result.by), row, false});
    devices.insert(row.device);
  }
  content.has_device_column = devices.size() > 1;
  content.total_j = ledger_total_j(result);
  const SortBy sort = query.sort_by.value_or(has_step_or_epoch_rows(result) ? SortBy::order : SortBy::energy);
  std::stable_sort(content.rows.begin(), content.rows.end(), [&](const TableRow& a, const TableRow& b) {
    if (sort == SortBy::order) return false;
    if (sort == SortBy::name) return a.name < b.name;
    return std::pair(sort_key_of_row(a.row, sort), a.row.time_s) >
           std::pair(sort_key_of_row(b.row, sort), b.row.time_s);
  });
  if (content.rows.size() > max_rows) {
    TableRow remainder_row = sum_remaining_rows(content.rows, max_rows);
    content.rows.resize(max_rows);
    content.rows.push_back(std::move(remainder_row));
  }
  if (!query.name_filter.empty()) return content;
  for (EnergyNode& node : idle_and_unattributed_nodes(result))
    content.rows.push_back({node.name, node.summed_row, true});
  return content;
}

}  // namespace joulemap::report
