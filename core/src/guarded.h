// No exception leaves the library: what runs out of memory says so.
#pragma once

#include <cstdint>
#include <exception>

#include "hwsim_core.h"

namespace hwsim {

template <typename Work>
int32_t guarded(Work work) {
  try {
    return work();
  } catch (const std::exception&) {  // bad_alloc, length_error: nothing else is thrown
    return HWSIM_NO_MEMORY;
  }
}

}  // namespace hwsim
