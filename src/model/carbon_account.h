// SPDX-License-Identifier: Apache-2.0
//
// CarbonAccount: carbon and money of the energy of a run, with the assumptions behind them. It stands beside the joules and
// never replaces them. Measured and estimated energy have entries of their own. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/channel.h"

namespace joulemap {

// Carbon intensity of electricity from a time on, until the next point.
struct CarbonPoint {
  std::int64_t unix_ns = 0;
  double gco2_per_kwh = 0;
};

// Where the carbon intensity comes from: a number of the user, a region of a table, or a time series.
struct CarbonIntensity {
  double gco2_per_kwh = 0;          // not used with a series
  std::vector<CarbonPoint> series;  // in time order; empty: the number applies at all times
  std::string region;               // empty without a region
  std::string source;               // of the table or series; "given" for a number
  std::optional<int> year;          // of a yearly average
};

struct EmbodiedCarbon {
  double kg = 0;  // CO2e of making the hardware that the run used
  double lifetime_years = 0;
};

struct CarbonAccountAssumptions {
  std::optional<CarbonIntensity> carbon_intensity;
  double pue = 1;  // energy of the data center / energy of its computers
  std::optional<double> price_per_kwh;
  std::optional<EmbodiedCarbon> embodied;

  bool is_empty() const { return !carbon_intensity && !price_per_kwh && !embodied && pue == 1; }
};

// Carbon and price of the energy of one provenance, without probing. Bounds account for the energy only.
struct CarbonAccountEntry {
  Provenance provenance = Provenance::measured;
  double energy_j = 0;
  std::optional<double> half_width_j;
  double facility_j = 0;               // energy_j x PUE
  std::optional<double> gco2_per_kwh;  // of a time series: weighted by the power of the run
  std::optional<double> gco2;
  std::optional<double> gco2_low;
  std::optional<double> gco2_high;
  std::optional<double> price;
};

inline constexpr double kJoulesPerKwh = 3.6e6;

// An everyday amount with the same energy or carbon.
struct EverydayEquivalent {
  std::string name;
  double amount = 0;
  std::string unit;
  std::string source;
};

struct CarbonAccount {
  CarbonAccountAssumptions assumptions;
  std::vector<CarbonAccountEntry> entries;               // measured first; empty if the energy is unknown
  std::optional<double> embodied_gco2;                   // share of the run in the lifetime of the hardware
  std::vector<EverydayEquivalent> everyday_equivalents;  // of the first entry
};

}  // namespace joulemap
