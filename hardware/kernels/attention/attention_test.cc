#include "plinth/hardware/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/kernels/attention/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::SampleFloats;
using testing::ToDouble;
using Values = std::vector<float>;

struct Problem {
  std::vector<int32_t> lengths;
  int64_t heads = 1, kv_heads = 1, head_dim = 16;
  float scale = 0;      // 0: 1 / sqrt(head_dim)
  float magnitude = 1;  // of q
  int64_t gap = 0;      // between rows of every operand

  int64_t T() const { return std::accumulate(lengths.begin(), lengths.end(), int64_t{0}); }
  int64_t q_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  float scale_used() const {
    return scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(head_dim));
  }
  std::vector<int32_t> starts() const {
    std::vector<int32_t> starts{0};
    for (const int32_t length : lengths) starts.push_back(starts.back() + length);
    return starts;
  }
  Values q() const { return SampleFloats(T() * q_width(), 1, -magnitude, magnitude); }
  Values k() const { return SampleFloats(T() * kv_width(), 2); }
  Values v() const { return SampleFloats(T() * kv_width(), 3); }
  Values dout() const { return SampleFloats(T() * q_width(), 4); }

  reference::Attention Reference() const {
    return {.q_starts = starts(),
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .scale = scale_used(),
            .q = ToDouble(q()),
            .k = ToDouble(k()),
            .v = ToDouble(v()),
            .dout = ToDouble(dout())};
  }

  // Inputs and roundings have random signs, so n of them add up to about sqrt(n); 4 leaves
  // room. A score is a sum of D products at most `magnitude * scale`, each step rounding
  // twice at most; its error enters the probability as a relative one.
  double ScoreError() const {
    const auto D = static_cast<double>(head_dim);
    return 4 * 0x1p-24 * std::sqrt(2 * D + 4) * std::sqrt(D) * magnitude * scale_used();
  }
  // To that add the roundings of exp, of the sums over the keys and of the rescaling.
  Tolerance OutTolerance() const {
    const int32_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    return {.eps = 2 * ScoreError() + 4 * 0x1p-24 * std::sqrt(longest + 20.0), .abs = 1};
  }
};

Values Rows(const Values& values, int64_t width, int64_t begin, int64_t end) {
  return Values(values.begin() + begin * width, values.begin() + end * width);
}

struct Outputs {
  Values out, lse_HT;
};
struct Gradients {
  Values dq, dk, dv;
};

class AttentionTest : public testing::DeviceTest {
 protected:
  // Uploads dense rows with `gap` elements of NaN after each.
  Tensor UploadRows(const Values& values, int64_t width, int64_t gap) {
    const int64_t T = width == 0 ? 0 : static_cast<int64_t>(values.size()) / width;
    Values spread(T * (width + gap), NAN);
    for (int64_t t = 0; t < T; ++t) {
      std::copy_n(values.begin() + t * width, width, spread.begin() + t * (width + gap));
    }
    return Upload(spread, {T, width + gap});
  }
  static TensorView View(const Tensor& tensor, int64_t width) {
    TensorView view = tensor.view();
    view.shape = Shape{view.dim(0), width};
    return view;
  }
  // Dense rows; the gaps must still be NaN.
  Values DownloadRows(const Tensor& tensor, int64_t width) {
    const Values spread = Download<float>(tensor);
    const int64_t step = tensor.dim(1);
    Values values;
    for (int64_t t = 0; t < tensor.dim(0); ++t) {
      values.insert(values.end(), spread.begin() + t * step, spread.begin() + t * step + width);
      for (int64_t i = width; i < step; ++i) EXPECT_TRUE(std::isnan(spread[t * step + i]));
    }
    return values;
  }

  Outputs Forward(const Problem& p, const Values& q, const Values& k, const Values& v) {
    const Tensor q_device = UploadRows(q, p.q_width(), p.gap);
    const Tensor k_device = UploadRows(k, p.kv_width(), p.gap);
    const Tensor v_device = UploadRows(v, p.kv_width(), p.gap);
    const Tensor starts = Upload(p.starts(), {static_cast<int64_t>(p.lengths.size()) + 1});
    const Tensor out = NewOutput(DType::kF32, {p.T(), p.q_width() + p.gap});
    const Tensor lse = NewOutput(DType::kF32, {p.heads, p.T() + p.gap});
    Attention({.q = View(q_device, p.q_width()),
               .k = View(k_device, p.kv_width()),
               .v = View(v_device, p.kv_width()),
               .out = View(out, p.q_width()),
               .lse_HT = View(lse, p.T()),
               .q_starts = starts.view(),
               .heads = p.heads,
               .kv_heads = p.kv_heads,
               .head_dim = p.head_dim,
               .scale = p.scale_used()},
              ctx());
    return {DownloadRows(out, p.q_width()), DownloadRows(lse, p.T())};
  }
  Outputs Forward(const Problem& p) { return Forward(p, p.q(), p.k(), p.v()); }

  Gradients Backward(const Problem& p) {
    const Outputs forward = Forward(p);
    const auto q_like = [&](const Values& values) {
      return UploadRows(values, p.q_width(), p.gap);
    };
    const auto kv_like = [&](const Values& values) {
      return UploadRows(values, p.kv_width(), p.gap);
    };
    const Tensor q = q_like(p.q()), k = kv_like(p.k()), v = kv_like(p.v());
    const Tensor out = q_like(forward.out), dout = q_like(p.dout());
    const Tensor lse = Upload(forward.lse_HT, {p.heads, p.T()});
    const Tensor starts = Upload(p.starts(), {static_cast<int64_t>(p.lengths.size()) + 1});
    const Tensor dq = NewOutput(DType::kF32, {p.T(), p.q_width() + p.gap});
    const Tensor dk = NewOutput(DType::kF32, {p.T(), p.kv_width() + p.gap});
    const Tensor dv = NewOutput(DType::kF32, {p.T(), p.kv_width() + p.gap});
    AttentionBackward({.q = View(q, p.q_width()),
                       .k = View(k, p.kv_width()),
                       .v = View(v, p.kv_width()),
                       .out = View(out, p.q_width()),
                       .lse_HT = lse.view(),
                       .q_starts = starts.view(),
                       .dout = View(dout, p.q_width()),
                       .dq = View(dq, p.q_width()),
                       .dk = View(dk, p.kv_width()),
                       .dv = View(dv, p.kv_width()),
                       .heads = p.heads,
                       .kv_heads = p.kv_heads,
                       .head_dim = p.head_dim,
                       .scale = p.scale_used()},
                      ctx());
    return {DownloadRows(dq, p.q_width()), DownloadRows(dk, p.kv_width()),
            DownloadRows(dv, p.kv_width())};
  }

  // The last `queries[s]` tokens of each sequence, over a cache whose pages are in disorder
  // and hold NaN where no key is.
  Values Paged(const Problem& p, const std::vector<int32_t>& queries, int64_t page_tokens,
               DType dtype) {
    const auto S = static_cast<int64_t>(p.lengths.size());
    const int32_t longest = *std::max_element(p.lengths.begin(), p.lengths.end());
    const int64_t max_pages = longest / page_tokens + 2, page_count = S * max_pages;
    Values k_cache(page_count * page_tokens * p.kv_width(), NAN), v_cache = k_cache, q;
    std::vector<int32_t> pages(S * max_pages, -1), past, starts{0};
    const Values all_q = p.q(), k = p.k(), v = p.v();
    const auto from = p.starts();
    int32_t used = 0;
    for (int64_t s = 0; s < S; ++s) {
      past.push_back(p.lengths[s] - queries[s]);
      starts.push_back(starts.back() + queries[s]);
      const Values rows = Rows(all_q, p.q_width(), from[s + 1] - queries[s], from[s + 1]);
      q.insert(q.end(), rows.begin(), rows.end());
      for (int64_t j = 0; j < p.lengths[s]; ++j) {
        int32_t& page = pages[s * max_pages + j / page_tokens];
        if (j % page_tokens == 0) page = static_cast<int32_t>(page_count) - 1 - used++;
        const int64_t row = page * page_tokens + j % page_tokens;
        std::copy_n(k.begin() + (from[s] + j) * p.kv_width(), p.kv_width(),
                    k_cache.begin() + row * p.kv_width());
        std::copy_n(v.begin() + (from[s] + j) * p.kv_width(), p.kv_width(),
                    v_cache.begin() + row * p.kv_width());
      }
    }
    const auto cache = [&](const Values& values) {
      const Shape shape{page_count * page_tokens, p.kv_width()};
      if (dtype == DType::kF32) return Upload(values, shape);
      std::vector<uint16_t> bits;
      for (const float value : values) bits.push_back(F32ToBf16(value));
      return Upload(bits, shape);
    };
    const Tensor q_device = Upload(q, {starts.back(), p.q_width()});
    const Tensor k_device = cache(k_cache), v_device = cache(v_cache);
    const Tensor starts_device = Upload(starts, {S + 1}), past_device = Upload(past, {S});
    const Tensor pages_device = Upload(pages, {S, max_pages});
    const Tensor out = NewOutput(DType::kF32, {starts.back(), p.q_width()});
    Attention({.q = q_device.view(),
               .k = k_device.view(),
               .v = v_device.view(),
               .out = out.view(),
               .q_starts = starts_device.view(),
               .past = past_device.view(),
               .pages = pages_device.view(),
               .heads = p.heads,
               .kv_heads = p.kv_heads,
               .head_dim = p.head_dim,
               .page_tokens = page_tokens,
               .scale = p.scale_used()},
              ctx());
    return Download<float>(out);
  }
};

const std::vector<std::vector<int32_t>> kLengths = {
    {}, {0}, {1}, {2}, {63}, {64}, {65}, {130}, {0, 5, 0, 70, 1, 0}};
struct Heads {
  int64_t heads, kv_heads;
};
constexpr Heads kHeads[] = {{1, 1}, {2, 1}, {4, 2}, {3, 3}};
constexpr int64_t kHeadDims[] = {4, 16, 17, 64, 80};

TEST_P(AttentionTest, ForwardAgreesWithReference) {
  SetThreadCount(1);
  for (const auto& lengths : kLengths) {
    for (const auto& [heads, kv_heads] : kHeads) {
      for (const int64_t head_dim : kHeadDims) {
        const Problem p{.lengths = lengths,
                        .heads = heads,
                        .kv_heads = kv_heads,
                        .head_dim = head_dim,
                        .gap = head_dim % 3};
        reference::Attention truth = p.Reference();
        truth.Forward();
        const Outputs actual = Forward(p);
        EXPECT_TRUE(AllClose(actual.out, truth.out, p.OutTolerance()))
            << "T " << p.T() << " heads " << heads << "/" << kv_heads << " D " << head_dim;
        EXPECT_TRUE(AllClose(actual.lse_HT, truth.lse_HT, p.OutTolerance()));
      }
    }
  }
}

TEST_P(AttentionTest, MoreHeadsThanRowsInABlock) {
  const Problem p{.lengths = {3, 66}, .heads = 66, .kv_heads = 1, .head_dim = 4};
  reference::Attention truth = p.Reference();
  truth.Forward();
  EXPECT_TRUE(AllClose(Forward(p).out, truth.out, p.OutTolerance()));
}

// One key far above the others, at each place around the edge of a tile: the sums so far
// are scaled down to nothing, and nothing overflows.
TEST_P(AttentionTest, GreatScoresDoNotOverflow) {
  const Problem p{.lengths = {130}, .head_dim = 16, .scale = 100, .magnitude = 10};
  reference::Attention truth = p.Reference();
  truth.Forward();
  const Outputs actual = Forward(p);
  // Scores reach 16,000, where floats are 0.001 apart: probabilities hold two digits.
  EXPECT_TRUE(AllClose(actual.out, truth.out, {.eps = 2 * p.ScoreError(), .abs = 1}));
  for (const float value : actual.out) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(AttentionTest, ARowDoesNotDependOnOtherSequencesOrThreads) {
  const Problem alone{.lengths = {130}, .heads = 4, .kv_heads = 2, .head_dim = 17};
  SetThreadCount(1);
  const Outputs expected = Forward(alone);
  // The same sequence between two others.
  Problem among = alone;
  among.lengths = {7, 130, 65};
  Values q = among.q(), k = among.k(), v = among.v();
  const Values one_q = alone.q(), one_k = alone.k(), one_v = alone.v();
  std::copy(one_q.begin(), one_q.end(), q.begin() + 7 * alone.q_width());
  std::copy(one_k.begin(), one_k.end(), k.begin() + 7 * alone.kv_width());
  std::copy(one_v.begin(), one_v.end(), v.begin() + 7 * alone.kv_width());
  for (const int count : {1, 2, 3}) {
    SetThreadCount(count);
    EXPECT_TRUE(AllSameBits(Forward(alone).out, expected.out));
    EXPECT_TRUE(
        AllSameBits(Rows(Forward(among, q, k, v).out, alone.q_width(), 7, 137), expected.out));
  }
}

TEST_P(AttentionTest, LaterTokensDoNotReachEarlierRows) {
  const Problem p{.lengths = {130}, .heads = 2, .kv_heads = 1, .head_dim = 16};
  const Values expected = Forward(p).out;
  for (const int64_t cut : {1, 63, 64, 65, 70, 129}) {
    Values q = p.q(), k = p.k(), v = p.v();
    std::fill(q.begin() + cut * p.q_width(), q.end(), NAN);
    std::fill(k.begin() + cut * p.kv_width(), k.end(), NAN);
    std::fill(v.begin() + cut * p.kv_width(), v.end(), NAN);
    const Values actual = Forward(p, q, k, v).out;
    EXPECT_TRUE(AllSameBits(Rows(actual, p.q_width(), 0, cut), Rows(expected, p.q_width(), 0, cut)))
        << cut;
    EXPECT_TRUE(std::isnan(actual.back()));
  }
}

// Prefill, decode and everything between, on any page size, give the bits of one pass.
TEST_P(AttentionTest, PagesAndChunksChangeNothing) {
  const Problem p{.lengths = {130, 1, 64, 65}, .heads = 4, .kv_heads = 2, .head_dim = 17};
  const Values all = Forward(p).out;
  const auto starts = p.starts();
  for (const int64_t page_tokens : {1, 7, 16, 64, 200}) {
    for (const std::vector<int32_t>& queries : std::vector<std::vector<int32_t>>{
             {1, 1, 1, 1}, {130, 1, 64, 65}, {66, 0, 3, 2}, {0, 1, 0, 0}}) {
      Values expected;
      for (size_t s = 0; s < queries.size(); ++s) {
        const Values rows = Rows(all, p.q_width(), starts[s + 1] - queries[s], starts[s + 1]);
        expected.insert(expected.end(), rows.begin(), rows.end());
      }
      EXPECT_TRUE(AllSameBits(Paged(p, queries, page_tokens, DType::kF32), expected))
          << "page_tokens " << page_tokens << " first query count " << queries[0];
    }
  }
}

TEST_P(AttentionTest, DecodingTokenByTokenEqualsPrefill) {
  Problem p{.lengths = {70}, .heads = 2, .kv_heads = 1, .head_dim = 64};
  const Values all = Forward(p).out;
  for (int32_t length = 1; length <= 70; ++length) {
    p.lengths = {length};
    EXPECT_TRUE(
        AllSameBits(Paged(p, {1}, 16, DType::kF32), Rows(all, p.q_width(), length - 1, length)))
        << length;
  }
}

TEST_P(AttentionTest, Bf16CacheEqualsItsValuesInF32) {
  for (const int64_t head_dim : kHeadDims) {
    const Problem p{.lengths = {65, 3}, .heads = 2, .kv_heads = 2, .head_dim = head_dim};
    Values k = p.k(), v = p.v();
    for (Values* values : {&k, &v}) {
      for (float& value : *values) value = Bf16ToF32(F32ToBf16(value));
    }
    EXPECT_TRUE(AllSameBits(Paged(p, p.lengths, 16, DType::kBf16), Forward(p, p.q(), k, v).out));
  }
}

TEST_P(AttentionTest, EveryInstructionSetAgreesWithReference) {
  const Problem p{.lengths = {130}, .heads = 4, .kv_heads = 2, .head_dim = 17};
  reference::Attention truth = p.Reference();
  truth.Backward();
  OnEachInstructionSet([&] {
    EXPECT_TRUE(AllClose(Forward(p).out, truth.out, p.OutTolerance()));
    EXPECT_TRUE(AllClose(Backward(p).dk, truth.dk, {.eps = 1e-5, .abs = 1}));
  });
}

TEST(AttentionReferenceTest, GradientsAreCentralDifferences) {
  const Problem p{.lengths = {5, 0, 3}, .heads = 4, .kv_heads = 2, .head_dim = 4};
  reference::Attention truth = p.Reference();
  truth.Backward();
  const auto loss = [&] {
    reference::Attention moved = truth;
    moved.Forward();
    return std::inner_product(moved.out.begin(), moved.out.end(), moved.dout.begin(), 0.0);
  };
  const Tolerance tolerance{.eps = 1e-8, .abs = 1};
  using testing::CentralDifferences;
  EXPECT_TRUE(AllClose(truth.dq, CentralDifferences(truth.q, loss), tolerance));
  EXPECT_TRUE(AllClose(truth.dk, CentralDifferences(truth.k, loss), tolerance));
  EXPECT_TRUE(AllClose(truth.dv, CentralDifferences(truth.v, loss), tolerance));
}

TEST_P(AttentionTest, BackwardAgreesWithReference) {
  SetThreadCount(1);
  for (const auto& lengths : kLengths) {
    for (const auto& [heads, kv_heads] : kHeads) {
      for (const int64_t head_dim : kHeadDims) {
        const Problem p{.lengths = lengths,
                        .heads = heads,
                        .kv_heads = kv_heads,
                        .head_dim = head_dim,
                        .gap = head_dim % 3};
        reference::Attention truth = p.Reference();
        truth.Backward();
        const Gradients actual = Backward(p);
        // Each query adds to dk about scale * p * (dout.v - delta) * q, where dout.v is about
        // sqrt(D) at most; the probabilities that T queries give one key sum to about
        // H/KV (1 + ln T). Relative errors are those of the forward pass, twice.
        const double T = std::max<double>(1, static_cast<double>(p.T()));
        const double terms = 2 * std::sqrt(static_cast<double>(head_dim)) * p.scale_used() * heads /
                             kv_heads * (1 + std::log(T));
        const Tolerance tolerance{.eps = 2 * p.OutTolerance().eps, .abs = std::max(1.0, terms)};
        EXPECT_TRUE(AllClose(actual.dq, truth.dq, tolerance))
            << "T " << p.T() << " heads " << heads << "/" << kv_heads << " D " << head_dim;
        EXPECT_TRUE(AllClose(actual.dk, truth.dk, tolerance)) << p.T() << " " << head_dim;
        EXPECT_TRUE(AllClose(actual.dv, truth.dv, tolerance)) << p.T() << " " << head_dim;
      }
    }
  }
}

TEST_P(AttentionTest, BackwardDoesNotDependOnThreads) {
  const Problem p{.lengths = {70, 0, 130, 1}, .heads = 4, .kv_heads = 2, .head_dim = 16};
  SetThreadCount(1);
  const Gradients expected = Backward(p);
  for (const int count : {2, 3}) {
    SetThreadCount(count);
    const Gradients actual = Backward(p);
    EXPECT_TRUE(AllSameBits(actual.dq, expected.dq));
    EXPECT_TRUE(AllSameBits(actual.dk, expected.dk));
    EXPECT_TRUE(AllSameBits(actual.dv, expected.dv));
  }
}

TEST_P(AttentionTest, ChecksItsArguments) {
  const Tensor q = NewOutput(DType::kF32, {4, 12}), k = NewOutput(DType::kF32, {5, 4});
  const Tensor starts = Upload(std::vector<int32_t>{0, 3}, {2});
  AttentionArgs args{.q = q.view(),
                     .k = k.view(),
                     .v = k.view(),
                     .out = q.view(),
                     .q_starts = starts.view(),
                     .heads = 3,
                     .kv_heads = 1,
                     .head_dim = 4};
  EXPECT_DEATH(Attention(args, ctx()), "5 vs. 4.*in attention: dim T of k");
  args.k = args.v = k.view().Rows(0, 4);
  // The sequence starts lie on the device, so the kernel checks them when it runs.
  EXPECT_DEATH(
      {
        Attention(args, ctx());
        CHECK_OK(stream().Synchronize());
      },
      "3 vs. 4.*end of q_starts");
  args.kv_heads = 2;
  EXPECT_DEATH(Attention(args, ctx()), "heads 3, kv_heads 2");
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
