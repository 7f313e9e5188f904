#include "hwsim_core.h"

#include "words.h"

int32_t hwsim_words(const uint64_t* one, const uint64_t* two, const uint64_t* three, uint64_t* found) {
  const hwsim::Three first = hwsim::three_at(one), second = hwsim::three_at(two), third = hwsim::three_at(three);
  const hwsim::Three results[] = {
      second.is_zero() ? hwsim::Three() : hwsim::Three(hwsim::divide(first, second)),
      first + hwsim::times(second, third.lower()),
      first - hwsim::times(second.lower(), third.low),
      {static_cast<uint64_t>(first < second), 0, 0},
  };
  for (const hwsim::Three& result : results) {
    *found++ = result.low;
    *found++ = result.middle;
    *found++ = result.high;
  }
  return HWSIM_DONE;
}
