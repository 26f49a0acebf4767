// The group whose ranks are threads of one process: for tests, and a world of one.
#ifndef PLINTH_COMM_TRANSPORT_MEM_CONNECT_H_
#define PLINTH_COMM_TRANSPORT_MEM_CONNECT_H_

#include <memory>
#include <vector>

#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// One end per rank, each for its own thread.
std::vector<std::unique_ptr<Transport>> ConnectMem(int size);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MEM_CONNECT_H_
