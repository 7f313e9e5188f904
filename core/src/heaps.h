// Heaps with the least in front, and skew heaps of numbered members.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace hwsim {

constexpr int32_t NONE = -1;

// A heap of four children each, which is half as deep as a binary one and has them in one line of the cache.
template <typename Entry>
class Heap {
 public:
  bool is_empty() const { return entries_.empty(); }
  const Entry& least() const { return entries_.front(); }
  void clear() { entries_.clear(); }

  void push(Entry entry) {
    size_t place = entries_.size();
    entries_.push_back(entry);
    for (; place > 0 && entry < entries_[(place - 1) / 4]; place = (place - 1) / 4) entries_[place] = entries_[(place - 1) / 4];
    entries_[place] = entry;
  }

  Entry pop() {
    const Entry least = entries_.front(), last = entries_.back();
    entries_.pop_back();
    const size_t size = entries_.size();
    if (size == 0) return least;
    size_t place = 0;
    for (size_t below = 1; below < size; below = 4 * place + 1) {
      const Entry* entries = entries_.data();
      size_t first = below;
      if (below + 4 <= size) {  // without branches, which nobody could foresee
        const size_t one = below + (entries[below + 1] < entries[below]), other = below + 2 + (entries[below + 3] < entries[below + 2]);
        first = entries[other] < entries[one] ? other : one;
      } else {
        for (size_t other = below + 1; other < size; ++other) first = entries[other] < entries[first] ? other : first;
      }
      if (!(entries_[first] < last)) break;
      entries_[place] = entries_[first];
      place = first;
    }
    entries_[place] = last;
    return least;
  }

 private:
  std::vector<Entry> entries_;
};

// Two skew heaps as one (Sleator and Tarjan, Self-adjusting heaps, SIAM J. Comput. 15(1), 1986). Members have a `tag` by which
// they are ordered, and children `left` and `right`.
template <typename Members>
int32_t merged(Members& members, int32_t first, int32_t second) {
  if (first < 0) return second;
  if (second < 0) return first;
  if (members[second].tag < members[first].tag) std::swap(first, second);
  const int32_t root = first;
  for (;;) {
    int32_t below = members[first].right;
    members[first].right = members[first].left;
    if (below < 0) {
      members[first].left = second;
      return root;
    }
    if (members[second].tag < members[below].tag) std::swap(below, second);
    members[first].left = below;
    first = below;
  }
}

}  // namespace hwsim
