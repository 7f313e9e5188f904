// How long a kernel may go on before it returns with HWSIM_MORE, so that Python hears an interrupt.
#pragma once

#include <chrono>
#include <cstdint>

namespace hwsim {

class Watch {
 public:
  // nanoseconds: none, and it is over at the second look: each call gets on by one.
  explicit Watch(int64_t nanoseconds) : until_(Clock::now() + std::chrono::nanoseconds(nanoseconds)), is_over_at_once_(nanoseconds == 0) {}

  // The clock is read once in some looks, as it costs as much as a short one.
  bool is_over() {
    ++looks_;
    if (is_over_at_once_) return looks_ > 1;
    return looks_ % LOOKS == 0 && Clock::now() >= until_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t LOOKS = 16;
  Clock::time_point until_;
  bool is_over_at_once_;
  uint64_t looks_ = 0;
};

}  // namespace hwsim
