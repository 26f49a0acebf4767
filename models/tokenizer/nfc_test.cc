#include "plinth/models/tokenizer/nfc.h"

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace plinth::models {
namespace {

// All characters and random texts are compared with Python's unicodedata in huggingface_test.py.
TEST(NfcTest, ComposesAndOrders) {
  EXPECT_EQ(ToNfc("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(ToNfc("e\xCC\x81"), "\xC3\xA9");                                 // e + acute
  EXPECT_EQ(ToNfc("a\xCC\x8A\xCC\xA3"), "\xE1\xBA\xA1\xCC\x8A");             // ring, then dot below
  EXPECT_EQ(ToNfc("\xE2\x84\xAB"), "\xC3\x85");                              // angstrom sign
  EXPECT_EQ(ToNfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "\xED\x95\x9C");  // Hangul
  EXPECT_EQ(ToNfc("\xE0\xA5\x98"), "\xE0\xA4\x95\xE0\xA4\xBC");  // excluded from composing
  EXPECT_EQ(ToNfc(""), "");
}

TEST(NfcTest, BrokenBytesStayAndSeparate) {
  EXPECT_EQ(ToNfc("\xFF"), "\xFF");
  EXPECT_EQ(ToNfc("e\xFF\xCC\x81"), "e\xFF\xCC\x81");
  EXPECT_EQ(ToNfc("e\xCC\x81\xE2\x82"), "\xC3\xA9\xE2\x82");
  EXPECT_EQ(ToNfc("\xED\xA0\x80 e\xCC\x81"), "\xED\xA0\x80 \xC3\xA9");
}

TEST(NfcTest, AHostileRunOfMarksIsQuick) {
  std::string marks = "e";
  for (int i = 0; i < 500'000; ++i) marks += "\xCC\x81\xCC\xA3";  // above, below: never in order
  const absl::Time start = absl::Now();
  const std::string ordered = ToNfc(marks);
  EXPECT_LT(absl::Now() - start, absl::Seconds(4));  // n^2 steps would take hours
  EXPECT_EQ(ordered.substr(0, 3), "\xE1\xBA\xB9");   // e with dot below
  EXPECT_EQ(ToNfc(ordered), ordered);
}

}  // namespace
}  // namespace plinth::models
