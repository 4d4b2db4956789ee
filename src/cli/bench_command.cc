// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_command.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/python_script.h"
#include "cli/value_checks.h"

namespace joulemap::cli {
namespace {

constexpr double kMaxOptionTime_s = 1e6;
constexpr double kMinOptionTime_s = 0.001;

constexpr std::string_view kBenchServeScript = R"(
import sys
try:
    from joulemap._bench_serve.command import main
except ImportError as error:
    print(f"joulemap bench serve: {error}", file=sys.stderr)
    print("joulemap: -> set JOULEMAP_PYTHON to a Python with the joulemap package", file=sys.stderr)
    sys.exit(77)
sys.exit(main(sys.argv[1:])))";

// Values are passed to Python as text, which parses them; here they are only checked.
struct BenchServeFlags {
  std::string text;                          // of every option with a value; only the parser keeps the values
  std::vector<std::string> arrival_process;  // "poisson", or "trace" and a file
  bool unused_flag_value = false;            // of every flag
};

// The options of the command line, as words for the script.
std::vector<std::string> collect_option_arguments(const CLI::App& verb, bool is_quiet) {
  std::vector<std::string> words;
  for (const CLI::Option* const option : verb.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = "--" + option->get_lnames().front();
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag || option->results().size() > 1) {
      words.push_back(name);
      if (!is_flag) words.insert(words.end(), option->results().begin(), option->results().end());
    } else {
      words.push_back(fmt::format("{}={}", name, option->results().front()));
    }
  }
  if (is_quiet) words.emplace_back("--quiet");
  return words;
}

void add_endpoint_options(CLI::App& verb, BenchServeFlags& flags) {
  CLI::Option* const endpoint =
      verb.add_option("--endpoint", flags.text, "address of an OpenAI-compatible server: http://127.0.0.1:8000/v1")
          ->type_name("URL");
  verb.add_option("--engine", flags.text, "FILE.py:FUNCTION, which creates an engine in this process")
      ->type_name("FILE")
      ->excludes(endpoint);
  verb.add_option("--model", flags.text, "model of the server; default: the first that it lists")->type_name("NAME");
  verb.add_flag("--chat", flags.unused_flag_value, "send chat completions instead of completions");
  verb.add_flag("--ignore-eos", flags.unused_flag_value,
                "ask for answers of full length, as vLLM, SGLang and llama.cpp support");
  verb.add_option("--api-key-env", flags.text, "environment variable that contains the API key")->type_name("VARIABLE");
}

void add_request_load_options(CLI::App& verb, BenchServeFlags& flags) {
  verb.add_option("--rate", flags.text, "requests per second of each load level, such as 1,2,4; default: 1")
      ->type_name("LIST");
  verb.add_option("--arrivals", flags.arrival_process, "poisson (the default), or trace and a CSV file")
      ->type_name("KIND")
      ->expected(1, 2);
  CLI::Option* const requests = verb.add_option("--requests", flags.text, "requests of each load level")
                                    ->type_name("N")
                                    ->check(whole_number_validator(1, 1'000'000));
  verb.add_option("--duration", flags.text, "time in which requests arrive, for each load level; default: 60")
      ->type_name("S")
      ->check(number_range_validator(kMinOptionTime_s, kMaxOptionTime_s))
      ->excludes(requests);
  verb.add_option("--seed", flags.text, "seed of arrivals, lengths and prompts; default: 1")
      ->type_name("N")
      ->check(whole_number_validator());
  verb.add_option("--prompt-tokens", flags.text, "length of prompts: 256, 128..512 or lognormal:256,0.5")
      ->type_name("D");
  verb.add_option("--output-tokens", flags.text, "length of answers, likewise")->type_name("D");
  verb.add_option("--tenant", flags.text, "tenants with weights, such as chat=3,search=1")->type_name("LIST");
  verb.add_option("--timeout", flags.text, "time limit of a request; default: 120")
      ->type_name("S")
      ->check(number_range_validator(kMinOptionTime_s, kMaxOptionTime_s));
  verb.add_option("--max-duration", flags.text, "time limit of all load levels; default: 3600")
      ->type_name("S")
      ->check(number_range_validator(kMinOptionTime_s, kMaxOptionTime_s));
  verb.add_option("--ramp", flags.text, "leave out the first SHARE of the arrival period; default: 20%")
      ->type_name("SHARE");
  verb.add_option("--warm-up", flags.text, "requests before the first load level; default: 2")
      ->type_name("N")
      ->check(whole_number_validator(0, 1'000'000));
}

void add_bench_serve_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<BenchServeFlags>();
  add_endpoint_options(verb, *flags);
  add_request_load_options(verb, *flags);
  verb.add_flag("--json", flags->unused_flag_value, "one line of JSON (schema joulemap.bench_serve/1)");
  verb.add_option("-o,--output", flags->text, "write to FILE")->type_name("FILE");
  verb.callback([flags, &verb, &line] {
    if (verb.count("--endpoint") + verb.count("--engine") == 0) {
      line.exit_code = print_error({ErrorCode::usage, "needs --endpoint or --engine",
                                    "joulemap bench serve --endpoint http://127.0.0.1:8000/v1"},
                                   "bench serve");
      return;
    }
    line.exit_code = print_error(
        exec_python_script(line, kBenchServeScript, collect_option_arguments(verb, line.quiet)), "bench serve");
  });
}

}  // namespace

void add_bench_command(CLI::App& verb, CommandLine& line) {
  verb.require_subcommand(1);
  constexpr std::array<Subcommand, 1> kSubcommands = {{
      {"serve", "measure latency and energy per token of a serving engine", &add_bench_serve_command},
  }};
  for (const Subcommand& command : kSubcommands) {
    CLI::App* const subcommand = verb.add_subcommand(std::string(command.name), std::string(command.summary));
    subcommand->fallthrough();  // options of `bench`, such as --sysroot, may follow the subcommand
    command.add(*subcommand, line);
  }
}

}  // namespace joulemap::cli
