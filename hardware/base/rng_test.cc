#include "plinth/hardware/base/rng.h"

#include <cmath>

#include "gtest/gtest.h"
#include "plinth/hardware/base/hash.h"

namespace plinth {
namespace {

// Known answers of Random123's kat_vectors for philox4x32, 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Known answers of FNV-1a, 64 bits.
TEST(Fnv1a, KnownAnswers) {
  EXPECT_EQ(Fnv1a(""), 0xcbf29ce484222325);
  EXPECT_EQ(Fnv1a("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(Fnv1a("foobar"), 0x85944171f73967e8);
  EXPECT_EQ(Fnv1a("bar", Fnv1a("foo")), Fnv1a("foobar"));
}

TEST(Rng, MomentsOfTheNormal) {
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = RandomNormal(RngKey(1, "moments"), 7, i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  // Five standard errors: 1, sqrt(2) and sqrt(96) over sqrt(n).
  const double error = 5 / std::sqrt(kDraws);
  EXPECT_NEAR(sum / kDraws, 0, error);
  EXPECT_NEAR(squares / kDraws, 1, error * std::sqrt(2.0));
  EXPECT_NEAR(fourth / kDraws, 3, error * std::sqrt(96.0));
}

TEST(Rng, PurposesStreamsAndSeedsDiffer) {
  EXPECT_NE(RngKey(1, "a"), RngKey(1, "b"));
  EXPECT_NE(RngKey(1, "a"), RngKey(2, "a"));
  EXPECT_NE(RandomBits(1, 0, 5), RandomBits(1, 1, 5));
  const double u = RandomUniform(3, 4, 5);
  EXPECT_GE(u, 0);
  EXPECT_LT(u, 1);
  EXPECT_EQ(u, RandomUniform(3, 4, 5));
}

}  // namespace
}  // namespace plinth
