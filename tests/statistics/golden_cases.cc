// SPDX-License-Identifier: Apache-2.0
#include "golden_cases.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "formats/json_objects.h"

namespace joulemap {

namespace {

std::string read_text(const std::string& file) {
  std::ifstream input_stream(std::string(JOULEMAP_STATISTICS_DATA) + "/" + file);
  return {std::istreambuf_iterator<char>(input_stream), {}};
}

std::vector<double> parse_numbers(std::string_view array) {
  const std::string text(array);
  std::vector<double> numbers;
  for (std::size_t position = text.find_first_of("-0123456789"); position != std::string::npos;) {
    char* end = nullptr;
    numbers.push_back(std::strtod(text.c_str() + position, &end));
    position = text.find_first_of("-0123456789", static_cast<std::size_t>(end - text.c_str()));
  }
  return numbers;
}

}  // namespace

std::vector<std::vector<double>> GoldenInput::lists() const {
  std::vector<std::vector<double>> number_lists;
  auto list_begin = first.begin();
  for (const double size : second) {
    number_lists.emplace_back(list_begin, list_begin + static_cast<std::ptrdiff_t>(size));
    list_begin += static_cast<std::ptrdiff_t>(size);
  }
  return number_lists;
}

std::map<std::string, GoldenInput> read_golden_inputs() {
  std::map<std::string, GoldenInput> inputs;
  formats::for_each_json_object(read_text("inputs.json"), [&](const formats::JsonFields& fields) {
    const bool has_two_samples = !fields.array("first").empty();
    inputs[std::string(fields.text("id"))] = {parse_numbers(fields.array(has_two_samples ? "first" : "values")),
                                              parse_numbers(fields.array(has_two_samples ? "second" : "sizes")),
                                              parse_numbers(fields.array("groups")),
                                              parse_numbers(fields.array("strata")),
                                              parse_numbers(fields.array("levels")),
                                              parse_numbers(fields.array("blocks"))};
  });
  return inputs;
}

std::vector<GoldenResult> read_golden_results(const std::string& file) {
  std::vector<GoldenResult> golden_results;
  formats::for_each_json_object(read_text(file), [&](const formats::JsonFields& fields) {
    GoldenResult golden{std::string(fields.text("id")), std::string(fields.text("test")),
                        std::string(fields.text("oracle"))};
    golden.p = fields.number("p");
    golden.statistic = fields.number("statistic");
    golden.estimate = fields.number("estimate");
    golden.low = fields.number("low");
    golden.high = fields.number("high");
    golden.values = parse_numbers(fields.array("values"));
    golden_results.push_back(std::move(golden));
  });
  return golden_results;
}

}  // namespace joulemap
