// SPDX-License-Identifier: Apache-2.0
#include "predict/evaluation/study_protocol.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "predict/evaluation/evaluation.h"

namespace joulemap::predict {
namespace {

// Two networks at six batches: each has two dense layers of its own and an addition that both share.
struct SyntheticStudy {
  std::string measured = "kind,parameters,dtype,pass,cold,source,time_s,energy_j\n";
  std::string operations = "id,kind,parameters,dtype,pass,phase\n";
  std::string settings = "network,family,package,batch,size,dtype,pass,unknown,operations\n";

  explicit SyntheticStudy(int unmeasured_batch = 0) {
    int id = 0;
    for (int batch = 16; batch <= 512; batch *= 2) {
      const std::string add = fmt::format("add,form=same;batch=1;rows={};width=65536,fp32,forward", batch);
      const std::string vgg = fmt::format("dense,rows={};in=4096;out=4096;bias=1,fp32,forward", batch);
      const std::string wide_dense_operation = fmt::format("dense,rows={};in=2048;out=8192;bias=1,fp32,forward", batch);
      for (const std::string& row : {add, vgg, wide_dense_operation}) {
        operations += fmt::format("{},{},forward\n", id++, row);
        if (row == vgg && batch == unmeasured_batch) continue;
        measured += fmt::format("{},0,made-up,{},{}\n", row, 1e-5 * batch, 5e-3 * batch);
      }
      settings += fmt::format("VGG16,VGG,keras,{},300,default,inference,,{}:1 {}:2\n", batch, id - 3, id - 2);
      settings += fmt::format("ResNet50,ResNet,keras,{},300,default,inference,,{}:1 {}:2\n", batch, id - 3, id - 1);
    }
  }

  std::optional<StudyEvaluation> evaluate() const {
    FitTables tables;
    tables.operations = measured;
    tables.device = "h200";
    const Result<FitData> data = read_fit_data(tables);
    const Result<StudyTable> seed = read_study_tables(operations, settings);
    EXPECT_TRUE(data && seed);
    Result<std::optional<StudyEvaluation>> protocol = evaluate_study_protocol(*data, *seed);
    EXPECT_TRUE(protocol);
    return protocol ? std::move(*protocol) : std::nullopt;
  }
};

std::size_t case_count_of(const std::vector<NamedScore>& scores, std::string_view name) {
  for (const NamedScore& named_score : scores) {
    if (named_score.name == name) return named_score.score.cases;
  }
  return 0;
}

TEST(StudyProtocol, PredictsEachInstanceOnceWithAllItsLayers) {
  const std::optional<StudyEvaluation> protocol = SyntheticStudy().evaluate();
  ASSERT_TRUE(protocol);
  EXPECT_EQ(protocol->instances, 12U);
  EXPECT_EQ(protocol->incomplete_instances, 0U);
  ASSERT_EQ(protocol->scores.size(), 2U);
  for (const StudyScores& scores : protocol->scores) {
    EXPECT_EQ(scores.instances.cases, 12U);
    EXPECT_EQ(scores.vgg_instances.cases, 6U);
    EXPECT_EQ(scores.unseen_instances.cases, 12U);
    EXPECT_EQ(scores.unseen_vgg_instances.cases, 6U);
    EXPECT_EQ(case_count_of(scores.layers, "add"), 12U);
    EXPECT_EQ(case_count_of(scores.layers, "dense"), 24U);
    EXPECT_EQ(case_count_of(scores.distinct_layers, "add"), 6U);
    EXPECT_EQ(case_count_of(scores.distinct_layers, "dense"), 12U);
  }
}

TEST(StudyProtocol, ALayerOfATrainingInstanceIsNotUnseen) {
  const std::optional<StudyEvaluation> protocol = SyntheticStudy().evaluate();
  ASSERT_TRUE(protocol);
  // Dense layers are specific to a network; additions are unseen only if both instances are held out together.
  EXPECT_EQ(case_count_of(protocol->scores.front().unseen_layers, "dense"), 12U);
  EXPECT_LT(case_count_of(protocol->scores.front().unseen_layers, "add"), 6U);
}

TEST(StudyProtocol, ExcludesAnInstanceWithAnUnmeasuredLayer) {
  const std::optional<StudyEvaluation> protocol = SyntheticStudy(64).evaluate();
  ASSERT_TRUE(protocol);
  EXPECT_EQ(protocol->instances, 11U);
  EXPECT_EQ(protocol->incomplete_instances, 1U);
  EXPECT_EQ(protocol->scores.front().vgg_instances.cases, 5U);
}

TEST(StudyProtocol, ExcludesAndListsKindsWithoutMeasuredLayers) {
  SyntheticStudy synthetic_study;
  synthetic_study.operations += "18,input,batch=1;bytes=64,fp32,forward,forward\n";
  for (std::size_t position = 0; (position = synthetic_study.settings.find(",,", position)) != std::string::npos;
       position += 2) {
    synthetic_study.settings.insert(position + 2, "18:1 ");
  }
  const std::optional<StudyEvaluation> protocol = synthetic_study.evaluate();
  ASSERT_TRUE(protocol);
  EXPECT_EQ(protocol->instances, 12U);
  EXPECT_EQ(protocol->unmeasured_kinds, std::vector<std::string>{"input"});
}

TEST(StudyProtocol, RequiresAsManyInstancesAsFolds) {
  SyntheticStudy synthetic_study;
  synthetic_study.settings = synthetic_study.settings.substr(0, synthetic_study.settings.find("ResNet50"));
  EXPECT_FALSE(synthetic_study.evaluate());
}

TEST(StudyProtocol, AListThatNamesNoOperationIsAnError) {
  const SyntheticStudy synthetic_study;
  const std::string head = synthetic_study.settings.substr(0, synthetic_study.settings.find('\n') + 1);
  for (const std::string_view malformed_layer_list : {"99:1", "1", "1:", "1:x", ":1", "-1:1"}) {
    const std::string settings =
        fmt::format("{}VGG16,VGG,keras,16,300,default,inference,,{}\n", head, malformed_layer_list);
    EXPECT_FALSE(read_study_tables(synthetic_study.operations, settings)) << malformed_layer_list;
  }
}

TEST(StudyProtocol, ListsPublishedResultsBesideTheEvaluation) {
  EXPECT_DOUBLE_EQ(published_rmspe("convolution").value_or(0), 0.1023);
  EXPECT_FALSE(published_rmspe("all"));
  Evaluation evaluation;
  evaluation.study = SyntheticStudy().evaluate();
  EXPECT_NE(evaluation_markdown(evaluation).find("## The seed's protocol"), std::string::npos);
  EXPECT_NE(evaluation_markdown(evaluation).find("| 7.1 % |"), std::string::npos);
  EXPECT_NE(evaluation_json(evaluation).find("\"seed_protocol\":{\"instances\":12"), std::string::npos);
  evaluation.study.reset();
  EXPECT_EQ(evaluation_json(evaluation).find("seed_protocol"), std::string::npos);
}

}  // namespace
}  // namespace joulemap::predict
