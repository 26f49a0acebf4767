#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/checkpoint/box.h"
#include "plinth/storage/checkpoint/catalog.h"
#include "plinth/storage/checkpoint/layout.h"
#include "plinth/storage/checkpoint/manifest.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/checkpoint/test_checkpoint.h"
#include "plinth/storage/checkpoint/writer.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Element i of a tensor of this many elements holds i.
std::vector<int32_t> Ramp(int64_t elements) {
  std::vector<int32_t> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = static_cast<int32_t>(i);
  return values;
}
std::vector<int32_t> Part(const std::vector<int32_t>& whole, const Box& whole_box, const Box& box) {
  std::vector<int32_t> part(Elements(box.shape));
  CopyShared(whole_box, std::as_bytes(std::span(whole)), box,
             std::as_writable_bytes(std::span(part)), 4);
  return part;
}
void Edit(const std::string& path, const std::function<void(std::string*)>& change) {
  std::string bytes = *ReadFile(path);
  change(&bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(Checkpoint, GivesBackEverythingAndHasTheDocumentedFiles) {
  const std::string run = FreshRunDir();
  ASSERT_OK(SaveTestCheckpoint(run, 40));
  EXPECT_THAT(ListDirectory(run + "/checkpoints"), IsOkAndHolds(ElementsAre("step-00000040")));
  const std::string dir = run + "/checkpoints/step-00000040";
  EXPECT_THAT(ListDirectory(dir),
              IsOkAndHolds(ElementsAre("manifest.pb", "model-00000.safetensors",
                                       "optim-00000.safetensors", "tokenizer.json")));
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(dir));
  EXPECT_OK(CheckTestCheckpoint(*reader));
  EXPECT_THAT(reader->ReadTokenizerFile("tokenizer.json"), IsOkAndHolds("{\"step\": 40}"));
  EXPECT_THAT(reader->ReadTokenizerFile("other"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(Checkpoint, SameContentGivesSameBytes) {
  const std::string a = FreshRunDir() + "/a", b = FreshRunDir() + "/b";
  ASSERT_OK(SaveTestCheckpoint(a, 3));
  ASSERT_OK(SaveTestCheckpoint(b, 3));
  const std::string manifest = "/checkpoints/step-00000003/manifest.pb";
  EXPECT_EQ(*ReadFile(a + manifest), *ReadFile(b + manifest));
}

// 16 bytes a line: "0010  6d 6f 64 65 ...".
std::string HexDump(const std::string& bytes) {
  std::string dump;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 16 == 0) dump += absl::StrFormat("%s%04x ", i == 0 ? "" : "\n", i);
    dump += absl::StrFormat(" %02x", static_cast<unsigned char>(bytes[i]));
  }
  return dump + "\n";
}

TEST(Checkpoint, WorkedExampleOfFormatMdIsTrue) {
  const std::string run = FreshRunDir();
  ASSERT_OK_AND_ASSIGN(auto writer, CheckpointWriter::Create({.run_dir = run, .step = 1}));
  const float values[] = {1, 2};
  writer->Add("model", {"w", DType::kF32, {2}, {{0}, {2}}, std::as_bytes(std::span(values))});
  ASSERT_OK(writer->Commit({.step = 1,
                            .config_text = "a: 1",
                            .rng_seed = 7,
                            .cursor = {.epoch = 0,
                                       .sample = 8,
                                       .sequence_length = 4,
                                       .dataset_checksum = 0x0102030405060708}}));
  ASSERT_OK_AND_ASSIGN(const std::string document, ReadFile("storage/checkpoint/FORMAT.md"));
  for (const std::string file : {"/model-00000.safetensors", "/manifest.pb"}) {
    ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(writer->final_dir() + file));
    const std::string expected =
        absl::StrFormat("`, %d bytes:\n```\n%s```\n", bytes.size(), HexDump(bytes));
    EXPECT_NE(document.find(expected), std::string::npos) << file << expected;
  }
}

// A 7x5 matrix split by rows over 3 ranks (one of them empty) and a 1x17 one by columns over
// 2 of them, saved by 3 writers and read back in other cuts.
TEST(Checkpoint, RanksWriteUnevenAndEmptySlicesAndAnyLayoutReadsThem) {
  const std::string run = FreshRunDir();
  const std::vector<int64_t> rows = {7, 5}, line = {1, 17};
  const std::vector<int32_t> rows_values = Ramp(35), line_values = Ramp(17);
  const Box rows_boxes[] = {{{0, 0}, {3, 5}}, {{3, 0}, {4, 5}}, {{7, 0}, {0, 5}}};
  const Box line_boxes[] = {{{0, 0}, {1, 9}}, {{0, 9}, {1, 8}}, {{0, 17}, {1, 0}}};
  std::vector<std::unique_ptr<CheckpointWriter>> writers;
  std::vector<std::vector<int32_t>> parts;
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_OK_AND_ASSIGN(
        auto writer,
        CheckpointWriter::Create({.run_dir = run, .step = 1, .rank = rank, .world_size = 3}));
    parts.push_back(Part(rows_values, Box::Whole(rows), rows_boxes[rank]));
    writer->Add("model", {"rows", DType::kI32, rows, rows_boxes[rank],
                          std::as_bytes(std::span(parts.back()))});
    parts.push_back(Part(line_values, Box::Whole(line), line_boxes[rank]));
    writer->Add("model", {"line", DType::kI32, line, line_boxes[rank],
                          std::as_bytes(std::span(parts.back()))});
    writers.push_back(std::move(writer));
  }
  for (const int rank : {2, 0, 1}) ASSERT_OK(writers[rank]->WritePart());
  ASSERT_OK(writers[0]->Commit({.step = 1}));

  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(writers[0]->final_dir(), {.verify_reads = true}));
  EXPECT_OK(reader->Verify());
  EXPECT_THAT(reader->tensors(), SizeIs(2));
  for (int64_t begin = 0; begin <= 7; ++begin) {
    for (int64_t end = begin; end <= 7; ++end) {
      const Box box{{begin, 1}, {end - begin, 3}};
      std::vector<int32_t> got(Elements(box.shape), -1);
      ASSERT_OK(reader->Read("rows", box, std::as_writable_bytes(std::span(got))));
      EXPECT_EQ(got, Part(rows_values, Box::Whole(rows), box)) << box.ToString();
    }
  }
  std::vector<int32_t> got(17);
  ASSERT_OK(reader->Read("line", std::as_writable_bytes(std::span(got))));
  EXPECT_EQ(got, line_values);
}

TEST(Checkpoint, ScalarsAndZeroElementTensors) {
  const std::string run = FreshRunDir();
  ASSERT_OK_AND_ASSIGN(auto writer, CheckpointWriter::Create({.run_dir = run, .step = 0}));
  const double value = 0.25;
  writer->Add("optim", {"scalar", DType::kF64, {}, Box(), std::as_bytes(std::span(&value, 1))});
  writer->Add("optim", {"empty", DType::kF32, {3, 0}, Box::Whole(std::vector<int64_t>{3, 0}), {}});
  ASSERT_OK(writer->Commit({}));
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(writer->final_dir()));
  double got = 0;
  ASSERT_OK(reader->Read("scalar", std::as_writable_bytes(std::span(&got, 1))));
  EXPECT_EQ(got, value);
  EXPECT_OK(reader->Read("empty", {}));
}

TEST(Checkpoint, CommitRefusesMissingRanksAndPartsThatDisagree) {
  const std::string run = FreshRunDir();
  const std::vector<int32_t> values = Ramp(4);
  const auto save = [&](std::vector<std::pair<std::vector<int64_t>, Box>> parts,
                        bool all) -> absl::Status {
    std::vector<std::unique_ptr<CheckpointWriter>> writers;
    for (int rank = 0; rank < 2; ++rank) {
      auto writer =
          CheckpointWriter::Create({.run_dir = run, .step = 5, .rank = rank, .world_size = 2});
      if (!writer.ok()) return writer.status();
      const auto& [shape, box] = parts[rank];
      (*writer)->Add("model", {"w", DType::kI32, shape, box,
                               std::as_bytes(std::span(values.data(), Elements(box.shape)))});
      writers.push_back(*std::move(writer));
    }
    for (int rank = 0; rank < (all ? 2 : 1); ++rank) {
      if (absl::Status status = writers[rank]->WritePart(); !status.ok()) return status;
    }
    return writers[0]->Commit({.step = 5});
  };
  const Box first{{0}, {2}}, second{{2}, {2}};
  EXPECT_THAT(
      save({{{4}, first}, {{4}, second}}, false),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank 1 of 2 wrote no part")));
  EXPECT_THAT(save({{{4}, first}, {{4}, first}}, true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tensor \"w\""), HasSubstr("overlap"))));
  EXPECT_THAT(save({{{5}, first}, {{5}, second}}, true),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cover 4 of 5")));
  EXPECT_THAT(save({{{4}, first}, {{5}, second}}, true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is I32 [5] here and I32 [4] elsewhere")));
  EXPECT_THAT(FindLatest(run), StatusIs(absl::StatusCode::kNotFound, HasSubstr("not committed")));
  EXPECT_OK(save({{{4}, first}, {{4}, second}}, true));
  EXPECT_THAT(
      CheckpointWriter::Create({.run_dir = run, .step = 6, .rank = 1, .world_size = 2}).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank 0 must begin")));
}

TEST(Checkpoint, ReadErrorsSayWhatWasAsked) {
  const std::string run = FreshRunDir();
  ASSERT_OK(SaveTestCheckpoint(run, 1));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(run + "/checkpoints/step-00000001"));
  std::vector<std::byte> out(8);
  EXPECT_THAT(reader->Read("none", out), StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(reader->Read("w", out), StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("has 4096 bytes, the destination 8")));
  EXPECT_THAT(reader->Read("w", {{3, 0}, {2, 1}}, out),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not within")));
  EXPECT_EQ(reader->Find("none"), nullptr);
}

class Damage : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = FreshRunDir();
    ASSERT_OK(SaveTestCheckpoint(run_, 1));
    ASSERT_OK(SaveTestCheckpoint(run_, 2));
    dir_ = run_ + "/checkpoints/step-00000002";
  }
  void ExpectSkipped(const std::string& why) {
    ASSERT_OK_AND_ASSIGN(const FoundCheckpoint found, FindLatest(run_));
    EXPECT_EQ(found.step, 1);
    EXPECT_THAT(found.skipped, ElementsAre(AllOf(HasSubstr("step-00000002: "), HasSubstr(why))));
  }
  std::string run_, dir_;
};

TEST_F(Damage, MissingOrShortFilesAreFoundAtOpen) {
  const std::string shard = dir_ + "/optim-00000.safetensors";
  std::filesystem::resize_file(shard, 100);
  EXPECT_THAT(
      CheckpointReader::Open(dir_).status(),
      StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr(shard), HasSubstr("bytes, got 100"))));
  ExpectSkipped("bytes, got 100");
  std::filesystem::remove(shard);
  EXPECT_THAT(CheckpointReader::Open(dir_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(shard)));
  ExpectSkipped("No such file");
}

TEST_F(Damage, NoManifestIsNoCheckpoint) {
  std::filesystem::remove(dir_ + "/manifest.pb");
  EXPECT_THAT(CheckpointReader::Open(dir_).status(), StatusIs(absl::StatusCode::kNotFound));
  ExpectSkipped("manifest.pb: open for reading: No such file");
}

TEST_F(Damage, EveryCutAndEveryFlippedBitOfTheManifestIsFound) {
  const std::string path = dir_ + "/manifest.pb";
  const std::string good = *ReadFile(path);
  ASSERT_OK(DecodeManifest(good, path));
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_THAT(DecodeManifest(good.substr(0, n), path).status(),
                StatusIs(absl::StatusCode::kDataLoss))
        << n;
  }
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_THAT(DecodeManifest(bad, path).status(), StatusIs(absl::StatusCode::kDataLoss)) << bit;
  }
}

TEST_F(Damage, VerifyNamesShardAndTensor) {
  const std::string shard = dir_ + "/model-00000.safetensors";
  Edit(shard, [](std::string* bytes) { bytes->back() ^= 1; });
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(dir_, {.verify_reads = true}));
  EXPECT_THAT(reader->FindDamage(),
              ElementsAre(HasSubstr("model-00000.safetensors: tensor \"w\" slice [0+4, 0+256]: "
                                    "checksum is ")));
  EXPECT_THAT(reader->Verify(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(dir_)));
  std::vector<std::byte> out(4096);
  EXPECT_THAT(reader->Read("w", out), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(shard)));
  EXPECT_OK(reader->Read("w.m", out));
  ASSERT_OK_AND_ASSIGN(const FoundCheckpoint quick, FindLatest(run_));
  EXPECT_EQ(quick.step, 2);
  ASSERT_OK_AND_ASSIGN(const FoundCheckpoint thorough, FindLatest(run_, true));
  EXPECT_EQ(thorough.step, 1);
}

TEST_F(Damage, VerifyFindsAChangedHeaderAndTokenizer) {
  Edit(dir_ + "/model-00000.safetensors",
       [](std::string* bytes) { bytes->replace(bytes->find("\"pt\""), 4, "\"xx\""); });
  Edit(dir_ + "/tokenizer.json", [](std::string* bytes) { bytes->front() = '['; });
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(dir_));
  EXPECT_THAT(reader->FindDamage(), ElementsAre(HasSubstr("model-00000.safetensors: header"),
                                                HasSubstr("tokenizer.json: checksum is")));
}

TEST_F(Damage, ShardOfAnotherCheckpointIsFound) {
  // Equal sizes and headers, other data: only checksums can tell.
  std::filesystem::copy_file(run_ + "/checkpoints/step-00000001/model-00000.safetensors",
                             dir_ + "/model-00000.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(dir_));
  EXPECT_THAT(reader->FindDamage(), SizeIs(1));
  // The optimizer's shard in the model's place has another tensor.
  std::filesystem::copy_file(dir_ + "/optim-00000.safetensors", dir_ + "/model-00000.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(CheckpointReader::Open(dir_).status(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(Damage, ManifestsThatContradictThemselves) {
  const std::string path = dir_ + "/manifest.pb";
  const CheckpointManifest good = *DecodeManifest(*ReadFile(path), path);
  const auto decode = [&](const std::function<void(CheckpointManifest*)>& change) {
    CheckpointManifest bad = good;
    change(&bad);
    return DecodeManifest(EncodeManifest(bad), path).status();
  };
  const auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(decode([](auto* m) { m->mutable_shards(0)->set_name("../x"); }),
              StatusIs(kBad, HasSubstr("not a plain file name")));
  EXPECT_THAT(decode([](auto* m) { m->mutable_shards(1)->set_name(m->shards(0).name()); }),
              StatusIs(kBad, HasSubstr("listed twice")));
  EXPECT_THAT(decode([](auto* m) { m->mutable_tensors(0)->set_dtype("F12"); }),
              StatusIs(kBad, HasSubstr("tensor \"w\": unknown dtype")));
  EXPECT_THAT(decode([](auto* m) { m->mutable_tensors(0)->set_shape(0, -1); }), StatusIs(kBad));
  EXPECT_THAT(decode([](auto* m) { m->mutable_tensors(0)->set_shape(0, int64_t{1} << 60); }),
              StatusIs(kBad));
  EXPECT_THAT(decode([](auto* m) { m->mutable_tensors(0)->mutable_slices(0)->set_shard(2); }),
              StatusIs(kBad, HasSubstr("shard 2 of 2")));
  EXPECT_THAT(decode([](auto* m) { m->mutable_tensors(0)->clear_slices(); }),
              StatusIs(kBad, HasSubstr("cover 0 of 1024")));
  EXPECT_THAT(decode([](auto* m) { *m->add_tensors() = m->tensors(0); }),
              StatusIs(kBad, HasSubstr("listed twice")));
  EXPECT_OK(decode([](auto*) {}));
}

TEST_F(Damage, AnotherFormatVersionIsRefusedByName) {
  const std::string path = dir_ + "/manifest.pb";
  Edit(path, [](std::string* bytes) {
    ASSERT_EQ((*bytes)[0], 1 << 3);  // field 1, varint
    (*bytes)[1] = 2;
    const uint64_t checksum = Checksum(std::string_view(*bytes).substr(0, bytes->size() - 9));
    std::memcpy(bytes->data() + bytes->size() - 8, &checksum, 8);
  });
  EXPECT_THAT(CheckpointReader::Open(dir_).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("format 2, expected 1")));
}

TEST(Catalog, NothingThere) {
  const std::string run = FreshRunDir();
  EXPECT_THAT(FindLatest(run), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK(MakeDirectories(run + "/checkpoints/step-7"));  // not how we write 7
  ASSERT_OK(MakeDirectories(run + "/checkpoints/notes"));
  EXPECT_THAT(FindLatest(run),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("holds no complete checkpoint")));
}

TEST(Catalog, OnlyDamagedOnesAreNotTheSameAsNone) {
  const std::string run = FreshRunDir();
  ASSERT_OK(SaveTestCheckpoint(run, 1));
  std::filesystem::remove(run + "/checkpoints/step-00000001/model-00000.safetensors");
  EXPECT_THAT(FindLatest(run),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("holds no complete checkpoint: step-00000001: "),
                             HasSubstr("model-00000.safetensors"))));
}

TEST(Catalog, SaveCleansRemainsAndReplacesTheSameStep) {
  const std::string run = FreshRunDir();
  ASSERT_OK(MakeDirectories(run + "/checkpoints/.tmp-step-00000003/sub"));
  ASSERT_OK(MakeDirectories(run + "/checkpoints/step-00000009"));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(SaveTestCheckpoint(run, 9));
    EXPECT_THAT(ListDirectory(run + "/checkpoints"), IsOkAndHolds(ElementsAre("step-00000009")));
  }
  ASSERT_OK_AND_ASSIGN(const FoundCheckpoint found, FindLatest(run, true));
  EXPECT_EQ(found.step, 9);
  EXPECT_THAT(found.skipped, IsEmpty());
}

TEST(Catalog, KeepLastCountsOnlyCompleteOnes) {
  const std::string run = FreshRunDir();
  for (const int step : {1, 2, 3, 4, 100000000}) ASSERT_OK(SaveTestCheckpoint(run, step));
  std::filesystem::remove(run + "/checkpoints/step-00000004/manifest.pb");
  ASSERT_OK(KeepLast(run, 2));
  EXPECT_THAT(ListDirectory(run + "/checkpoints"),
              IsOkAndHolds(ElementsAre("step-00000003", "step-00000004", "step-100000000")));
  ASSERT_OK_AND_ASSIGN(const FoundCheckpoint found, FindLatest(run));
  EXPECT_EQ(found.step, 100000000);
}

}  // namespace
}  // namespace plinth::storage
