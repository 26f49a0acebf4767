// Codecs between float and the narrow types that tensors are stored in.
//
//   uint16_t half = F32ToF16(0.1f);        float back = F16ToF32(half);
//   uint8_t code = F32ToE4m3(x);           // saturates: a large x becomes 448
//
//   type   exponent, mantissa bits   largest   smallest > 0   infinity   NaN
//   bf16   8, 7                      3.39e38   2^-133         yes        yes
//   f16    5, 10                     65504     2^-24          yes        yes
//   e5m2   5, 2                      57344     2^-16          yes        yes
//   e4m3   4, 3  (OCP "e4m3fn")      448       2^-9           no         0x7f, 0xff only
//
// Codes are raw bits. Decoding is exact. Encoding rounds to nearest, ties to even, with
// subnormals kept; the sign of zero is kept; NaN stays NaN with its sign. Values past the
// largest finite one, after rounding, become infinity (bf16, f16) or what `Fp8Overflow` says.
// All functions are pure, constexpr and thread-safe, and none depends on the rounding mode or
// on flush-to-zero. They convert one value at a time; converting arrays is a kernel's work, for
// which these are the reference.
#ifndef PLINTH_HARDWARE_BASE_NUMERIC_H_
#define PLINTH_HARDWARE_BASE_NUMERIC_H_

#include <bit>
#include <cstdint>
#include <limits>

namespace plinth {

// What an 8-bit encoder makes of a value (or infinity) past the largest finite one.
enum class Fp8Overflow {
  kSaturate,   // the largest finite value of that sign
  kNonFinite,  // infinity (e5m2) or NaN (e4m3, which has no infinity)
};

namespace internal {

static_assert(std::numeric_limits<float>::is_iec559);

// A binary format narrower than float. `kHasInfinity` false: the top exponent holds numbers
// and only the all-ones code is NaN.
template <int kExponentBits, int kMantissaBits, bool kHasInfinity>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kMinExponent = 1 - kBias;
  static constexpr uint32_t kSignBit = 1u << (kExponentBits + kMantissaBits);
  static constexpr uint32_t kHidden = 1u << kMantissaBits;
  static constexpr uint32_t kTopExponent = ((1u << kExponentBits) - 1) << kMantissaBits;
  // The first code that is no finite number; codes below it grow with their value.
  static constexpr uint32_t kFirstNonFinite = kHasInfinity ? kTopExponent : kSignBit - 1;

  static constexpr float Decode(uint32_t code) {
    const uint32_t sign = (code & kSignBit) != 0 ? 0x80000000u : 0;
    const uint32_t magnitude = code & (kSignBit - 1);
    const uint32_t mantissa = magnitude & (kHidden - 1);
    if (magnitude >= kFirstNonFinite) {
      const uint32_t payload = kHasInfinity ? mantissa << (23 - kMantissaBits) : 0x400000u;
      return std::bit_cast<float>(sign | 0x7f800000u | payload);
    }
    if (magnitude < kHidden) {  // zero or subnormal: normalise, as every one is normal in float
      if (mantissa == 0) return std::bit_cast<float>(sign);
      const int shift = kMantissaBits + 1 - std::bit_width(mantissa);
      const uint32_t exponent = static_cast<uint32_t>(kMinExponent - shift + 127);
      const uint32_t fraction = (mantissa << shift) & (kHidden - 1);
      return std::bit_cast<float>(sign | exponent << 23 | fraction << (23 - kMantissaBits));
    }
    const uint32_t exponent = (magnitude >> kMantissaBits) - kBias + 127;
    return std::bit_cast<float>(sign | exponent << 23 | mantissa << (23 - kMantissaBits));
  }

  static constexpr uint32_t Encode(float value, bool saturate) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 31) != 0 ? kSignBit : 0;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | Nan(magnitude);
    const uint32_t code = magnitude == 0x7f800000u ? kFirstNonFinite : Round(magnitude);
    if (code < kFirstNonFinite) return sign | code;
    return sign | (saturate ? kFirstNonFinite - 1 : kFirstNonFinite);
  }

 private:
  // The top payload bits, made quiet: a payload that lies only in the lost bits must not
  // become infinity.
  static constexpr uint32_t Nan(uint32_t magnitude) {
    if (!kHasInfinity) return kFirstNonFinite;
    const uint32_t payload = (magnitude >> (23 - kMantissaBits)) & (kHidden - 1);
    return kTopExponent | payload | kHidden >> 1;
  }

  // Code of a finite value, possibly past the last finite code.
  static constexpr uint32_t Round(uint32_t magnitude) {
    const int exponent = (magnitude < 0x800000u ? 1 : static_cast<int>(magnitude >> 23)) - 127;
    const uint32_t significand = (magnitude & 0x7fffffu) | (magnitude < 0x800000u ? 0 : 0x800000u);
    const bool subnormal = exponent < kMinExponent;
    const int dropped = 23 - kMantissaBits + (subnormal ? kMinExponent - exponent : 0);
    if (dropped > 24) return 0;  // below half of the smallest value
    const uint32_t half = 1u << (dropped - 1);
    const uint32_t odd = (significand >> dropped) & 1;
    const uint32_t kept = (significand + half - 1 + odd) >> dropped;
    // A carry out of the mantissa lands in the exponent, which is the right code.
    return subnormal ? kept : static_cast<uint32_t>(exponent - kMinExponent) * kHidden + kept;
  }
};

using F16 = SmallFloat<5, 10, true>;
using E5m2 = SmallFloat<5, 2, true>;
using E4m3 = SmallFloat<4, 3, false>;

}  // namespace internal

// bf16 is the upper half of a float, so even its subnormals are a shift.
constexpr float Bf16ToF32(uint16_t code) {
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
}
// For the same reason rounding is an addition, fast enough for packing weights.
constexpr uint16_t F32ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);  // stays a quiet NaN
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

constexpr float F16ToF32(uint16_t code) { return internal::F16::Decode(code); }
constexpr uint16_t F32ToF16(float value) {
  return static_cast<uint16_t>(internal::F16::Encode(value, false));
}

constexpr float E4m3ToF32(uint8_t code) { return internal::E4m3::Decode(code); }
constexpr uint8_t F32ToE4m3(float value, Fp8Overflow overflow = Fp8Overflow::kSaturate) {
  return static_cast<uint8_t>(internal::E4m3::Encode(value, overflow == Fp8Overflow::kSaturate));
}

constexpr float E5m2ToF32(uint8_t code) { return internal::E5m2::Decode(code); }
constexpr uint8_t F32ToE5m2(float value, Fp8Overflow overflow = Fp8Overflow::kSaturate) {
  return static_cast<uint8_t>(internal::E5m2::Encode(value, overflow == Fp8Overflow::kSaturate));
}

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_NUMERIC_H_
