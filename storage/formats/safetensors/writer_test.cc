#include "plinth/storage/formats/safetensors/writer.h"

#include <cstring>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/formats/safetensors/reader.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/fault_injection.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Fresh(const std::string& name) {
  const std::string dir = ::testing::TempDir() + "/writer_" + name;
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir + "/m.safetensors";
}

TEST(SafetensorsWriter, BytesAreTheOnesTheFormatSays) {
  const std::string path = Fresh("golden");
  const std::string a = "abcdefgh", b = "xyz";
  ASSERT_OK(WriteSafetensors(
      path, {{{{"b", DType::kU8, {3}}, Bytes(b)}, {{"a\n", DType::kF32, {2, 1}}, Bytes(a)}}},
      {{"k", "v"}}));
  const std::string json =
      "{\"__metadata__\":{\"k\":\"v\"},"
      "\"a\\n\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  const std::string prefix = {static_cast<char>(padded.size()), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(ReadFile(path), IsOkAndHolds(prefix + padded + a + b));
  EXPECT_THAT(ListDirectory(path.substr(0, path.rfind('/'))),
              IsOkAndHolds(ElementsAre("m.safetensors")));
}

TEST(SafetensorsWriter, NamesMayHoldEveryCharacter) {
  std::string name = "\"\\/\x7f\xc2\x80\xe6\xbc\xa2\xf0\x9f\x98\x80";
  for (char c = 0; c < 0x20; ++c) name += c;
  const std::string path = Fresh("names");
  ASSERT_OK(WriteSafetensors(path, {{{{name, DType::kU8, {0}}, {}}}}, {{name, name}}));
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file, SafetensorsFile::Open(path));
  EXPECT_NE(file.Find(name), nullptr);
  EXPECT_EQ(file.header().metadata.at(name), name);
}

TEST(SafetensorsWriter, OrderOfListingDoesNotMatterAndTensorsAreAligned) {
  const std::string one(1, '1'), two(6, '2'), eight(24, '8'), none;
  std::vector<SafetensorsTensor> tensors = {{{"c", DType::kBool, {1}}, Bytes(one)},
                                            {{"d", DType::kBf16, {3}}, Bytes(two)},
                                            {{"a", DType::kI64, {3}}, Bytes(eight)},
                                            {{"b", DType::kF64, {3}}, Bytes(eight)},
                                            {{"e", DType::kF64, {0}}, Bytes(none)}};
  const std::string path = Fresh("order");
  ASSERT_OK(WriteSafetensors(path, tensors));
  ASSERT_OK_AND_ASSIGN(const std::string first, ReadFile(path));
  std::reverse(tensors.begin(), tensors.end());
  ASSERT_OK(WriteSafetensors(path, tensors));
  EXPECT_THAT(ReadFile(path), IsOkAndHolds(first));
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file, SafetensorsFile::Open(path));
  for (const SafetensorsInfo& tensor : file.header().tensors) {
    EXPECT_EQ(tensor.begin % DTypeSize(tensor.dtype), 0u) << tensor.name;
  }
  for (const SafetensorsTensor& tensor : tensors) {
    const SafetensorsInfo* info = file.Find(tensor.spec.name);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->dtype, tensor.spec.dtype);
    EXPECT_EQ(info->shape, tensor.spec.shape);
    const auto bytes = file.bytes(*info);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
}

TEST(SafetensorsWriter, StreamsInPiecesAndReportsTheFilesChecksum) {
  const std::string path = Fresh("pieces");
  ASSERT_OK_AND_ASSIGN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(path, {{"b", DType::kU8, {2}}, {"a", DType::kU8, {3}}}, {}));
  ASSERT_EQ(writer.layout()[0].name, "a");
  ASSERT_OK(writer.Append("a", Bytes("12")));
  ASSERT_OK(writer.Append("a", Bytes("3")));
  ASSERT_OK(writer.Append("b", Bytes("45")));
  ASSERT_OK(writer.Finish());
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path));
  EXPECT_TRUE(bytes.ends_with("12345"));
  EXPECT_EQ(writer.checksum(), Checksum(bytes));
  EXPECT_EQ(writer.size(), static_cast<int64_t>(bytes.size()));
}

TEST(SafetensorsWriter, RefusesWhatTheReaderWouldRefuse) {
  const std::string path = Fresh("refuse");
  const auto create = [&](std::vector<SafetensorsSpec> specs,
                          std::map<std::string, std::string> metadata = {}) {
    return SafetensorsWriter::Create(path, std::move(specs), metadata).status();
  };
  const auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(create({{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}}),
              StatusIs(kBad, HasSubstr("\"a\": described twice")));
  EXPECT_THAT(create({{"__metadata__", DType::kU8, {1}}}), StatusIs(kBad));
  EXPECT_THAT(create({{"\xff", DType::kU8, {1}}}), StatusIs(kBad, HasSubstr("JSON")));
  EXPECT_THAT(create({}, {{"k", "\xc3("}}), StatusIs(kBad, HasSubstr("JSON")));
  EXPECT_THAT(create({{"a", DType::kU8, {-1}}}), StatusIs(kBad, HasSubstr("tensor \"a\"")));
  EXPECT_THAT(create({{"a", DType::kF64, {int64_t{1} << 61}}}), StatusIs(kBad));
  EXPECT_THAT(create({{"a", DType::kU8, std::vector<int64_t>(65, 1)}}), StatusIs(kBad));
  EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kNotFound)) << "nothing was created";
}

TEST(SafetensorsWriterDeathTest, WrongTurnOrSizeIsABug) {
  const std::vector<SafetensorsSpec> specs = {{"a", DType::kU8, {1}}, {"b", DType::kU8, {1}}};
  ASSERT_OK_AND_ASSIGN(SafetensorsWriter writer,
                       SafetensorsWriter::Create(Fresh("death"), specs, {}));
  EXPECT_DEATH(writer.Append("b", Bytes("1")).IgnoreError(), "out of turn");
  EXPECT_DEATH(writer.Append("a", Bytes("12")).IgnoreError(), "too many bytes for tensor a");
  EXPECT_DEATH(writer.Finish().IgnoreError(), "data is missing from tensor a");
}

TEST(SafetensorsWriter, FullDiskKeepsTheOldFile) {
  const std::string path = Fresh("full");
  const std::string old_bytes(8, 'o'), new_bytes(1'000'000, 'n');
  ASSERT_OK(WriteSafetensors(path, {{{{"w", DType::kU8, {8}}, Bytes(old_bytes)}}}));
  FaultySyscalls full;
  full.capacity = 500'000;
  EXPECT_THAT(
      WriteSafetensors(path, {{{{"w", DType::kU8, {1'000'000}}, Bytes(new_bytes)}}}, {}, full),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full: wrote 500000")));
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file, SafetensorsFile::Open(path));
  EXPECT_EQ(file.Find("w")->shape[0], 8);
}

}  // namespace
}  // namespace plinth::storage
