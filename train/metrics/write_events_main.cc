// Writes a small event file into the directory given, for the check with TensorBoard's reader.
#include <cstdio>
#include <vector>

#include "plinth/train/metrics/event_writer.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto writer = plinth::train::EventWriter::Create(argv[1]);
  if (!writer.ok()) return 1;
  for (int step = 1; step <= 3; ++step) {
    const std::vector<plinth::train::Scalar> scalars = {{"train/loss", 4.5 / step},
                                                        {"train/learning_rate", 0.125 * step}};
    if (!writer->Write(step, scalars).ok()) return 1;
  }
  std::puts(writer->path().c_str());
  return 0;
}
