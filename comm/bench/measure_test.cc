#include "plinth/comm/bench/measure.h"

#include <string>

#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

TEST(Measure, VerifiesAndAgreesBetweenRanks) {
  const auto reports =
      testing::RunThreads(2, absl::Seconds(20), [](Communicator& comm) -> std::string {
        std::string text;
        for (const DType dtype : {DType::kF32, DType::kBf16}) {
          const auto m = MeasureAllReduce(comm, dtype, 1000, 3);
          if (!m.ok()) return m.status().ToString();
          if (m->errors != 0 || m->bytes != 1000 * DTypeSize(dtype)) return "wrong result";
          if (m->median_us <= 0 || m->p10_us > m->median_us || m->median_us > m->p90_us) {
            return "wrong times";
          }
          // With two ranks each sends half of its buffer twice: the bytes of the buffer.
          if (m->bus_bandwidth != m->algorithm_bandwidth) return "wrong bandwidth";
          text += std::to_string(m->median_us) + " ";
        }
        return text;
      });
  EXPECT_THAT(reports[0], ::testing::MatchesRegex("([0-9]+\\.[0-9]+ ){2}"));
  EXPECT_EQ(reports[0], reports[1]);
}

}  // namespace
}  // namespace plinth::comm
