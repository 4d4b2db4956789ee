// SPDX-License-Identifier: Apache-2.0
#include "account/account.h"

#include "account/carbon_series.h"
#include "model/run_energy.h"
#include "model/run_rates.h"
#include "predict/model/footprint.h"

namespace joulemap::account {
namespace {

constexpr double kSecondsPerYear = 365.25 * 86400;
constexpr double kGramsPerKg = 1000;
// 1 l of water from 20 to 100 degC: specific heat capacity 4.186 kJ/(kg K).
constexpr double kJoulesPerLitreBoiled = 4186.0 * 80;
// EPA, Greenhouse Gas Equivalencies: 8.887 kg of CO2 per US gallon (3.785 l) of gasoline.
constexpr double kGramsPerLitreGasoline = 8887 / 3.785411784;

Result<CarbonAccountEntry> make_account_entry(const ReportResult& report, const EnergyWithProvenance& energy,
                                              const CarbonAccountAssumptions& assumptions) {
  CarbonAccountEntry entry;
  entry.provenance = energy.provenance;
  entry.energy_j = energy.joules;
  entry.half_width_j = energy.uncertainty_j;
  entry.facility_j = energy.joules * assumptions.pue;
  if (assumptions.carbon_intensity) {
    const CarbonIntensity& carbon = *assumptions.carbon_intensity;
    Result<double> intensity = carbon.series.empty() ? Result<double>(carbon.gco2_per_kwh)
                                                     : mean_carbon_intensity(carbon.series, report, energy.provenance);
    if (!intensity) return std::move(intensity).error();
    entry.gco2_per_kwh = *intensity;
  }
  const predict::EnergyTariff tariff{entry.gco2_per_kwh, assumptions.price_per_kwh, assumptions.pue};
  const predict::Footprint footprint = compute_footprint(energy.joules, tariff);
  entry.price = footprint.price;
  if (!entry.gco2_per_kwh) return entry;
  entry.gco2 = footprint.co2_kg * kGramsPerKg;
  if (energy.uncertainty_j) {
    const double half_width_gco2 = compute_footprint(*energy.uncertainty_j, tariff).co2_kg * kGramsPerKg;
    entry.gco2_low = std::max(*entry.gco2 - half_width_gco2, 0.0);
    entry.gco2_high = *entry.gco2 + half_width_gco2;
  }
  return entry;
}

std::vector<EverydayEquivalent> compute_everyday_equivalents(const CarbonAccountEntry& entry) {
  std::vector<EverydayEquivalent> equivalents = {{"water heated from 20 to 100 degC",
                                                  entry.facility_j / kJoulesPerLitreBoiled, "l",
                                                  "specific heat capacity 4.186 kJ/(kg K)"}};
  if (entry.gco2) {
    equivalents.push_back({"gasoline burned", *entry.gco2 / kGramsPerLitreGasoline, "l",
                           "EPA Greenhouse Gas Equivalencies: 8.887 kg CO2 per US gallon"});
  }
  return equivalents;
}

}  // namespace

Result<CarbonAccount> compute_carbon_account(const ReportResult& report, const CarbonAccountAssumptions& assumptions) {
  CarbonAccount account;
  account.assumptions = assumptions;
  for (const Provenance provenance : {Provenance::measured, Provenance::estimated}) {
    const std::optional<EnergyWithProvenance> energy = energy_without_probing(report, provenance);
    if (!energy) continue;
    Result<CarbonAccountEntry> entry = make_account_entry(report, *energy, assumptions);
    if (!entry) return std::move(entry).error();
    account.entries.push_back(std::move(*entry));
  }
  if (!account.entries.empty()) account.everyday_equivalents = compute_everyday_equivalents(account.entries.front());
  if (assumptions.embodied) {
    const double lifetime_s = assumptions.embodied->lifetime_years * kSecondsPerYear;
    account.embodied_gco2 = assumptions.embodied->kg * kGramsPerKg * compute_run_rates(report).time_s / lifetime_s;
  }
  return account;
}

}  // namespace joulemap::account
