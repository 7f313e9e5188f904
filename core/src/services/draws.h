// Random numbers by hash and their distributions, as `hwsim.workload.load` has them, to the bit.
#pragma once

#include <cstdint>

namespace hwsim::services {

// One round: 64 bits of a state and a number.
uint64_t mixed(uint64_t state, uint64_t number);

// A number in (0, 1).
double uniform(uint64_t key, uint64_t request, uint64_t visit);

// A draw of a request, equal to `Draws.at`. row: of the table; floats: all rows of parameters.
double drawn(const int64_t* row, const double* floats, int64_t request, int64_t visit);

}  // namespace hwsim::services
