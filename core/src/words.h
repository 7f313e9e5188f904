// Whole numbers of two and of three words of 64 bits. Sums and products wrap; callers make sure that nothing is wider.
#pragma once

#include <cstdint>

namespace hwsim {

using Two = unsigned __int128;

constexpr Two two(uint64_t low, uint64_t high) { return static_cast<Two>(high) << 64 | low; }
inline Two two_at(const uint64_t* words) { return two(words[0], words[1]); }

struct Three {
  uint64_t low = 0, middle = 0, high = 0;

  Three() = default;
  constexpr Three(Two value) : low(static_cast<uint64_t>(value)), middle(static_cast<uint64_t>(value >> 64)) {}
  constexpr Three(uint64_t first, uint64_t second, uint64_t third) : low(first), middle(second), high(third) {}

  constexpr Two lower() const { return two(low, middle); }
  constexpr bool is_zero() const { return (low | middle | high) == 0; }
  constexpr bool is_negative() const { return high >> 63 != 0; }  // as a difference
};

inline Three three_at(const uint64_t* words) { return {words[0], words[1], words[2]}; }

constexpr Three make_three(Two lower, uint64_t high) {
  return {static_cast<uint64_t>(lower), static_cast<uint64_t>(lower >> 64), high};
}

constexpr Three operator+(Three one, Three other) {
  const Two lower = one.lower() + other.lower();
  return make_three(lower, one.high + other.high + (lower < other.lower()));
}

constexpr Three operator-(Three one, Three other) {
  return make_three(one.lower() - other.lower(), one.high - other.high - (one.lower() < other.lower()));
}

constexpr Three& operator+=(Three& one, Three other) { return one = one + other; }
constexpr Three& operator-=(Three& one, Three other) { return one = one - other; }
constexpr bool operator<(Three one, Three other) {
  return one.high != other.high ? one.high < other.high : one.lower() < other.lower();
}

constexpr Three times(Two one, uint64_t other) {
  const Two low = static_cast<Two>(static_cast<uint64_t>(one)) * other;
  const Two high = static_cast<Two>(static_cast<uint64_t>(one >> 64)) * other + static_cast<uint64_t>(low >> 64);
  return {static_cast<uint64_t>(low), static_cast<uint64_t>(high), static_cast<uint64_t>(high >> 64)};
}

constexpr Three times(Three one, Two other) {
  const auto low = static_cast<uint64_t>(other), high = static_cast<uint64_t>(other >> 64);
  Three product = times(one.lower(), low);
  product.high += one.high * low + one.middle * high;
  return product + make_three(static_cast<Two>(one.low) * high << 64, static_cast<uint64_t>(static_cast<Two>(one.low) * high >> 64));
}

constexpr Three times(Two one, Two other) { return times(Three(one), other); }

// The nearest float, nearly.
inline double rounded(Three value) {
  constexpr double word = 18446744073709551616.0;
  return (static_cast<double>(value.high) * word + static_cast<double>(value.middle)) * word + static_cast<double>(value.low);
}

// Rounded down; what does not fit two words is the largest number that does. Digits are guessed with floats, never too high,
// and what is left is divided again: a guess is right to 30 bits or more.
inline Two divide(Three dividend, Three divisor) {
  const double part = (1.0 - 0x1p-49) / rounded(divisor);
  double guess = rounded(dividend) * part;
  if (guess > 1e38) return ~static_cast<Two>(0);
  Two quotient = 0;
  for (; guess >= 1.0; guess = rounded(dividend) * part) {
    Two digit;
    if (guess < 0x1p62) {
      digit = static_cast<uint64_t>(guess);
    } else if (guess < 0x1p94) {
      digit = static_cast<Two>(static_cast<uint64_t>(guess * 0x1p-32)) << 32;
    } else {
      digit = two(0, static_cast<uint64_t>(guess * 0x1p-64));
    }
    dividend -= times(divisor, digit);
    quotient += digit;
  }
  for (; !(dividend < divisor); ++quotient) dividend -= divisor;
  return quotient;
}

}  // namespace hwsim
