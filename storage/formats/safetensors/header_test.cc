#include "plinth/storage/formats/safetensors/header.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/formats/safetensors/dtypes.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Prefix(uint64_t n) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(n >> (8 * i));
  return bytes;
}
std::string Image(const std::string& json, size_t data_bytes) {
  return Prefix(json.size()) + json + std::string(data_bytes, 'd');
}
std::string Tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                      ",\"data_offsets\":", offsets, "}");
}
absl::StatusOr<SafetensorsHeader> Parse(const std::string& file) {
  return ParseSafetensorsHeader(std::as_bytes(std::span(file)), "m.st");
}
std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{" + Tensor("w", dtype, shape, offsets) + "}";
}

TEST(SafetensorsHeader, ReadsTensorsInDataOrderAndMetadata) {
  const std::string json = "{" + Tensor("late", "I16", "[3]", "[8,14]") +
                           ",\"__metadata__\":{\"format\":\"pt\",\"\":\"\"}," +
                           Tensor("early", "F32", "[2,1]", "[0,8]") + "," +
                           Tensor("none", "U8", "[0,7]", "[8,8]") + "," +
                           Tensor("scalar", "BF16", "[]", "[14,16]") + "}  ";
  ASSERT_OK_AND_ASSIGN(const SafetensorsHeader header, Parse(Image(json, 16)));
  const uint64_t start = 8 + json.size();
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[0].name, "early");
  EXPECT_EQ(header.tensors[1].name, "none");
  EXPECT_EQ(header.tensors[2].name, "late");
  EXPECT_EQ(header.tensors[0].begin, start);
  EXPECT_THAT(header.tensors[0].shape, ElementsAre(2, 1));
  const SafetensorsInfo* scalar = header.Find("scalar");
  ASSERT_NE(scalar, nullptr);
  EXPECT_EQ(scalar->dtype, DType::kBf16);
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_EQ(scalar->end, start + 16);
  EXPECT_EQ(header.Find("absent"), nullptr);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.metadata.at(""), "");
}

TEST(SafetensorsHeader, EveryDTypeHasOneName) {
  for (int i = static_cast<int>(DType::kF32); i <= static_cast<int>(DType::kBool); ++i) {
    const DType dtype = static_cast<DType>(i);
    ASSERT_OK_AND_ASSIGN(const DType back, ParseSafetensorsDType(SafetensorsName(dtype)));
    EXPECT_EQ(back, dtype);
  }
}

struct BadCase {
  const char* what;
  std::string file;
  absl::StatusCode code;
  std::string message;
};

class Rejects : public ::testing::TestWithParam<BadCase> {};
TEST_P(Rejects, WithATypedError) {
  const BadCase& bad = GetParam();
  EXPECT_THAT(Parse(bad.file), StatusIs(bad.code, HasSubstr(bad.message)));
  EXPECT_THAT(Parse(bad.file), StatusIs(bad.code, HasSubstr("m.st: ")));
}

constexpr auto kBad = absl::StatusCode::kInvalidArgument;
constexpr auto kLost = absl::StatusCode::kDataLoss;
const std::string k2To64 = "18446744073709551616";

INSTANTIATE_TEST_SUITE_P(
    Prefix, Rejects,
    ::testing::Values(
        BadCase{"no file", "", kLost, "expected at least 8 bytes for the header's length, got 0"},
        BadCase{"7 bytes", std::string(7, '\0'), kLost, "got 7"},
        BadCase{"2^64-1", Prefix(~uint64_t{0}) + "{}", kBad, "18446744073709551615 bytes"},
        BadCase{"over the limit", Prefix(100'000'001), kBad, "at most 100000000"},
        BadCase{"limit, short file", Prefix(100'000'000) + "{}", kLost, "file has only 2"},
        BadCase{"one byte short", Prefix(3) + "{}", kLost, "header of 3 bytes at byte 8"},
        BadCase{"empty header", Prefix(0), kBad, "JSON byte 0"}));

INSTANTIATE_TEST_SUITE_P(
    Json, Rejects,
    ::testing::Values(
        BadCase{"not JSON", Image("{x}", 0), kBad, "JSON byte"},
        BadCase{"cut", Image("{\"a\":", 0), kBad, "JSON byte 5"},
        BadCase{"trailing text", Image("{}x", 0), kBad, "JSON byte 2"},
        BadCase{"two documents", Image("{}{}", 0), kBad, "JSON byte 2"},
        BadCase{"array", Image("[]", 0), kBad, "expected an object, got an array"},
        BadCase{"number", Image("7", 0), kBad, "expected an object, got a number"},
        BadCase{"invalid UTF-8", Image("{\"\xff\":{}}", 0), kBad, "JSON byte"},
        BadCase{"comment", Image("{/**/}", 0), kBad, "JSON byte"},
        BadCase{"trailing comma", Image("{" + Tensor("w", "U8", "[0]", "[0,0]") + ",}", 0), kBad,
                "JSON byte"},
        BadCase{"deep", Image("{\"__metadata__\":" + std::string(1000, '['), 0), kBad, "JSON byte"},
        BadCase{"metadata array", Image("{\"__metadata__\":[]}", 0), kBad,
                "__metadata__: expected an object, got an array"},
        BadCase{"metadata number", Image("{\"__metadata__\":{\"k\":1}}", 0), kBad,
                "__metadata__ entry \"k\": expected a string, got a number"},
        BadCase{"metadata object", Image("{\"__metadata__\":{\"k\":{}}}", 0), kBad,
                "expected a string, got an object"},
        BadCase{"metadata key twice", Image("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0),
                kBad, "two entries \"k\""},
        BadCase{"metadata twice", Image("{\"__metadata__\":{},\"__metadata__\":{}}", 0), kBad,
                "two __metadata__"},
        BadCase{"tensor is null", Image("{\"w\":null}", 0), kBad,
                "tensor \"w\": expected an object, got null"},
        BadCase{"nothing in it", Image("{\"w\":{}}", 0), kBad, "lacks dtype shape data_offsets"},
        BadCase{"no offsets", Image("{\"w\":{\"dtype\":\"U8\",\"shape\":[]}}", 1), kBad,
                "tensor \"w\": lacks data_offsets"},
        BadCase{"unknown field", Image("{\"w\":{\"stride\":[]}}", 0), kBad,
                "unexpected field \"stride\""},
        BadCase{"field twice", Image("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0), kBad,
                "two fields \"dtype\""},
        BadCase{"dtype number", Image("{\"w\":{\"dtype\":1}}", 0), kBad,
                "dtype: expected a string, got a number"},
        BadCase{"shape string", Image("{\"w\":{\"shape\":\"1\"}}", 0), kBad,
                "shape: expected an array, got a string"},
        BadCase{"escaped name", Image("{\"a\\u0000b\":7}", 0), kBad, "\"a\\x00\\x62\""},
        BadCase{"name in UTF-8", Image("{\"\\u00fc\":7}", 0), kBad, "tensor \"\xc3\xbc\""},
        BadCase{"name twice",
                Image("{" + Tensor("w", "U8", "[1]", "[0,1]") + "," +
                          Tensor("w", "U8", "[1]", "[1,2]") + "}",
                      2),
                kBad, "tensor \"w\": described twice"}));

INSTANTIATE_TEST_SUITE_P(
    Sizes, Rejects,
    ::testing::Values(
        BadCase{"4 MB from 4 bytes", Image(One("F32", "[1000,1000]", "[0,4]"), 4), kBad,
                "tensor \"w\": F32 [1000, 1000]: expected 4000000 bytes, got 4"},
        BadCase{"span too large", Image(One("F32", "[32,8]", "[0,65536]"), 65536), kBad,
                "expected 1024 bytes, got 65536 from data_offsets [0, 65536]"},
        BadCase{"no offsets", Image(One("F32", "[1]", "[]"), 4), kBad, "has 0 numbers, expected 2"},
        BadCase{"one offset", Image(One("F32", "[1]", "[0]"), 4), kBad, "has 1 numbers"},
        BadCase{"three offsets", Image(One("F32", "[1]", "[0,4,8]"), 4), kBad, "more than 2"},
        BadCase{"backwards", Image(One("F32", "[1]", "[8,4]"), 8), kBad,
                "data_offsets [8, 4] end before they begin"},
        BadCase{"unknown dtype", Image(One("F12", "[1]", "[9223372036854775808,4]"), 4), kBad,
                "tensor \"w\": unknown dtype \"F12\", expected one of BOOL"},
        BadCase{"lower case dtype", Image(One("f32", "[1]", "[0,4]"), 4), kBad, "unknown dtype"},
        BadCase{"unsupported dtype", Image(One("F4", "[2]", "[0,1]"), 1),
                absl::StatusCode::kUnimplemented, "dtype \"F4\" is not supported"},
        BadCase{"huge begin", Image(One("F32", "[1]", "[9223372036854775808,4]"), 4), kBad,
                "end before they begin"},
        BadCase{"ends beyond 2^63",
                Image(One("U8", "[1]", "[18446744073709551614,18446744073709551615]"), 4), kLost,
                "the file holds only 4 bytes"},
        BadCase{"offset of 65 bits", Image(One("F32", "[1]", "[0," + k2To64 + "]"), 4), kBad,
                "beyond 64 bits"},
        BadCase{"fraction", Image(One("F32", "[1.0]", "[0,4]"), 4), kBad, "a fraction"},
        BadCase{"exponent", Image(One("F32", "[1e0]", "[0,4]"), 4), kBad, "a fraction"},
        BadCase{"negative size", Image(One("F32", "[-1]", "[0,4]"), 4), kBad, "a negative number"},
        BadCase{"negative zero", Image(One("F32", "[-0]", "[0,0]"), 0), kBad, "a negative number"},
        BadCase{"text size", Image(One("F32", "[\"1\"]", "[0,4]"), 4), kBad, "got a string"},
        BadCase{"size of 64 bits", Image(One("U8", "[9223372036854775808]", "[0,4]"), 4), kBad,
                "beyond 63 bits"},
        BadCase{"product wraps to 0", Image(One("F32", "[4294967296,4294967296]", "[0,0]"), 0),
                kBad, "needs more bytes than 64 bits count"},
        BadCase{"product wraps to 4", Image(One("F32", "[4611686018427387905]", "[0,4]"), 4), kBad,
                "needs more bytes"},
        BadCase{"rank",
                Image(One(
                          "U8",
                          "[" +
                              [] {
                                std::string ones = "1";
                                for (int i = 0; i < 64; ++i) ones += ",1";
                                return ones;
                              }() +
                              "]",
                          "[0,1]"),
                      1),
                kBad, "more than 64 dimensions"}));

INSTANTIATE_TEST_SUITE_P(
    Coverage, Rejects,
    ::testing::Values(
        BadCase{"same bytes twice",
                Image("{" + Tensor("a", "U8", "[4]", "[0,4]") + "," +
                          Tensor("b", "U8", "[4]", "[0,4]") + "}",
                      4),
                kBad, "tensor \"b\" at data bytes [0, 4) overlaps tensor \"a\", which ends at 4"},
        BadCase{"partial overlap",
                Image("{" + Tensor("b", "U8", "[4]", "[3,7]") + "," +
                          Tensor("a", "U8", "[4]", "[0,4]") + "}",
                      7),
                kBad, "overlaps tensor \"a\""},
        BadCase{"inside",
                Image("{" + Tensor("a", "U8", "[9]", "[0,9]") + "," +
                          Tensor("b", "U8", "[1]", "[4,5]") + "}",
                      9),
                kBad, "overlaps"},
        BadCase{"empty tensor inside another",
                Image("{" + Tensor("a", "U8", "[4]", "[0,4]") + "," +
                          Tensor("b", "U8", "[0]", "[2,2]") + "}",
                      4),
                kBad, "overlaps"},
        BadCase{"hole at the start", Image(One("U8", "[1]", "[1,2]"), 2), kBad,
                "data bytes [0, 1) before tensor \"w\" belong to no tensor"},
        BadCase{"hole",
                Image("{" + Tensor("a", "U8", "[4]", "[0,4]") + "," +
                          Tensor("b", "U8", "[4]", "[8,12]") + "}",
                      12),
                kBad, "data bytes [4, 8) before tensor \"b\""},
        BadCase{"trailing byte", Image(One("U8", "[1]", "[0,1]"), 2), kBad,
                "data bytes [1, 2) after the last tensor"},
        BadCase{"data without tensors", Image("{}", 1), kBad, "data bytes [0, 1)"},
        BadCase{"one data byte short", Image(One("F32", "[2]", "[0,8]"), 7), kLost,
                "tensor \"w\" at data bytes [0, 8): the file holds only 7 bytes"}));

TEST(SafetensorsHeader, EveryCutAndEveryFlippedBitIsAnErrorOrStillCoversTheData) {
  const std::string json =
      "{" + Tensor("a", "F32", "[2,1]", "[0,8]") + "," + Tensor("b", "U8", "[3]", "[8,11]") + "}";
  const std::string good = Image(json, 11);
  ASSERT_OK(Parse(good));
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(Parse(good.substr(0, n)).ok()) << n;
  }
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    const auto header = Parse(bad);
    if (!header.ok()) continue;  // a flip inside a name or the data is legal
    uint64_t end = header->tensors.front().begin;
    for (const SafetensorsInfo& tensor : header->tensors) {
      EXPECT_EQ(tensor.begin, end);
      end = tensor.end;
    }
    EXPECT_EQ(end, bad.size()) << "bit " << bit;
  }
}

}  // namespace
}  // namespace plinth::storage
