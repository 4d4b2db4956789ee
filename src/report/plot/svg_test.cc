// SPDX-License-Identifier: Apache-2.0
//
// Tests of the plots of a run and of the axes, curves and canvas that they use.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <sstream>

#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_canvas.h"
#include "report/plot/svg_curve.h"
#include "report/plot/svg_labels.h"
#include "support/golden.h"
#include "support/ledger_example.h"

namespace joulemap::report {
namespace {

constexpr PlotKind kPlots[] = {PlotKind::timeline, PlotKind::violin, PlotKind::box,   PlotKind::lines,
                               PlotKind::bars,     PlotKind::loss,   PlotKind::flame, PlotKind::heatmap};

RunView make_run_view(const ReportResult& result) {
  RunView view;
  view.rates = compute_run_rates(result);
  view.run = result;
  view.run.by = "domain";
  view.levels = {{"layer", result.rows, result.groups, result.attributed_j, result.idle_j, result.unattributed_j,
                  result.idle, result.diagnostics}};
  view.phases = {{"train forward", 1, 3}, {"train backward", 3, 6}, {"train forward", 6, 8}};
  view.epochs = {{1, 1, 1, 4, 3, 1500, 1.5, {}}, {2, 1, 4, 9, 5, 2500, 0.5, 2500}};
  MetricSeries loss{"loss", 8, {}};
  for (int i = 0; i < 8; ++i) loss.points.push_back({1.0 + i, i, 2.0 / (1 + i)});
  view.metrics = {loss};
  LayerDistribution layer_distribution{{"train", "backward", "layer1.0.conv1"}, "gpu0", "step", 400, 3.5, {}};
  for (std::size_t i = 0; i < kDistributionQuantileCount; ++i)
    layer_distribution.quantiles_j.push_back(3 + 0.01 * static_cast<double>(i));
  for (int i = 0; i < 400; ++i) layer_distribution.points.push_back({0.1 * i, i % 2 == 0 ? 3.0 : 4.0, i});
  view.layer_distributions = {layer_distribution};
  return view;
}

TEST(SvgCurve, IsSmoothedOverNeighboursAndPreservesItsEnds) {
  const std::vector<Point> points = {{0, 0}, {1, 6}, {2, 0}, {3, 6}, {4, 0}};
  const auto heights = [](const std::vector<Point>& curve) {
    std::vector<double> y;
    for (const Point& point : curve) y.push_back(point.y);
    return y;
  };
  EXPECT_EQ(heights(moving_mean(points, 1)), (std::vector<double>{0, 6, 0, 6, 0}));
  EXPECT_EQ(heights(moving_mean(points, 3)), (std::vector<double>{0, 2, 4, 2, 0}));
  EXPECT_TRUE(moving_mean({}, 3).empty());
}

TEST(SvgAxes, TicksAreRoundFewAndWithinTheRange) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  const std::uint64_t seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) {
    const double low = std::ldexp(1.0, static_cast<int>(random() % 60) - 30) * static_cast<double>(random() % 100);
    const double high = low + std::ldexp(1.0, static_cast<int>(random() % 60) - 30) + 1e-9 * low;
    const std::vector<double> ticks = round_ticks(low, high, 6);
    ASSERT_LE(ticks.size(), 16u);
    const double tolerance = 1e-6 * (high - low) + 1e-12 * high;
    for (const double tick : ticks)
      ASSERT_TRUE(tick >= low - tolerance && tick <= high + tolerance) << low << " " << high << " " << tick;
  }
}

TEST(SvgAxes, LabelsAreAsShortAsTheTickSpacingAllows) {
  EXPECT_EQ(tick_label(0.30000000000000004, 0.1), "0.3");
  EXPECT_EQ(tick_label(1500, 500), "1500");
  EXPECT_EQ(tick_label(20000, 5000), "20k");
  EXPECT_EQ(tick_label(0, 1), "0");
}

TEST(SvgCanvas, EscapesTexts) {
  SvgCanvas canvas(10, 10, "<t>", "a & b");
  canvas.draw_text({1, 1}, "<script>alert(\"x\")</script>\x1b");
  canvas.draw_rect({0, 0, 1, 1}, {"#000000", 1, 0, "\"><script>"});
  const std::string svg = std::move(canvas).finish();
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
}

TEST(SvgCanvas, SurvivesNonFiniteNumbers) {
  SvgCanvas canvas(10, 10, "", "");
  canvas.draw_line({std::nan(""), 0}, {INFINITY, 1}, {});
  const std::string svg = std::move(canvas).finish();
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Plots, AreReproducible) {
  const RunView view = make_run_view(make_training_report());
  for (const PlotKind plot : kPlots) {
    const Result<std::string> first_svg = plot_svg(view, {plot, "", "", {}});
    ASSERT_TRUE(first_svg) << first_svg.error().message;
    EXPECT_EQ(*first_svg, *plot_svg(view, {plot, "", "", {}}));
    EXPECT_NE(first_svg->find("</svg>"), std::string::npos);
  }
}

TEST(Plots, MatchTheirGoldenFiles) {
  const RunView view = make_run_view(make_training_report());
  expect_golden("plot_bars.svg", *plot_svg(view, {PlotKind::bars, "", "", {}}));
  expect_golden("plot_flame.svg", *plot_svg(view, {PlotKind::flame, "", "", {}}));
  expect_golden("plot_box.svg", *plot_svg(view, {PlotKind::box, "", "", {}}));
}

TEST(Plots, ShowTheRequestedLayersWithTheRequestedSmoothing) {
  RunView view = make_run_view(make_training_report());
  LayerDistribution forward_layer = view.layer_distributions.front();
  forward_layer.path = {"train", "forward", "fc"};
  view.layer_distributions.push_back(forward_layer);
  const std::string two_layer_svg = *plot_svg(view, {PlotKind::lines, "", "conv1|fc", {}});
  EXPECT_NE(two_layer_svg.find("layer1.0.conv1"), std::string::npos);
  EXPECT_NE(two_layer_svg.find("forward fc"), std::string::npos);
  EXPECT_NE(two_layer_svg.find("means over 9 points"), std::string::npos);
  const std::string one_layer_svg = *plot_svg(view, {PlotKind::lines, "", "fc", {}, 1});
  EXPECT_EQ(one_layer_svg.find("layer1.0.conv1"), std::string::npos);
  EXPECT_EQ(one_layer_svg.find("means over"), std::string::npos);
}

TEST(Plots, AViolinBeginsAtZeroWhereLayersUseNearlyNothing) {
  RunView view = make_run_view(make_training_report());
  for (std::size_t i = 0; i < kDistributionQuantileCount; ++i)
    view.layer_distributions[0].quantiles_j[i] = 0.0001 * static_cast<double>(i * i);
  const std::string svg = *plot_svg(view, {PlotKind::violin, "", "", {}});
  double zero_x = 1e9;  // x of the leftmost vertical line, which is the grid line at 0
  for (std::size_t line_offset = svg.find("<line x1="); line_offset != std::string::npos;
       line_offset = svg.find("<line x1=", line_offset + 1)) {
    double x1 = 0;
    double x2 = 0;
    ASSERT_EQ(std::sscanf(svg.c_str() + line_offset, "<line x1=\"%lf\" y1=\"%*f\" x2=\"%lf\"", &x1, &x2), 2);
    if (x1 == x2) zero_x = std::min(zero_x, x1);
  }
  const std::size_t polygon = svg.find("<polygon points=\"") + 17;
  std::istringstream points(svg.substr(polygon, svg.find('"', polygon) - polygon));
  double x = 0;
  double y = 0;
  char comma = 0;
  std::size_t count = 0;
  for (; points >> x >> comma >> y; ++count) EXPECT_GE(x, zero_x - 0.01);
  EXPECT_GT(count, 100u);
}

TEST(Plots, ShowSpreadsOfTheRequestedLevelOrFail) {
  for (const PlotKind plot : {PlotKind::violin, PlotKind::box, PlotKind::lines}) {
    EXPECT_TRUE(validate_plot_query({plot, "", "", {}}));
    EXPECT_TRUE(validate_plot_query({plot, "layer", "", {}}));
    EXPECT_TRUE(validate_plot_query({plot, "phase", "", {}}));
    const Status validation_status = validate_plot_query({plot, "op", "", {}});
    ASSERT_FALSE(validation_status);
    EXPECT_EQ(validation_status.error().code, ErrorCode::usage);
    const std::string svg = *plot_svg(make_run_view(make_training_report()), {plot, "phase", "", {}});
    EXPECT_NE(svg.find("Energy of phases"), std::string::npos);
  }
  EXPECT_FALSE(validate_plot_query({PlotKind::timeline, "phase", "", {}})) << "it shows the run";
  EXPECT_TRUE(validate_plot_query({PlotKind::bars, "op", "", {}}));
}

TEST(Plots, ShowUnattributedEnergyAndNotes) {
  const RunView view = make_run_view(make_training_report());
  for (const PlotKind plot : {PlotKind::bars, PlotKind::flame, PlotKind::heatmap}) {
    const std::string svg = *plot_svg(view, {plot, "", "", {}});
    EXPECT_NE(svg.find("450 J idle"), std::string::npos);
    EXPECT_NE(svg.find("split by time"), std::string::npos);
  }
}

std::string flame_title(const ReportResult& result) {
  const std::string svg = *plot_svg(make_run_view(result), {PlotKind::flame, "", "", {}});
  const std::size_t begin = svg.find("Flame graph of ");
  return svg.substr(begin, svg.find('"', begin) - begin);
}

TEST(Plots, AFlameGraphExcludesProbing) {
  ReportResult result = make_training_report();
  const std::string title = flame_title(result);
  ReportRow probe = result.rows.front();
  probe.path = {"probe"};
  probe.energy_j = 70;
  result.rows.push_back(probe);
  *result.groups.front().energy_j += 70;
  *result.attributed_j += 70;
  result.probe = ProbeCost{1, 70};
  EXPECT_EQ(flame_title(result), title + ", without probing");
}

TEST(Plots, OfAnEmptyRunAreAnErrorWithARemedy) {
  for (const PlotKind plot : kPlots) {
    const Result<std::string> svg = plot_svg({}, {plot, "", "", {}});
    ASSERT_FALSE(svg);
    EXPECT_FALSE(svg.error().remedy.empty());
  }
}

TEST(Plots, SurviveOddNumbers) {
  ReportResult result = make_training_report();
  result.rows[0].energy_j = 0;
  result.rows[1].low_j = result.rows[1].high_j = std::nullopt;
  result.power[0].watts.assign(10, std::nullopt);
  RunView view = make_run_view(result);
  view.layer_distributions[0].quantiles_j.assign(kDistributionQuantileCount, 2.0);
  view.metrics[0].points[3].value = std::nan("");
  for (const PlotKind plot : kPlots) {
    const Result<std::string> svg = plot_svg(view, {plot, "", "", {}});
    if (svg) {
      EXPECT_EQ(svg->find("nan"), std::string::npos);
    }
  }
}

TEST(SvgLabels, DoNotCoverPointsOrEachOther) {
  std::vector<LabelledPoint> points;
  for (int i = 0; i < 24; ++i)
    points.push_back({{200.0 + 14 * (i % 5) + 3 * i, 150.0 + 9 * (i % 7)}, 6, std::to_string(i + 1)});
  const Rect bounds{0, 0, 500, 400};
  const std::vector<PlacedLabel> labels = place_labels(points, 11, bounds);
  ASSERT_EQ(labels.size(), points.size());
  const auto box = [&](std::size_t i) {
    return Rect{labels[i].text_position.x, labels[i].text_position.y - 0.8 * 11, text_width(points[i].text, 11), 11};
  };
  const auto overlaps = [](const Rect& a, const Rect& b) {
    return std::min(a.right(), b.right()) - std::max(a.x, b.x) > 1e-6 &&
           std::min(a.bottom(), b.bottom()) - std::max(a.y, b.y) > 1e-6;
  };
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_FALSE(labels[i].is_overlapping) << i;
    EXPECT_GE(box(i).x, 0);
    for (std::size_t j = 0; j < labels.size(); ++j) {
      const Rect point{points[j].centre.x - 6, points[j].centre.y - 6, 12, 12};
      EXPECT_FALSE(overlaps(box(i), point)) << i << " covers point " << j;
      EXPECT_FALSE(i != j && overlaps(box(i), box(j))) << i << " covers label " << j;
    }
  }
}

TEST(SvgLabels, ReportLabelsWithoutAFreePlace) {
  const std::vector<LabelledPoint> points = {{{5, 5}, 5, "a long label"}};
  EXPECT_TRUE(place_labels(points, 11, {0, 0, 10, 10})[0].is_overlapping);
}

}  // namespace
}  // namespace joulemap::report
