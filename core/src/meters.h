// What some members receive while they run: pace x time, by what holds their classes back and at which level.
//
// Members end when the service that is counted by group says so. This is another sum, to be compared with their work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heaps.h"
#include "words.h"

namespace hwsim {

class Meters {
 public:
  Meters() = default;
  // ops: those that are metered, in ascending order.
  Meters(const int32_t* ops, int64_t count, int64_t classes, int64_t capacities) : ops_(ops, ops + count) {
    if (ops_.empty()) return;
    is_metered_.resize(static_cast<size_t>(ops_.back()) + 1);
    for (const int32_t op : ops_) is_metered_[op] = true;
    received_.resize(WORDS * ops_.size());
    begun_.resize(ops_.size());
    of_class_.assign(classes, NONE);
    first_.assign(capacities, NONE);
  }

  bool is_metered(int32_t op) const { return static_cast<size_t>(op) < is_metered_.size() && is_metered_[op]; }
  // By op: the service in three words, its last pace in two, when it began to flow.
  const std::vector<uint64_t>& received() const { return received_; }

  // A metered op of a class begins to flow; bound: the capacity that holds the class back, or below 0.
  void begin(int32_t op, int32_t number, int32_t bound, Two pace, int64_t instant) {
    int32_t& which = of_class_[number];
    if (which == NONE) {
      which = static_cast<int32_t>(meters_.size());
      meters_.emplace_back();
    }
    Meter& meter = meters_[which];
    if (meter.members++ == 0) {
      meter.pace = pace;
      meter.since = instant;
      link(which, bound);
    }
    bring(meter, instant);
    const size_t at = place(op);
    begun_[at] = meter.service;
    received_[WORDS * at + 5] = static_cast<uint64_t>(instant);
  }

  void end(int32_t op, int32_t number, int64_t instant) {
    Meter& meter = meters_[of_class_[number]];
    bring(meter, instant);
    const size_t at = place(op);
    const Three service = meter.service - begun_[at];
    const auto low = static_cast<uint64_t>(meter.pace), high = static_cast<uint64_t>(meter.pace >> 64);
    const uint64_t words[] = {service.low, service.middle, service.high, low, high};
    std::copy(std::begin(words), std::end(words), &received_[WORDS * at]);
    if (--meter.members == 0) unlink(meter);
  }

  // Something else holds a class back from now on.
  void hold(int32_t number, int32_t bound, Two pace, int64_t instant) {
    const int32_t which = of_class_.empty() ? NONE : of_class_[number];
    if (which == NONE || meters_[which].members == 0) return;
    turn(meters_[which], pace, instant);
    unlink(meters_[which]);
    link(which, bound);
  }

  // A capacity has another level from now on.
  void level(int32_t capacity, Two level, int64_t instant) {
    if (first_.empty()) return;
    for (int32_t which = first_[capacity]; which >= 0; which = meters_[which].after) turn(meters_[which], level, instant);
  }

 private:
  static constexpr size_t WORDS = 6;

  struct Meter {
    Three service;
    Two pace = 0;
    int64_t since = 0;
    int32_t members = 0, bound = NONE, before = NONE, after = NONE;  // members: metered ones in flight
  };

  static void bring(Meter& meter, int64_t instant) {
    meter.service += times(meter.pace, static_cast<uint64_t>(instant - meter.since));
    meter.since = instant;
  }

  static void turn(Meter& meter, Two pace, int64_t instant) {
    bring(meter, instant);
    meter.pace = pace;
  }

  size_t place(int32_t op) const { return std::lower_bound(ops_.begin(), ops_.end(), op) - ops_.begin(); }

  // Into the list of the meters of what a capacity holds back.
  void link(int32_t which, int32_t bound) {
    Meter& meter = meters_[which];
    meter.bound = bound;
    meter.before = NONE;
    meter.after = bound < 0 ? NONE : first_[bound];
    if (bound < 0) return;
    if (meter.after >= 0) meters_[meter.after].before = which;
    first_[bound] = which;
  }

  void unlink(const Meter& meter) {
    if (meter.bound < 0) return;
    if (meter.after >= 0) meters_[meter.after].before = meter.before;
    (meter.before >= 0 ? meters_[meter.before].after : first_[meter.bound]) = meter.after;
  }

  std::vector<int32_t> ops_;
  std::vector<bool> is_metered_;
  std::vector<uint64_t> received_;
  std::vector<Three> begun_;       // by op: service of its meter when it began
  std::vector<int32_t> of_class_;  // meter of each class
  std::vector<Meter> meters_;
  std::vector<int32_t> first_;     // meters, by capacity
};

}  // namespace hwsim
