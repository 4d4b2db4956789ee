// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "cli/device_profile.h"
#include "cli/model_file.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "predict/graph/graph_file.h"
#include "predict/model/prediction_report.h"
#include "report/json/prediction_json.h"
#include "report/text/prediction_text.h"

namespace joulemap::cli {
namespace {

struct PredictFlags {
  std::string model_file;
  DeviceFlags device_flags;
  std::optional<std::int64_t> batch_size;
  std::vector<std::string> input_shapes;
  std::string pass_name;
  std::string precision_name = "default";
  std::string execution_mode_name = "eager";
  std::string optimizer_name = "adamw";
  std::optional<std::string> explained_layer;
  std::size_t shown_layer_count = 20;
  std::int64_t step_count = 0;
  std::int64_t inference_count = 0;
  std::optional<double> grid_gco2_kwh;
  std::optional<double> price_kwh;
  double power_usage_effectiveness = 1;
  double host_slowdown = 1;
  std::optional<double> idle_w;
  bool as_json = false;
  std::string output_file;
};

Error invalid_shape_error(const std::string& text) {
  return {ErrorCode::usage, fmt::format("--input {} is not a shape", quoted(text, 80)),
          "--input 8x3x224x224, or with the name of the input: --input pixels=8x3x224x224"};
}

// Parses --input: "8x3x224x224", "8,3,224,224" or "pixels=8x3x224x224". A name may contain any character, even "=".
Result<predict::InputShape> parse_input_shape(const std::string& text) {
  predict::InputShape shape;
  std::string_view sizes = text;
  if (const std::size_t equals_position = text.rfind('='); equals_position != std::string::npos) {
    shape.name = text.substr(0, equals_position);
    sizes.remove_prefix(equals_position + 1);
  }
  const char separator = sizes.find(',') != std::string_view::npos ? ',' : 'x';
  double elements = 1;
  for (const std::string_view size : split(sizes, separator)) {
    const std::optional<std::uint64_t> value = parse_u64(size);
    if (!value || *value == 0) return invalid_shape_error(text);
    elements *= static_cast<double>(*value);
    if (elements > static_cast<double>(predict::kMaxElements)) {
      return Error{ErrorCode::usage, fmt::format("--input {} is larger than any GPU's memory", quoted(text, 80)), ""};
    }
    shape.sizes.push_back(static_cast<std::int64_t>(*value));
  }
  return shape;
}

Result<predict::GraphOptions> make_graph_options(const PredictFlags& flags) {
  predict::GraphOptions options;
  options.batch = flags.batch_size;
  for (const std::string& text : flags.input_shapes) {
    Result<predict::InputShape> shape = parse_input_shape(text);
    if (!shape) return std::move(shape).error();
    options.inputs.push_back(std::move(*shape));
  }
  return options;
}

predict::PredictionRequest make_prediction_request(const PredictFlags& flags) {
  predict::PredictionRequest request;
  if (!flags.pass_name.empty()) request.training = flags.pass_name == "training";
  request.optimizer = flags.optimizer_name;
  request.mode =
      flags.execution_mode_name == "compiled" ? predict::ExecutionMode::compiled : predict::ExecutionMode::eager;
  request.precision =
      predict::precision_from_name(flags.precision_name).value_or(predict::Precision::framework_default);
  request.host_factor = flags.host_slowdown;
  request.idle_w = flags.idle_w;
  request.batch = flags.batch_size;
  request.steps = flags.step_count;
  request.inferences = flags.inference_count;
  request.tariff = {flags.grid_gco2_kwh, flags.price_kwh, flags.power_usage_effectiveness};
  request.explained_layer = flags.explained_layer;
  return request;
}

// Title of the report: the graph's name, or the name of the file if an exporter set only a default name.
std::string model_title(const std::string& graph_name, const std::string& path) {
  constexpr std::array<std::string_view, 4> kExporterGraphNames = {"", "main_graph", "torch_jit", "torch-jit-export"};
  const bool is_exporter_default_name =
      std::find(kExporterGraphNames.begin(), kExporterGraphNames.end(), graph_name) != kExporterGraphNames.end();
  return is_exporter_default_name && path != "-" ? std::filesystem::path(path).stem().string() : graph_name;
}

Result<predict::PredictionReport> make_prediction_report(const PredictFlags& flags) {
  const Result<predict::GraphOptions> options = make_graph_options(flags);
  if (!options) return options.error();
  const Result<predict::DeviceProfile> profile = load_device_profile(flags.device_flags);
  if (!profile) return profile.error();
  const Result<ModelFile> file = ModelFile::open(flags.model_file);
  if (!file) return file.error();
  const std::string name = flags.model_file == "-" ? "stdin" : flags.model_file;
  Result<predict::Graph> graph = predict::read_graph(file->bytes(), *options);
  if (!graph) {
    Error error = std::move(graph).error().with_context(name);
    // Exit code 77 ("not possible on this machine") would be wrong: no machine supports this network.
    if (error.code == ErrorCode::unsupported) error.code = ErrorCode::malformed;
    return error;
  }
  Result<predict::PredictionReport> report =
      predict::report_prediction(*profile, std::move(*graph), make_prediction_request(flags));
  if (!report) return std::move(report).error().with_context(name);
  report->model = model_title(report->model, flags.model_file);
  if (const std::string note = assumed_device_note(flags.device_flags, *profile); !note.empty()) {
    report->prediction.notes.push_back(note);
  }
  return report;
}

int run_predict(PredictFlags flags, const CommandLine& line) {
  // In `predict --explain model.onnx`, the parser mistakes model.onnx for the layer to explain. It is the model.
  if (flags.model_file.empty() && flags.explained_layer) std::swap(flags.model_file, *flags.explained_layer);
  if (flags.model_file.empty()) {
    return print_error({ErrorCode::usage, "predict needs a model", "joulemap predict model.onnx, or - for stdin"});
  }
  Result<CommandOutput> output =
      CommandOutput::open(flags.output_file, std::vector{flags.model_file, flags.device_flags.profile_file});
  if (!output) return print_error(output.error());
  const Result<predict::PredictionReport> report = make_prediction_report(flags);
  if (!report) return print_error(report.error());
  report::TextStyle style = style_of_stdout(line.colour);
  if (!flags.output_file.empty()) style.colour = false;
  const std::string text = flags.as_json ? report::prediction_json(*report) + "\n"
                                         : report::prediction_text(*report, flags.shown_layer_count, style);
  const Status write_status = output->write(text);
  if (!write_status) return print_error(write_status.error());
  if (const std::string warning = predict::lower_bound_warning(report->prediction); !warning.empty()) {
    const Status warning_status =
        write_to_stream(StandardStream::error, fmt::format("joulemap: warning: {}\n", printable(warning)));
    if (!warning_status) return print_error(warning_status.error());
  }
  if (report->prediction.is_total_sound) return kExitSuccess;
  return print_error({ErrorCode::malformed, "the sizes of some operations are unknown: the total is too low",
                      "set input shapes with --input NAME=SHAPE, or export the model with static shapes"});
}

void add_model_options(CLI::App& verb, PredictFlags& flags) {
  verb.add_option("MODEL", flags.model_file,
                  "ONNX file, JSON of a Keras model, or operation list of joulemap.list_operations; - is stdin");
  add_device_options(verb, flags.device_flags);
  verb.add_option("--batch", flags.batch_size, "batch size; replaces the leading dimension of every input")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, predict::kMaxElements));
  verb.add_option("--input", flags.input_shapes, "shape of an input: 8x3x224x224, or NAME=8x3x224x224; repeatable")
      ->type_name("SHAPE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb.add_option("--pass", flags.pass_name,
                  "inference (the default) or training: a step with backward pass and optimizer")
      ->type_name("PASS")
      ->check(word_choice_validator({"inference", "training"}));
  verb.add_option("--precision", flags.precision_name,
                  "default (PyTorch's: TF32 in convolutions only), fp32, tf32, fp16, bf16, amp-bf16 (autocast)")
      ->type_name("TYPE")
      ->check(word_choice_validator({"default", "fp32", "tf32", "fp16", "bf16", "amp-bf16"}));
  verb.add_option("--execution", flags.execution_mode_name,
                  "eager (the default), or compiled: operations fused as by torch.compile")
      ->type_name("MODE")
      ->check(word_choice_validator({"eager", "compiled"}));
  verb.add_option("--optimizer", flags.optimizer_name,
                  "optimizer of a training step: sgd, momentum, adam, adamw (the default), rmsprop")
      ->type_name("NAME")
      ->check(word_choice_validator({"sgd", "momentum", "adam", "adamw", "rmsprop"}));
  verb.add_option("--host-factor", flags.host_slowdown,
                  "slowdown of the host relative to the host of the measurements; default: 1")
      ->type_name("F")
      ->check(number_range_validator(0.01, 100));
  verb.add_option("--idle-w", flags.idle_w, "active-idle power of this GPU; default: mean of the measured GPUs")
      ->type_name("W")
      ->check(number_range_validator(1, 1000));
}

void add_cost_options(CLI::App& verb, PredictFlags& flags) {
  constexpr std::int64_t kMaxStepCount = 1'000'000'000'000'000;
  verb.add_option("--steps", flags.step_count, "show the total of N training steps")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, kMaxStepCount));
  verb.add_option("--inferences", flags.inference_count, "show the total of N inference passes with this batch")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, kMaxStepCount));
  verb.add_option("--gco2-per-kwh", flags.grid_gco2_kwh,
                  "carbon intensity of the grid in g/kWh; default: 400, about the world average")
      ->type_name("G")
      ->check(number_range_validator(0, 1e5));
  verb.add_option("--price-per-kwh", flags.price_kwh, "price per kWh, in any currency; without it no price is shown")
      ->type_name("P")
      ->check(number_range_validator(0, 1e9));
  verb.add_option("--pue", flags.power_usage_effectiveness,
                  "power usage effectiveness of the data center, for carbon and price; default: 1")
      ->type_name("X")
      ->check(number_range_validator(1, 10));
}

}  // namespace

void add_predict_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<PredictFlags>();
  add_model_options(verb, *flags);
  add_cost_options(verb, *flags);
  verb.add_option_function<std::string>(
          "--explain", [flags](const std::string& layer) { flags->explained_layer = layer; },
          "show features and physics terms of a layer; default: the layer with the most energy")
      ->type_name("[LAYER]")
      ->expected(0, 1)
      ->default_str("");
  verb.add_option("--top", flags->shown_layer_count, "at most N layers; default: 20; 0 shows all, in network order")
      ->type_name("N")
      ->check(whole_number_validator());
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.prediction/1)");
  verb.add_option("-o,--output", flags->output_file, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_predict(*flags, line); });
}

}  // namespace joulemap::cli
