// Values by a few whole numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace hwsim::served {

template <size_t N>
using Sizes = std::array<int64_t, N>;

struct SizesHash {
  template <size_t N>
  size_t operator()(const Sizes<N>& sizes) const {
    uint64_t bits = 0;
    for (const int64_t size : sizes) {
      bits = (bits ^ static_cast<uint64_t>(size)) * 0x9E3779B97F4A7C15u;
      bits ^= bits >> 29;
    }
    return static_cast<size_t>(bits);
  }
};

template <size_t N, typename Value>
using Table = std::unordered_map<Sizes<N>, Value, SizesHash>;

}  // namespace hwsim::served
