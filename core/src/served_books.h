// What a served model's requests spend their time on: `hwsim.results.accounting`, `course` and `piles`, in the same order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace hwsim::served {

using Time = __int128;  // femtoseconds: a day has 8.64e19 of them

struct TooFar {};  // a duration or a sum leaves 64 bits where it has to fit

inline int64_t narrow(Time value) {
  if (value > INT64_MAX || value < INT64_MIN) throw TooFar{};
  return static_cast<int64_t>(value);
}

// Parts of a request's time, in the order of `accounting.PARTS`; the last three happen to no request here.
enum Part { TURN, SEATS, ROOM, READING, OTHERS, ANSWERS, WRITING, NETWORK, SHARED, AGAIN, HOST, PARTS = 14 };
enum Refusal { NONE, FOR_SEATS, FOR_ROOM };
enum Used { PROMPTS, TOKENS, EXCHANGES, BY_OTHERS, BY_HOST, USES };

using Spent = std::array<Time, USES>;
using Key = std::pair<int64_t, int64_t>;  // of a piece: its name, and its blocks; (OWN, number) of a request's own blocks

// A request: its way through the scheduler, and its books.
struct Request {
  int64_t number = 0, prompt = 0, output = 0, copy = 0;
  Time at = 0;  // when it stands in the line
  int64_t to_read = 0, read = 0, written = 0, joined = 0, hit = 0, kept = 0, own = 0, cached = 0, put_off = 0;
  bool is_over = false;
  std::vector<int64_t> ids;
  int64_t span = 1;
  std::vector<Key> keys;
  Time arrival = 0, seen = 0, begin = -1, first = -1, end = -1;
  int64_t noted_cached = 0;
  std::array<Time, PARTS> parts{}, to_first{};
  Time alone = 0, since = -1, lost = -1, noted = 0;
  Spent spent{};
  bool has_refused = false;
  Time seats = 0, room = 0;
  int64_t after = -1;  // record of the run that wrote the answer it waited for, and its end
  Time after_end = 0;
};

class Meters {
 public:
  Time end = 0;
  Spent spent{}, refused{};
  Time seats = 0, room = 0;
  Refusal refusal = NONE;

  void came(Request* request) {
    if (request->seen < end) {
      starts(*request, end);
    } else {
      coming_.push_back(request);
    }
  }

  void iterated(Time start, Time until, const Spent& more) {
    late_.clear();
    if (!coming_.empty()) {
      size_t left = 0;
      for (Request* request : coming_) {
        if (request->begin >= 0) continue;
        if (request->seen <= start) {
          starts(*request, start);
        } else if (request->seen <= until) {
          late_.push_back(request);
        } else {
          coming_[left++] = request;
        }
      }
      coming_.resize(left);
    }
    for (int use = 0; use < USES; ++use) spent[use] += more[use];
    if (refusal != NONE) {
      for (int use = 0; use < USES; ++use) refused[use] += more[use];
      (refusal == FOR_ROOM ? room : seats) += until - start;
    }
    end = until;
    for (Request* request : late_) starts(*request, until);
  }

  void begins(Request& request, Time time) {
    request.parts[HOST] += request.seen - request.noted;
    if (!request.has_refused) {
      request.parts[TURN] += time - request.seen;
    } else {
      const Time for_seats = seats - request.seats, for_room = room - request.room;
      request.parts[SEATS] += for_seats;
      request.parts[ROOM] += for_room;
      const Time passed = charge(request, waited(), OTHERS, ANSWERS);
      request.parts[TURN] += time - request.since - for_seats - for_room - passed;
    }
    request.begin = time;
    marks(request, time);
  }

  void writes(Request& request, Time time) {
    if (request.lost >= 0) {
      request.parts[AGAIN] += time - request.lost;
      request.lost = -1;
    } else {
      reads(request, time);
    }
    if (request.first < 0) {
      request.first = time;
      request.to_first = request.parts;
    }
    marks(request, time);
  }

  void puts_off(Request& request, Time time) {
    if (request.lost >= 0) return;
    if (request.first < 0) {
      reads(request, time);
    } else {
      wrote(request, time);
    }
    request.lost = time;
  }

  void ends(Request& request, Time time) {
    if (request.first < 0) {
      reads(request, time);
      request.to_first = request.parts;
    } else if (time > request.first) {
      wrote(request, time);
    }
    request.end = time;
  }

 private:
  std::vector<Request*> coming_, late_;

  Spent waited() const {
    Spent rest = spent;
    for (int use = 0; use < USES; ++use) rest[use] -= refused[use];
    return rest;
  }

  void starts(Request& request, Time at) {
    const Time early = std::max<Time>(0, at - request.seen);
    if (early > 0) request.parts[refusal == FOR_ROOM ? ROOM : refusal == FOR_SEATS ? SEATS : TURN] += early;
    request.since = std::max(at, request.seen);
    request.spent = waited();
    request.has_refused = true;
    request.seats = seats;
    request.room = room;
  }

  void marks(Request& request, Time time) {
    request.since = time;
    request.spent = spent;
    request.alone = 0;
  }

  void reads(Request& request, Time time) {
    const Time passed = charge(request, spent, OTHERS, ANSWERS);
    request.parts[OTHERS] -= request.alone;
    request.parts[READING] += request.alone;
    rest(request, time, time - request.since - passed);
  }

  void wrote(Request& request, Time time) {
    const Time passed = charge(request, spent, OTHERS, WRITING);
    rest(request, time, time - request.since - passed);
  }

  void rest(Request& request, Time time, Time left) {
    const Time out = std::min(std::max<Time>(0, time - end), left);
    request.parts[HOST] += out;
    request.parts[TURN] += left - out;
  }

  static Time charge(Request& request, const Spent& now, Part prompts, Part answers) {
    const Part parts[USES] = {prompts, answers, NETWORK, SHARED, HOST};
    Time all = 0;
    for (int use = 0; use < USES; ++use) {
      const Time passed = now[use] - request.spent[use];
      request.parts[parts[use]] += passed;
      all += passed;
    }
    return all;
  }
};

// The state over time in at most 512 stretches of equal length (`course.Course`).
class Course {
 public:
  static constexpr int CELLS = 512;
  int bits = 40;
  std::array<int64_t, CELLS> came{}, began{}, ended{};
  std::array<Time, CELLS> taken{};
  Time area = 0;
  int64_t most = 0;

  void counts(std::array<int64_t, CELLS>& column, Time time) { ++column[cell(time)]; }

  void takes(Time start, Time end, int64_t blocks) {
    most = std::max(most, blocks);
    adds(start, end, blocks);
  }

  void adds(Time start, Time end, int64_t blocks) {
    area += (end - start) * blocks;
    const int64_t last = cell(end);
    for (int64_t at = cell(start); at < last; ++at) {
      const Time stop = static_cast<Time>(at + 1) << bits;
      taken[at] += (stop - start) * blocks;
      start = stop;
    }
    if (start < end) taken[last] += (end - start) * blocks;
  }

 private:
  int64_t cell(Time time) {
    Time at = time >> bits;
    while (at >= CELLS) {
      doubles();
      at = time >> bits;
    }
    return static_cast<int64_t>(at);
  }

  template <typename Column>
  static void halve(Column& column) {
    for (int at = 0; at < CELLS / 2; ++at) column[at] = column[2 * at] + column[2 * at + 1];
    std::fill(column.begin() + CELLS / 2, column.end(), 0);
  }

  void doubles() {
    ++bits;
    halve(came), halve(began), halve(ended), halve(taken);
  }
};

// Times between the tokens of answers, in bins of 128 an octave (`piles.Gaps`).
class Gaps {
 public:
  static constexpr int DROPPED = 45;
  std::vector<int64_t> count = std::vector<int64_t>(size_t{1} << (63 - DROPPED), 0);
  Time total = 0;
  int64_t most = 0;

  void add(Time time, int64_t many) {
    const int64_t value = narrow(time);
    const double number = static_cast<double>(value);
    int64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    count[static_cast<size_t>(bits >> DROPPED)] += many;
    total += static_cast<Time>(value) * many;
    most = std::max(most, value);
  }
};

}  // namespace hwsim::served
