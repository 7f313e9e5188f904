// What a class received, out of the notes of a replay.
#include <algorithm>

#include "guarded.h"
#include "words.h"

namespace hwsim {

namespace {

class Received {
 public:
  explicit Received(const hwsim_notes& notes) : notes_(notes) {}

  void count(int64_t number, int64_t begin, int64_t end) {
    const uint32_t* first = notes_.of_class + notes_.first_of_class[number];
    const uint32_t* last = notes_.of_class + notes_.first_of_class[number + 1];
    const auto time_of = [&](const uint32_t* row) { return notes_.bound_times[*row]; };
    const uint32_t* row = std::upper_bound(first, last, begin, [&](int64_t time, uint32_t one) { return time < notes_.bound_times[one]; });
    if (row != first) --row;
    for (; row != last && time_of(row) < end; ++row) {
      const int64_t start = std::max(time_of(row), begin);
      const int64_t until = row + 1 != last ? std::min(time_of(row + 1), end) : end;
      const int32_t bound = notes_.bounds[*row];
      if (bound >= 0) {
        at_levels(bound, start, until);
      } else {
        at(bound == -1 ? two_at(notes_.alone + 2 * number) : 0, until - start);
      }
    }
  }

  Three service;
  Two pace = 0;  // the last

 private:
  void at(Two level, int64_t span) {
    if (span <= 0) return;
    service += times(level, static_cast<uint64_t>(span));
    pace = level;
  }

  // At the levels of a capacity that is full from `start` to `until`.
  void at_levels(int32_t which, int64_t start, int64_t until) {
    const int64_t* solve = std::upper_bound(notes_.solve_times, notes_.solve_times + notes_.solves, start);
    const int64_t following = solve == notes_.solve_times + notes_.solves ? notes_.rows : notes_.solve_firsts[solve - notes_.solve_times];
    const uint32_t *begin = notes_.order + notes_.first[which], *end = notes_.order + notes_.first[which + 1];
    const uint32_t* row = std::lower_bound(begin, end, following) - 1;  // the level of before, which holds at `start`
    int64_t at_solve = solve - notes_.solve_times - 1;
    while (start < until) {
      const Two level = two_at(notes_.levels + 2 * static_cast<int64_t>(*row));
      int64_t next = until;
      if (++row != end) {
        while (at_solve + 1 < notes_.solves && notes_.solve_firsts[at_solve + 1] <= *row) ++at_solve;
        next = std::min(until, notes_.solve_times[at_solve]);
      }
      at(level, next - start);
      start = next;
    }
  }

  const hwsim_notes& notes_;
};

}  // namespace

}  // namespace hwsim

int32_t hwsim_notes_service(const hwsim_notes* notes, int64_t number, int64_t begin, int64_t end, uint64_t* found) {
  hwsim::Received received(*notes);
  received.count(number, begin, end);
  found[0] = received.service.low;
  found[1] = received.service.middle;
  found[2] = received.service.high;
  found[3] = static_cast<uint64_t>(received.pace);
  found[4] = static_cast<uint64_t>(received.pace >> 64);
  return HWSIM_DONE;
}
