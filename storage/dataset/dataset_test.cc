#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/dataset/batch_sampler.h"
#include "plinth/storage/dataset/cursor.h"
#include "plinth/storage/dataset/permutation.h"
#include "plinth/storage/dataset/token_dataset.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/fault_injection.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TokenizerIdentity kTokenizer = {.vocab_size = 50'000, .checksum = 0xABCDEF0123456789};

class DatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "/dataset_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    dir_ = root_ + "/data";
  }
  // Token i is i % vocab_size.
  std::unique_ptr<TokenDataset> Make(int64_t tokens, TokenizerIdentity tokenizer = kTokenizer) {
    auto writer = DatasetWriter::Create(dir_, tokenizer);
    EXPECT_OK(writer.status());
    for (int64_t begin = 0; begin < tokens; begin += 1000) {
      std::vector<int32_t> ids;
      for (int64_t i = begin; i < std::min(begin + 1000, tokens); ++i) {
        ids.push_back(static_cast<int32_t>(i % tokenizer.vocab_size));
      }
      EXPECT_OK((*writer)->Append(ids));
      (*writer)->AddSourceBytes(4 * static_cast<int64_t>(ids.size()));
    }
    EXPECT_OK((*writer)->Finish());
    auto dataset = TokenDataset::Open(dir_);
    EXPECT_OK(dataset.status());
    return *std::move(dataset);
  }
  void Edit(const std::string& name, const std::function<void(std::string*)>& change) {
    std::string bytes = *ReadFile(dir_ + "/" + name);
    change(&bytes);
    std::ofstream(dir_ + "/" + name, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string root_, dir_;
};

TEST_F(DatasetTest, RoundTripIn16And32Bits) {
  for (const auto& [vocab, width] : {std::pair(1, 2), {65'536, 2}, {65'537, 4}, {200'000, 4}}) {
    const auto dataset = Make(70'001, {.vocab_size = vocab, .checksum = 7});
    EXPECT_EQ(dataset->size(), 70'001);
    EXPECT_EQ(dataset->source_bytes(), 280'004);
    EXPECT_EQ(std::filesystem::file_size(dir_ + "/tokens.bin"), 64u + 70'001u * width);
    EXPECT_OK(dataset->Verify());
    std::vector<int32_t> got(3);
    ASSERT_OK(dataset->Copy(69'998, got));
    EXPECT_THAT(got, ElementsAre(69'998 % vocab, 69'999 % vocab, 70'000 % vocab));
  }
  EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("data")));
}

TEST_F(DatasetTest, EmptyDatasetIsLegalButCannotBeSampled) {
  const auto dataset = Make(0);
  EXPECT_EQ(dataset->size(), 0);
  EXPECT_OK(dataset->Verify());
  EXPECT_THAT(BatchSampler::Create(dataset.get(), 1, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("holds 0 tokens")));
}

TEST_F(DatasetTest, WriterRefusesBadTokensAndVocabularies) {
  for (const int64_t vocab : {int64_t{0}, int64_t{-1}, (int64_t{1} << 31) + 1}) {
    EXPECT_THAT(DatasetWriter::Create(dir_, {.vocab_size = vocab}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vocabulary of")));
  }
  ASSERT_OK_AND_ASSIGN(const auto writer, DatasetWriter::Create(dir_, {.vocab_size = 10}));
  ASSERT_OK(writer->Append(std::vector<int32_t>{9, 0}));
  EXPECT_THAT(
      writer->Append(std::vector<int32_t>{1, 10}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token 3 is 10, expected 0 to 9")));
  EXPECT_THAT(writer->Append(std::vector<int32_t>{-1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token 2 is -1")));
  EXPECT_THAT(TokenDataset::Open(dir_).status(), StatusIs(absl::StatusCode::kNotFound))
      << "nothing is there before Finish";
}

TEST_F(DatasetTest, FullDiskKeepsTheOldDataset) {
  Make(10);
  FaultySyscalls full;
  full.capacity = 500'000;
  ASSERT_OK_AND_ASSIGN(const auto writer, DatasetWriter::Create(dir_, kTokenizer, full));
  EXPECT_THAT(writer->Append(std::vector<int32_t>(400'000, 1)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_THAT(writer->Finish(), StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_OK_AND_ASSIGN(const auto old, TokenDataset::Open(dir_));
  EXPECT_EQ(old->size(), 10);
}

TEST_F(DatasetTest, TokenizerMismatchTellsBothSides) {
  const auto dataset = Make(10);
  EXPECT_OK(dataset->CheckTokenizer(kTokenizer));
  EXPECT_THAT(dataset->CheckTokenizer({.vocab_size = 32'000, .checksum = kTokenizer.checksum}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("of 50000 tokens"), HasSubstr("of 32000 tokens"))));
  EXPECT_THAT(dataset->CheckTokenizer({.vocab_size = 50'000, .checksum = 1}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("abcdef0123456789"), HasSubstr("0000000000000001"))));
}

TEST_F(DatasetTest, TruncatedOrGrownFileIsAnError) {
  Make(100);
  for (const uintmax_t size : {0u, 63u, 64u, 263u, 265u}) {
    std::filesystem::resize_file(dir_ + "/tokens.bin", size);
    EXPECT_THAT(
        TokenDataset::Open(dir_).status(),
        StatusIs(absl::StatusCode::kDataLoss,
                 HasSubstr("expected 264 bytes for 100 tokens, got " + std::to_string(size))));
  }
}

TEST_F(DatasetTest, EveryFlippedBitOfTheHeaderIsFound) {
  Make(4);
  const std::string good = *ReadFile(dir_ + "/tokens.bin");
  for (size_t bit = 0; bit < 64 * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    std::ofstream(dir_ + "/tokens.bin", std::ios::binary) << bad;
    ASSERT_THAT(TokenDataset::Open(dir_).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("tokens.bin: ")))
        << bit;
  }
}

TEST_F(DatasetTest, DamagedTokensAreFoundWhenReadOrVerified) {
  Make(4, {.vocab_size = 10, .checksum = 1});
  Edit("tokens.bin", [](std::string* bytes) { (*bytes)[64 + 2] = 10; });
  ASSERT_OK_AND_ASSIGN(const auto dataset, TokenDataset::Open(dir_));
  std::vector<int32_t> out(4);
  EXPECT_THAT(dataset->Copy(0, out),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("token 1 is 10, expected below 10")));
  EXPECT_THAT(dataset->Verify(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("checksum is")));
}

TEST_F(DatasetTest, MalformedMeta) {
  Make(4);
  const std::string good = *ReadFile(dir_ + "/meta.textproto");
  const auto open_with = [&](const std::string& extra) {
    std::ofstream(dir_ + "/meta.textproto") << extra;
    return TokenDataset::Open(dir_).status();
  };
  const auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(open_with(good + "colour: 3\n"), StatusIs(kBad, HasSubstr("meta.textproto")));
  EXPECT_THAT(open_with("format_version: 2"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("format 2, expected 1")));
  for (const std::string fields :
       {"", "vocab_size: 10 token_bytes: 4", "vocab_size: 70000 token_bytes: 2",
        "vocab_size: 10 token_bytes: 2 tokens: -1",
        "vocab_size: 10 token_bytes: 2 tokens: 9223372036854775807"}) {
    EXPECT_THAT(open_with("format_version: 1 " + fields), StatusIs(kBad, HasSubstr("out of range")))
        << fields;
  }
}

TEST(Permutation, IsABijectionOfEverySmallRange) {
  for (uint64_t n = 1; n <= 300; ++n) {
    const Permutation order(n, n * 31, n % 3);
    std::vector<bool> seen(n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t to = order(i);
      ASSERT_LT(to, n);
      ASSERT_FALSE(seen[to]) << n;
      seen[to] = true;
    }
  }
}

TEST(Permutation, HugeRangesAndStableValues) {
  const Permutation huge(std::numeric_limits<uint64_t>::max() / 2, 1, 2);
  std::set<uint64_t> values;
  for (uint64_t i = 0; i < 1000; ++i) values.insert(huge(i));
  EXPECT_EQ(values.size(), 1000u);
  // Pinned: another order would break the resume of every existing run.
  const Permutation pinned(10, 42, 0);
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < 10; ++i) order.push_back(pinned(i));
  EXPECT_THAT(order, ElementsAre(5, 3, 7, 2, 0, 6, 9, 8, 1, 4));
}

// Positions of a uniform order are uncorrelated with the values there. For n values the
// correlation has standard deviation 1/sqrt(n-1); 5 of them bound the 40 orders tried.
TEST(Permutation, OrdersLookRandomAndDifferBySeedAndEpoch) {
  constexpr int64_t n = 4096;
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
      const Permutation order(n, seed, epoch);
      double covariance = 0, fixed = 0;
      std::vector<uint64_t> values;
      for (int64_t i = 0; i < n; ++i) {
        values.push_back(order(i));
        covariance += (i - (n - 1) / 2.0) * (static_cast<double>(values[i]) - (n - 1) / 2.0);
        fixed += values[i] == static_cast<uint64_t>(i);
      }
      const double variance = (double{n} * n - 1) / 12;
      EXPECT_LT(std::abs(covariance / n / variance), 5 / std::sqrt(n - 1.0));
      EXPECT_LT(fixed, 12) << "the number of fixed points is nearly Poisson with mean 1";
      orders.insert(values);
    }
  }
  EXPECT_EQ(orders.size(), 40u);
}

TEST(RankShare, IsTheBatchForEveryWorldSize) {
  for (int world = 1; world <= 9; ++world) {
    for (int64_t batch = 0; batch <= 20; ++batch) {
      int64_t next = 100;
      for (int rank = 0; rank < world; ++rank) {
        const SampleRange share = RankShare(100, batch, rank, world);
        ASSERT_EQ(share.first, next);
        ASSERT_LE(share.count, batch / world + 1);
        ASSERT_GE(share.count, batch / world);
        next += share.count;
      }
      ASSERT_EQ(next, 100 + batch);
    }
  }
}

TEST_F(DatasetTest, EveryEpochSeesEachWindowOnceAndEachTokenIsPredictedOnce) {
  constexpr int64_t kT = 7;
  const auto dataset = Make(1000);
  ASSERT_OK_AND_ASSIGN(const BatchSampler sampler, BatchSampler::Create(dataset.get(), kT, 5));
  ASSERT_EQ(sampler.windows(), 142);  // (1000 - 1) / 7
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> predicted(1000);
    for (int64_t i = 0; i < sampler.windows(); ++i) {
      std::vector<int32_t> row(kT + 1);
      ASSERT_OK(sampler.Read({epoch * sampler.windows() + i, 1}, row));
      for (int64_t t = 1; t <= kT; ++t) {
        EXPECT_EQ(row[t], row[t - 1] + 1);  // this dataset counts up
        ++predicted[row[t]];
      }
    }
    for (int64_t token = 0; token < 1000; ++token) {
      EXPECT_EQ(predicted[token], token >= 1 && token <= 142 * kT) << token;
    }
  }
}

// The first tokens of all samples that some ranks see in `batches` steps from a cursor, in
// global order; the cursor moves on.
void Train(const TokenDataset& dataset, int world, int batches, DataCursor* cursor,
           std::vector<int32_t>* seen) {
  constexpr int64_t kT = 3, kBatch = 10;
  ASSERT_OK_AND_ASSIGN(const BatchSampler sampler, BatchSampler::Create(&dataset, kT, 9));
  ASSERT_OK_AND_ASSIGN(int64_t position, sampler.PositionOf(*cursor));
  for (int b = 0; b < batches; ++b, position += kBatch) {
    for (int rank = 0; rank < world; ++rank) {
      const SampleRange share = RankShare(position, kBatch, rank, world);
      std::vector<int32_t> rows(share.count * (kT + 1));
      ASSERT_OK(sampler.Read(share, rows));
      for (int64_t i = 0; i < share.count; ++i) seen->push_back(rows[i * (kT + 1)]);
    }
  }
  *cursor = sampler.CursorAt(position);
}

TEST_F(DatasetTest, ResumeAtAnotherWorldSizeLosesAndRepeatsNothing) {
  const auto dataset = Make(1 + 3 * 64);  // 64 windows
  std::vector<int32_t> straight, resumed;
  DataCursor cursor;
  Train(*dataset, 1, 32, &cursor, &straight);  // 320 samples: 5 epochs
  const DataCursor end = cursor;
  cursor = DataCursor();
  for (const auto& [world, batches] : {std::pair(4, 3), {2, 9}, {3, 1}, {7, 11}, {16, 8}}) {
    Train(*dataset, world, batches, &cursor, &resumed);
  }
  EXPECT_EQ(resumed, straight);
  EXPECT_EQ(cursor, end);
  EXPECT_EQ(end.epoch, 5);
  EXPECT_EQ(end.sample, 0);
  for (int epoch = 0; epoch < 5; ++epoch) {
    const std::set<int32_t> windows(straight.begin() + epoch * 64,
                                    straight.begin() + (epoch + 1) * 64);
    EXPECT_EQ(windows.size(), 64u) << epoch;
  }
}

TEST_F(DatasetTest, CursorOfOtherDataOrLengthIsRefused) {
  const auto dataset = Make(100);
  ASSERT_OK_AND_ASSIGN(const BatchSampler sampler, BatchSampler::Create(dataset.get(), 4, 0));
  for (const int64_t position : {0, 1, 23, 24, 1000}) {
    EXPECT_THAT(sampler.PositionOf(sampler.CursorAt(position)), IsOkAndHolds(position));
  }
  const DataCursor good = sampler.CursorAt(30);
  DataCursor bad = good;
  bad.sequence_length = 8;
  EXPECT_THAT(sampler.PositionOf(bad), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                AllOf(HasSubstr("samples of length 8"),
                                                      HasSubstr("this run has length 4"))));
  bad = good;
  ++bad.dataset_checksum;
  EXPECT_THAT(sampler.PositionOf(bad), StatusIs(absl::StatusCode::kFailedPrecondition));
  for (const int64_t sample : {int64_t{-1}, sampler.windows()}) {
    bad = good;
    bad.sample = sample;
    EXPECT_THAT(sampler.PositionOf(bad), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  for (const int64_t epoch : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    bad = good;
    bad.epoch = epoch;
    EXPECT_THAT(sampler.PositionOf(bad), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(BatchSampler::Create(dataset.get(), 100, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs one more")));
  EXPECT_OK(BatchSampler::Create(dataset.get(), 99, 0).status());
}

}  // namespace
}  // namespace plinth::storage
