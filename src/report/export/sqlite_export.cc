// SPDX-License-Identifier: Apache-2.0
//
// export --to sqlite: a database of the run, its domains, rows of all levels, idle energy, steps, epochs, power over
// time, metrics, spans and diagnostics. Unknown values are NULL.
#include <fmt/format.h>

#include "formats/sqlite_writer.h"
#include "report/export/exports.h"
#include "report/text/command_energy.h"

namespace joulemap::report {
namespace {

using formats::SqliteWriter;

void add_run_table(SqliteWriter& database, const RunView& view) {
  const RunRates rates = command_rates(view);
  database.begin_table("runs",
                       {"command TEXT", "hosts TEXT", "start_unix_ns INTEGER", "elapsed_s REAL", "exit_code INTEGER",
                        "complete INTEGER", "measured_j REAL", "estimated_j REAL", "joules_per_step REAL",
                        "joules_per_epoch REAL", "joules_per_sample REAL", "command_j REAL"});
  database.add_row({command_text(view.run), scope_path_text(view.run.hosts), view.run.start_unix_ns, view.run.elapsed_s,
                    view.run.exit_code, view.run.complete, joules_of(view.run.totals.measured),
                    joules_of(view.run.totals.estimated), rates.energy_per_unit(rates.steps),
                    rates.energy_per_unit(rates.epochs), rates.energy_per_unit(rates.samples), rates.energy_j});
}

void add_domain_table(SqliteWriter& database, const std::vector<DomainEnergy>& domains) {
  database.begin_table("domains", {"name TEXT", "energy_j REAL", "uncertainty_j REAL", "power_w REAL",
                                   "provenance TEXT", "counted INTEGER", "part_of TEXT", "sensor TEXT", "reason TEXT"});
  for (const DomainEnergy& domain : domains) {
    std::optional<std::string_view> provenance;
    if (domain.provenance) provenance = to_string(*domain.provenance);
    database.add_row({domain.name, domain.joules, domain.uncertainty_j, domain.mean_w, provenance, domain.is_counted,
                      domain.part_of, domain.sensor, domain.reason});
  }
}

void add_level_tables(SqliteWriter& database, const std::vector<LevelView>& levels) {
  database.begin_table(
      "rows", {"level TEXT", "device TEXT", "path TEXT", "name TEXT", "count INTEGER", "time_s REAL", "energy_j REAL",
               "low_j REAL", "high_j REAL", "dynamic_j REAL", "power_w REAL", "share REAL", "basis TEXT", "cause TEXT",
               "cause_basis TEXT", "waiting_s REAL", "waiting_j REAL", "waiting_low_j REAL", "waiting_high_j REAL"});
  for (const LevelView& level : levels) {
    for (const ReportRow& row : level.rows) {
      std::optional<std::string_view> cause;
      std::optional<std::string_view> cause_basis;
      if (row.cause) cause = to_string(row.cause->largest_class);
      if (row.cause) cause_basis = to_string(row.cause->basis);
      database.add_row({level.by, row.device, scope_path_text(row.path), row.display_name, row.count, row.time_s,
                        row.energy_j, row.low_j, row.high_j, row.dynamic_j, row.power_w, row.share, row.basis, cause,
                        cause_basis, row.waiting_s, row.waiting_j, row.waiting_low_j, row.waiting_high_j});
    }
  }
  // What idle devices waited for. Entries with in_rows are also part of waiting_j of the row with the same path.
  database.begin_table("idle", {"level TEXT", "cause TEXT", "device TEXT", "path TEXT", "time_s REAL", "energy_j REAL",
                                "low_j REAL", "high_j REAL", "in_rows INTEGER"});
  for (const LevelView& level : levels) {
    for (const IdleEntry& entry : level.idle) {
      database.add_row({level.by, to_string(entry.cause), entry.device, scope_path_text(entry.path), entry.time_s,
                        entry.energy_j, entry.low_j, entry.high_j, entry.is_included_in_rows});
    }
  }
  database.begin_table("levels", {"level TEXT", "attributed_j REAL", "idle_j REAL", "unattributed_j REAL"});
  for (const LevelView& level : levels) {
    database.add_row({level.by, level.attributed_j, level.idle_j, level.unattributed_j});
  }
}

void add_step_or_epoch_table(SqliteWriter& database, std::string_view table,
                             const std::vector<StepOrEpochView>& steps_or_epochs) {
  database.begin_table(table, {"number INTEGER", "begin_s REAL", "end_s REAL", "time_s REAL", "energy_j REAL",
                               "loss REAL", "joules_per_loss REAL"});
  for (const StepOrEpochView& step_or_epoch : steps_or_epochs) {
    database.add_row({step_or_epoch.number, step_or_epoch.begin_s, step_or_epoch.end_s, step_or_epoch.time_s,
                      step_or_epoch.energy_j, step_or_epoch.loss, step_or_epoch.joules_per_loss});
  }
}

void add_time_series_tables(SqliteWriter& database, const RunView& view) {
  const double slice_s = view.run.slice_s;
  database.begin_table("samples", {"domain TEXT", "begin_s REAL", "end_s REAL", "power_w REAL"});
  for (const PowerSeries& series : view.run.power) {
    for (std::size_t i = 0; i < series.watts.size(); ++i) {
      const auto slice_index = static_cast<double>(i);
      database.add_row({series.domain, slice_index * slice_s, (slice_index + 1) * slice_s, series.watts[i]});
    }
  }
  database.begin_table("metrics", {"name TEXT", "time_s REAL", "step INTEGER", "value REAL"});
  for (const MetricSeries& series : view.metrics) {
    for (const MetricPoint& point : series.points) {
      database.add_row({series.name, point.time_s, point.step, point.value});
    }
  }
  database.begin_table("spans", {"kind TEXT", "name TEXT", "begin_s REAL", "end_s REAL"});
  const auto add = [&](std::string_view kind, const std::vector<NamedTimeSpan>& named_spans) {
    for (const NamedTimeSpan& named_span : named_spans)
      database.add_row({kind, named_span.name, named_span.begin_s, named_span.end_s});
  };
  add("phase", view.phases);
  add("region", view.regions);
  add("probing", view.probing);
  add("dithering", view.dithering);
}

void add_diagnostics(SqliteWriter& database, const RunView& view) {
  database.begin_table("diagnostics", {"level TEXT", "code TEXT", "count INTEGER", "message TEXT", "remedy TEXT"});
  const auto add = [&](std::optional<std::string_view> level, const Diagnostics& diagnostics) {
    for (const Diagnostic& diagnostic : diagnostics.list()) {
      database.add_row({level, diagnostic.code, diagnostic.count, diagnostic.message, diagnostic.remedy});
    }
  };
  add(std::nullopt, view.run.diagnostics);
  for (const LevelView& level : view.levels) add(level.by, level.diagnostics);
}

}  // namespace

Result<std::string> sqlite_bytes(const RunView& view, const ExportOptions&) {
  SqliteWriter database;
  add_run_table(database, view);
  add_domain_table(database, view.run.domains);
  add_level_tables(database, view.levels);
  add_step_or_epoch_table(database, "steps", view.steps);
  add_step_or_epoch_table(database, "epochs", view.epochs);
  add_time_series_tables(database, view);
  add_diagnostics(database, view);
  return std::move(database).take_bytes();
}

}  // namespace joulemap::report
