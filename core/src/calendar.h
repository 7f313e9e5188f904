// Which op ends when.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "heaps.h"

namespace hwsim {

// What is read and written of an op while it is replayed, in half a line of the cache.
struct Op {
  int64_t time;        // its fixed fs; from its begin on, when they are over
  int64_t first;       // place of its successors; those of the next op follow
  int32_t take;        // a pool, NONE or JOIN; from its begin on, the op that granted it its server, or NONE
  int32_t give;        // a pool or NONE
  int32_t flow_class;  // or NONE
  int32_t link;        // how many ops it waits for; then who is behind it at its pool; then in the calendar; then BEGUN
};

// A calendar queue (Brown, Calendar queues, CACM 31(10), 1988): times are divided into spans, and of the next spans each has a
// list in a ring. What ends in the present span is in a sorted list. What ends beyond the ring, or would be far behind in the
// sorted list, is in a heap: whatever the times are, nothing takes much longer than in a heap.
class Calendar {
 public:
  static constexpr uint64_t NEVER = UINT64_MAX;  // later than every time

  explicit Calendar(Op* ops) : ops_(ops) { resize(BITS); }

  // When the first op ends.
  uint64_t least() {
    if (next_ < 0) turn();
    return std::min(next_time_, heap_time_);
  }

  // The clock has come to an instant that is not after `least`.
  void come(int64_t instant) {
    if (std::min(next_time_, heap_time_) == NEVER) span_ = instant >> width_;
    if (--until_ == 0) measure(instant);
  }

  // Whether an op ends at the instant to which the clock has come.
  bool is_due(int64_t instant) const { return std::min(next_time_, heap_time_) <= static_cast<uint64_t>(instant); }

  int32_t pop() {
    if (heap_time_ < next_time_) [[unlikely]] return pop_heap();
    const int32_t op = next_;
    follow(ops_[op].link);
    return op;
  }

  void push(int32_t op, int64_t time) {
    ops_[op].time = time;
    const int64_t span = time >> width_, ahead = span - span_;
    if (ahead <= 0) {
      insert(op);
    } else if (ahead <= last_) {
      const auto place = static_cast<size_t>(span & last_);
      ops_[op].link = ring_[place];
      ring_[place] = op;
      filled_[place / BITS] |= uint64_t{1} << place % BITS;
    } else {
      push_heap(op);
    }
  }

 private:
  struct Timed {
    int64_t time;
    int32_t op;
    bool operator<(const Timed& other) const { return time < other.time; }
  };

  static constexpr size_t BITS = 64, MOST = 1 << 16;  // spans in the ring: the least, the most
  static constexpr int64_t OFTEN = 1024;              // instants after which spans are measured at the earliest
  static constexpr int FAR = 8;                       // places in the sorted list

  Timed timed(int32_t op) const { return {ops_[op].time, op}; }

  void resize(size_t spans) {
    ring_.assign(spans, NONE);
    filled_.assign(spans / BITS, 0);
    last_ = static_cast<int64_t>(spans) - 1;
  }

  // The sorted list begins with an op.
  void follow(int32_t op) {
    next_ = op;
    next_time_ = op < 0 ? NEVER : static_cast<uint64_t>(ops_[op].time);
  }

  void insert(int32_t op) {
    if (static_cast<uint64_t>(ops_[op].time) > next_time_) return insert_behind(op);
    ops_[op].link = next_;
    follow(op);
  }

  [[gnu::noinline]] void insert_behind(int32_t op) {
    int32_t before = next_;
    for (int place = 0; place < FAR; ++place) {
      const int32_t after = ops_[before].link;
      if (after < 0 || ops_[op].time <= ops_[after].time) {
        ops_[before].link = op;
        ops_[op].link = after;
        return;
      }
      before = after;
    }
    push_heap(op);
  }

  [[gnu::noinline]] void push_heap(int32_t op) {
    heap_.push(timed(op));
    heap_time_ = static_cast<uint64_t>(heap_.least().time);
  }

  [[gnu::noinline]] int32_t pop_heap() {
    const int32_t op = heap_.pop().op;
    heap_time_ = heap_.is_empty() ? NEVER : static_cast<uint64_t>(heap_.least().time);
    return op;
  }

  // How far after the present span the next one in the ring is that has a list; 0 if none has.
  int64_t ahead() const {
    const auto here = static_cast<size_t>(span_ & last_), words = filled_.size();
    size_t word = here / BITS;
    uint64_t bits = filled_[word] >> here % BITS << here % BITS;
    for (size_t look = 0; bits == 0; ++look) {
      if (look == words) return 0;
      word = (word + 1) & (words - 1);
      bits = filled_[word];
    }
    return static_cast<int64_t>(word * BITS + static_cast<size_t>(std::countr_zero(bits)) - here) & last_;
  }

  // The sorted list is empty: go to the next span in which something ends, if there is one.
  void turn() {
    const int64_t steps = ahead();
    if (heap_time_ != NEVER) [[unlikely]] {
      const int64_t span = static_cast<int64_t>(heap_time_) >> width_;
      if (steps == 0 || span < span_ + steps) {
        span_ = span;
        return;
      }
    }
    if (steps == 0) return;
    span_ += steps;
    const auto place = static_cast<size_t>(span_ & last_);
    filled_[place / BITS] ^= uint64_t{1} << place % BITS;
    for (int32_t op = std::exchange(ring_[place], NONE); op >= 0;) insert(std::exchange(op, ops_[op].link));
  }

  // Let two to four spans pass from one instant to the next, as they were lately.
  [[gnu::noinline]] void measure(int64_t instant) {
    const auto gap = static_cast<uint64_t>((instant - since_) / spent_);
    const int width = std::max(static_cast<int>(std::bit_width(gap)) - 2, 0);
    std::vector<Timed> all;
    if (width != width_) {
      for (; next_ >= 0; follow(ops_[next_].link)) all.push_back(timed(next_));
      for (int32_t op : ring_) {
        for (; op >= 0; op = ops_[op].link) all.push_back(timed(op));
      }
      while (!heap_.is_empty()) all.push_back(heap_.pop());
      heap_time_ = NEVER;
      width_ = width;
      span_ = instant >> width;
      resize(std::clamp(std::bit_ceil(16 * all.size()), BITS, MOST));
      for (const Timed& one : all) push(one.op, one.time);
    }
    since_ = instant;
    spent_ = until_ = std::max(OFTEN, static_cast<int64_t>(all.size()));
  }

  Op* ops_;
  int width_ = 62;                                     // of a span: as a power of two of fs
  int64_t span_ = 0, last_ = 0;                        // the present span; the last place in the ring
  std::vector<int32_t> ring_;                          // an op of each list
  std::vector<uint64_t> filled_;                       // bits: there is a list
  int32_t next_ = NONE;                                // the first in the sorted list
  uint64_t next_time_ = NEVER, heap_time_ = NEVER;     // the first in the sorted list, in the heap
  Heap<Timed> heap_;
  int64_t since_ = 0, spent_ = BITS, until_ = BITS;    // fs of the last measurement; instants from it to the next, and left
};

}  // namespace hwsim
