#include "plinth/hardware/base/numeric.h"

#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace plinth {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// One format, described independently of the codec under test: `Value` computes from the
// definition of a binary format in double.
struct Format {
  std::string name;
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
  float (*decode)(uint32_t);
  uint32_t (*encode)(float);

  uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  // Finite codes of positive sign are 0 .. last_finite().
  uint32_t last_finite() const {
    return has_infinity ? sign_bit() - 1 - (1u << mantissa_bits) : sign_bit() - 2;
  }
  bool is_infinity(uint32_t code) const {
    return has_infinity && (code & (sign_bit() - 1)) == last_finite() + 1;
  }
  double Value(uint32_t code) const {
    const double sign = (code & sign_bit()) != 0 ? -1.0 : 1.0;
    const uint32_t magnitude = code & (sign_bit() - 1);
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double fraction = std::ldexp(magnitude & ((1u << mantissa_bits) - 1), -mantissa_bits);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
    return sign * std::ldexp(1 + fraction, exponent - bias);
  }
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

class NumericTest : public ::testing::TestWithParam<Format> {};

TEST_P(NumericTest, DecodesEveryCode) {
  const Format& f = GetParam();
  for (uint32_t code = 0; code < 2 * f.sign_bit(); ++code) {
    const float got = f.decode(code);
    ASSERT_EQ(std::signbit(got), (code & f.sign_bit()) != 0) << code;
    if ((code & (f.sign_bit() - 1)) <= f.last_finite()) {
      ASSERT_EQ(got, f.Value(code)) << code;
    } else if (f.is_infinity(code)) {
      ASSERT_TRUE(std::isinf(got)) << code;
    } else {
      ASSERT_TRUE(std::isnan(got)) << code;
    }
  }
}

TEST_P(NumericTest, EncodesWhatItDecodes) {
  const Format& f = GetParam();
  for (uint32_t code = 0; code < 2 * f.sign_bit(); ++code) {
    const float value = f.decode(code);
    if (f.is_infinity(code) && f.encode(kInf) == f.last_finite()) continue;  // saturating
    const uint32_t again = f.encode(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(f.decode(again))) << code;
      ASSERT_EQ(again & f.sign_bit(), code & f.sign_bit()) << code;
    } else {
      ASSERT_EQ(again, code);
    }
  }
}

// Between each two neighbours: the midpoint goes to the even code, and the floats on either
// side of it to the nearer one. Midpoints are exact in float for all formats here.
TEST_P(NumericTest, RoundsToNearestEven) {
  const Format& f = GetParam();
  for (uint32_t low = 0; low < f.last_finite(); ++low) {
    const uint32_t even = low % 2 == 0 ? low : low + 1;
    const float middle = static_cast<float>((f.Value(low) + f.Value(low + 1)) / 2);
    ASSERT_EQ(f.encode(middle), even);
    ASSERT_EQ(f.encode(std::nextafter(middle, 0.0f)), low);
    ASSERT_EQ(f.encode(std::nextafter(middle, kInf)), low + 1);
    ASSERT_EQ(f.encode(-middle), even | f.sign_bit());
    ASSERT_EQ(f.encode(-std::nextafter(middle, 0.0f)), low | f.sign_bit());
  }
}

// The last midpoint, between the largest finite value and the next one if there were one.
TEST_P(NumericTest, OverflowsPastTheLastMidpoint) {
  const Format& f = GetParam();
  const double step = f.Value(f.last_finite()) - f.Value(f.last_finite() - 1);
  const auto limit = static_cast<float>(f.Value(f.last_finite()) + step / 2);
  const uint32_t beyond = f.encode(kInf);
  // Ties to even: only e4m3's largest code is even, as its odd neighbour is NaN.
  EXPECT_EQ(f.encode(limit), f.last_finite() % 2 == 0 ? f.last_finite() : beyond);
  EXPECT_EQ(f.encode(std::nextafter(limit, 0.0f)), f.last_finite());
  EXPECT_EQ(f.encode(std::nextafter(limit, kInf)), beyond);
  EXPECT_EQ(f.encode(std::numeric_limits<float>::max()), beyond);
  EXPECT_EQ(f.encode(-kInf), beyond | f.sign_bit());
}

TEST_P(NumericTest, TinyValuesKeepTheirSign) {
  const Format& f = GetParam();
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(f.encode(tiny), 0u);
  EXPECT_EQ(f.encode(-tiny), f.sign_bit());
  EXPECT_EQ(f.encode(-0.0f), f.sign_bit());
}

// A NaN whose payload lies in the bits that get lost must not turn into infinity.
TEST_P(NumericTest, KeepsNanWithLowPayload) {
  const Format& f = GetParam();
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffc00000u}) {
    const uint32_t code = f.encode(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(f.decode(code))) << std::hex << bits;
    EXPECT_EQ((code & f.sign_bit()) != 0, bits >> 31 == 1) << std::hex << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, NumericTest,
    ::testing::Values(
        Format{"bf16", 8, 7, true, [](uint32_t c) { return Bf16ToF32(c); },
               [](float x) { return uint32_t{F32ToBf16(x)}; }},
        Format{"f16", 5, 10, true, [](uint32_t c) { return F16ToF32(c); },
               [](float x) { return uint32_t{F32ToF16(x)}; }},
        Format{"e4m3_saturate", 4, 3, false, [](uint32_t c) { return E4m3ToF32(c); },
               [](float x) { return uint32_t{F32ToE4m3(x)}; }},
        Format{"e4m3_nonfinite", 4, 3, false, [](uint32_t c) { return E4m3ToF32(c); },
               [](float x) { return uint32_t{F32ToE4m3(x, Fp8Overflow::kNonFinite)}; }},
        Format{"e5m2_saturate", 5, 2, true, [](uint32_t c) { return E5m2ToF32(c); },
               [](float x) { return uint32_t{F32ToE5m2(x)}; }},
        Format{"e5m2_nonfinite", 5, 2, true, [](uint32_t c) { return E5m2ToF32(c); },
               [](float x) { return uint32_t{F32ToE5m2(x, Fp8Overflow::kNonFinite)}; }}),
    [](const auto& test) { return test.param.name; });

// Values from the OCP 8-bit floating point specification's tables.
TEST(Numeric, Fp8AgreesWithTheSpecification) {
  EXPECT_EQ(E4m3ToF32(0x7e), 448.0f);
  EXPECT_EQ(E4m3ToF32(0x08), 0.015625f);     // 2^-6, smallest normal
  EXPECT_EQ(E4m3ToF32(0x01), 0.001953125f);  // 2^-9, smallest subnormal
  EXPECT_TRUE(std::isnan(E4m3ToF32(0x7f)));
  EXPECT_TRUE(std::isnan(E4m3ToF32(0xff)));
  EXPECT_EQ(E5m2ToF32(0x7b), 57344.0f);
  EXPECT_EQ(E5m2ToF32(0x7c), kInf);
  EXPECT_EQ(E5m2ToF32(0x04), 0x1p-14f);
  EXPECT_EQ(E5m2ToF32(0x01), 0x1p-16f);
  EXPECT_EQ(F32ToE4m3(kInf), 0x7e);
  EXPECT_EQ(F32ToE4m3(-kInf, Fp8Overflow::kNonFinite), 0xff);
  EXPECT_EQ(F32ToE5m2(-kInf), 0xfb);
  EXPECT_EQ(F32ToE5m2(1e9f, Fp8Overflow::kNonFinite), 0x7c);
  static_assert(F32ToF16(1.0f) == 0x3c00 && F16ToF32(0x7bff) == 65504.0f);
  static_assert(F32ToBf16(1.0f) == 0x3f80);
}

}  // namespace
}  // namespace plinth
