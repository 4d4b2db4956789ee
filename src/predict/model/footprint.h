// SPDX-License-Identifier: Apache-2.0
//
// Converts joules to kg of CO2 (grid intensity) and to money (price per kWh). Both include the overhead of the data
// center (PUE). Plain data, pure.
#pragma once

#include <optional>

namespace joulemap::predict {

// About the world mean of electricity in g of CO2 per kWh: IEA, Electricity 2025, gives 445 for 2024 and 400 for 2027.
inline constexpr double kMeanGridIntensity_gco2_per_kwh = 400;

struct EnergyTariff {
  std::optional<double> grid_gco2_kwh;  // g/kWh; empty: the world mean, and reports say so
  std::optional<double> price_kwh;      // per kWh in any currency; empty: unknown
  double pue = 1;                       // energy of the data center / energy of its computers

  double grid_intensity_gco2_per_kwh() const { return grid_gco2_kwh.value_or(kMeanGridIntensity_gco2_per_kwh); }
};

struct Footprint {
  double co2_kg = 0;
  std::optional<double> price = {};
};

inline Footprint compute_footprint(double energy_j, const EnergyTariff& tariff) {
  constexpr double kJoulesPerKwh = 3.6e6;
  constexpr double kGramsPerKg = 1000;
  const double kwh = energy_j * tariff.pue / kJoulesPerKwh;
  Footprint footprint{.co2_kg = kwh * tariff.grid_intensity_gco2_per_kwh() / kGramsPerKg};
  if (tariff.price_kwh) footprint.price = kwh * *tariff.price_kwh;
  return footprint;
}

}  // namespace joulemap::predict
