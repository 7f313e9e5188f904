// Stations: what `hwsim.families.services.actors.stations` says, to the femtosecond. Paces of classes are shared out as in
// `hwsim.engine.fair`, on one capacity or on several that works tie together.
#include "../heaps.h"
#include "run.h"

namespace hwsim::services {

using namespace station;
using namespace member;

namespace {

constexpr Three WHOLE = {0, 0, uint64_t{1} << 36};  // `hwsim.engine.fair.FULL`

// Strands as members of a skew heap.
struct Strands {
  int64_t* strands;
  uint64_t* targets;

  struct Member {
    Three tag;
    int64_t &left, &right;
  };
  Member operator[](int64_t at) const {
    int64_t* row = strands + at * strand::STRAND_WIDTH;
    return {three_at(targets + 3 * at), row[strand::LEFT_CHILD], row[strand::RIGHT_CHILD]};
  }
};

int64_t merged_strands(const hwsim_services& of, int64_t one, int64_t other) {
  const Strands strands{of.strands, of.targets};
  return merged(strands, static_cast<int32_t>(one), static_cast<int32_t>(other));
}

int64_t without_root(const hwsim_services& of, int64_t root) {
  const int64_t* row = of.strands + root * strand::STRAND_WIDTH;
  return merged_strands(of, row[strand::LEFT_CHILD], row[strand::RIGHT_CHILD]);
}

}  // namespace

// Bring the integrals of a station up to now.
void Run::bring_station(int64_t* row) {
  const int64_t passed = now() - row[station::LAST];
  if (passed == 0) return;
  row[station::LAST] = now();
  uint64_t* sums = words(row[WORDS_AT]);
  add_to(sums + AREA, over(row[THERE], passed));
  const bool serves = row[KIND] == FIFO || row[KIND] == ARMS;
  const uint64_t* used = serves ? words(row[FIRST_CLASS] + row[SERVERS] - row[FREE]) : sums + USED;
  const Two low = used[0], high = two(used[1], used[2]);  // 165 bits at most: in two parts, so that fs times them fit
  add_to(sums + BUSY_LOW, times(low, static_cast<uint64_t>(passed)));
  add_to(sums + BUSY_HIGH, times(high, static_cast<uint64_t>(passed)));
}

// A server of a line takes on a work.
void Run::begin_server(int64_t* row, int64_t number, int64_t time) {
  put(target(number), Three(static_cast<uint64_t>(++row[WORKING]), static_cast<uint64_t>(now() + time), 0));
  strand(number)[strand::LEFT_CHILD] = strand(number)[strand::RIGHT_CHILD] = NONE;
  row[HEAD] = merged_strands(of_, row[HEAD], number);
  row[DUE] = static_cast<int64_t>(target(row[HEAD])[1]);
}

// The work of a server of a line that ends first is over; its number.
int64_t Run::end_server(int64_t* row) {
  const int64_t number = row[HEAD];
  row[HEAD] = without_root(of_, number);
  --row[THERE];
  return number;
}

// A request comes that alone would take `time` fs; false if that is beyond an int64.
bool Run::join(int64_t at, int64_t flow, int64_t time, int64_t number) {
  int64_t* row = station(at);
  bring_station(row);
  ++row[THERE];
  if (time > LARGEST - now()) return false;
  if (row[KIND] == ARMS) {
    strand(number)[strand::ARM_CLASS] = row[LAST_CLASS] + 1 + flow;
    const bool is_first = row[LINE_FIRST] < 0;
    append(row, LINE_FIRST, TAIL, number);
    return row[FREE] == 0 || !is_first || choose(row);
  }
  if (row[KIND] == FIFO) {
    if (row[FREE] > 0) {
      --row[FREE];
      begin_server(row, number, time);
    } else {
      strand(number)[strand::WORKS] = time;
      append(row, LINE_FIRST, TAIL, number);
    }
    return true;
  }
  int64_t* one = station(row[FIRST_CLASS] + flow);
  uint64_t* of_class = words(one[CLASS_WORDS]);
  if (one[MEMBERS] > 0) {
    bring_class(one);
  } else {
    put(of_class + VIRTUAL, Three());
    one[SEEN_ROOT] = NONE;
  }
  one[SINCE] = now();
  strand(number)[strand::JOINED] = ++row[WORKING];
  ++one[MEMBERS];
  add_to(words(row[WORDS_AT]) + DRAWN, three_at(of_class + DRAWS));
  put(target(number), three_at(of_class + VIRTUAL) + times(two_at(of_class + SERVED_ALONE), static_cast<uint64_t>(time)));
  strand(number)[strand::LEFT_CHILD] = strand(number)[strand::RIGHT_CHILD] = NONE;
  one[ROOT] = merged_strands(of_, one[ROOT], number);
  row[DEPTH] += one[OWN_DEPTH];
  return settle(row);
}

void Run::bring_class(int64_t* one) {
  uint64_t* of_class = words(one[CLASS_WORDS]);
  add_to(of_class + VIRTUAL, times(two_at(of_class + PACE), static_cast<uint64_t>(now() - one[SINCE])));
  one[SINCE] = now();
}

// List the works of a line that end now, and begin the next; how many, -1 if an end is beyond an int64.
int64_t Run::leave_line(int64_t* row) {
  int64_t* ended = list(counts::ENDED_LIST);
  int64_t many = 0;
  while (row[HEAD] >= 0 && static_cast<int64_t>(target(row[HEAD])[1]) <= now()) {
    ended[many++] = end_server(row);
    const int64_t following = row[LINE_FIRST];
    if (following < 0) {
      ++row[FREE];
      continue;
    }
    row[LINE_FIRST] = strand(following)[strand::FOLLOWING];
    if (row[LINE_FIRST] < 0) row[TAIL] = NONE;
    if (strand(following)[strand::WORKS] > LARGEST - now()) return -1;
    begin_server(row, following, strand(following)[strand::WORKS]);
  }
  row[DUE] = row[HEAD] >= 0 ? static_cast<int64_t>(target(row[HEAD])[1]) : LARGEST;
  return many;
}

// List the members that end now, in the order in which they came; how many, -1 if an end is beyond an int64.
int64_t Run::leave(int64_t at) {
  int64_t* row = station(at);
  bring_station(row);
  if (row[KIND] == FIFO) return leave_line(row);
  if (row[KIND] == ARMS) return leave_arms(row);
  int64_t* ended = list(counts::ENDED_LIST);
  int64_t many = 0;
  for (int64_t number = row[FIRST_CLASS]; number < row[LAST_CLASS]; ++number) {
    int64_t* one = station(number);
    if (one[MEMBERS] == 0 || one[CLASS_DUE] != now()) continue;
    bring_class(one);
    const uint64_t* of_class = words(one[CLASS_WORDS]);
    const Three reached = three_at(of_class + VIRTUAL);
    const int64_t before = many;
    for (; one[ROOT] >= 0 && !(reached < three_at(target(one[ROOT]))); one[ROOT] = without_root(of_, one[ROOT])) {
      ended[many++] = one[ROOT];
    }
    one[SEEN_ROOT] = NONE;
    const int64_t left = many - before;
    one[MEMBERS] -= left;
    row[THERE] -= left;
    row[DEPTH] -= left * one[OWN_DEPTH];
    take_from(words(row[WORDS_AT]) + DRAWN, times(three_at(of_class + DRAWS), static_cast<Two>(left)));
  }
  for (int64_t place = 1; place < many; ++place) {
    const int64_t number = ended[place];
    int64_t to = place;
    for (; to > 0 && strand(ended[to - 1])[strand::JOINED] > strand(number)[strand::JOINED]; --to) ended[to] = ended[to - 1];
    ended[to] = number;
  }
  return settle(row) ? many : -1;
}

// Bring the classes of a crowd to its present size.
void Run::swell(int64_t* row) {
  Three drawn;
  for (int64_t number = row[FIRST_CLASS]; number < row[LAST_CLASS]; ++number) {
    const int64_t* one = station(number);
    if (one[MEMBERS] == 0) continue;
    uint64_t* of_class = words(one[CLASS_WORDS]);
    if (one[CROWD] >= 0) {
      const uint64_t* of_crowd = words(one[CROWD] + row[DEPTH]);
      put(of_class + ALONE, two_at(of_crowd));
      put(of_class + WEIGHT, two_at(of_crowd + 2));
      put(of_class + DRAWS, times(two_at(of_crowd), two_at(of_crowd + 2)));
    }
    drawn += times(three_at(of_class + DRAWS), static_cast<Two>(one[MEMBERS]));
  }
  put(words(row[WORDS_AT]) + DRAWN, drawn);
}

// List a class as the one of `place` whose pace still rises, by its pace alone.
void Run::list_rising(int64_t place, int64_t number) {
  int64_t* rising = list(counts::RISING);
  const auto alone = [&](int64_t at) { return two_at(words(station(at)[CLASS_WORDS]) + ALONE); };
  for (; place > 0 && alone(number) < alone(rising[place - 1]); --place) rising[place] = rising[place - 1];
  rising[place] = number;
}

// A class rises no further: what it draws is taken off its capacities. False if an end is beyond an int64.
bool Run::stop(int64_t* row, int64_t* one, Two pace) {
  for (int64_t at = 0; at < row[SERVERS]; ++at) {
    const Three drawn = times(two_at(words(one[SHARES] + at)), static_cast<uint64_t>(one[MEMBERS]));
    uint64_t* capacity = words(row[FREE] + at);
    take_from(capacity + tied::LOAD, drawn);
    take_from(capacity + tied::LEFT, times(drawn, pace));
  }
  return turn(row, one, pace);
}

// Paces of the classes of tied capacities, as in `hwsim.engine.fair.fill`, and ends; false if one is beyond an int64.
bool Run::fill(int64_t* row) {
  int64_t* rising = list(counts::RISING);
  const int64_t capacities = row[SERVERS];
  const auto capacity = [&](int64_t at) { return words(row[FREE] + at); };
  const auto level_of = [&](int64_t at) {
    const Three load = three_at(capacity(at) + tied::LOAD);
    return load.is_zero() ? ~static_cast<Two>(0) : divide(three_at(capacity(at) + tied::LEFT), load);
  };
  for (int64_t at = 0; at < capacities; ++at) {
    put(capacity(at) + tied::LEFT, WHOLE);
    put(capacity(at) + tied::LOAD, Three());
  }
  int64_t many = 0;
  for (int64_t number = row[FIRST_CLASS]; number < row[LAST_CLASS]; ++number) {
    const int64_t* one = station(number);
    if (one[MEMBERS] == 0) continue;
    for (int64_t at = 0; at < capacities; ++at) {
      add_to(capacity(at) + tied::LOAD, times(two_at(words(one[SHARES] + at)), static_cast<uint64_t>(one[MEMBERS])));
    }
    list_rising(many++, number);
  }
  while (many > 0) {
    Two level = ~static_cast<Two>(0);
    for (int64_t at = 0; at < capacities; ++at) level = level_of(at) < level ? level_of(at) : level;
    int64_t* first = station(rising[0]);
    const Two alone = two_at(words(first[CLASS_WORDS]) + ALONE);
    if (alone <= level) {
      --many;
      for (int64_t place = 0; place < many; ++place) rising[place] = rising[place + 1];
      if (!stop(row, first, alone)) return false;
      continue;
    }
    for (int64_t at = 0; at < capacities; ++at) {
      const bool has_load = !three_at(capacity(at) + tied::LOAD).is_zero();
      capacity(at)[tied::IS_FULL] = has_load && level_of(at) <= level ? 1 : 0;
    }
    int64_t kept = 0;
    for (int64_t place = 0; place < many; ++place) {
      int64_t* one = station(rising[place]);
      bool is_held = false;
      for (int64_t at = 0; at < capacities; ++at) {
        is_held = is_held || (capacity(at)[tied::IS_FULL] == 1 && two_at(words(one[SHARES] + at)) != 0);
      }
      if (!is_held) {
        rising[kept++] = rising[place];
      } else if (!stop(row, one, level)) {
        return false;
      }
    }
    many = kept;
  }
  return true;
}

// Paces and ends, after members have come or gone; false if an end is beyond an int64.
bool Run::settle(int64_t* row) {
  row[DUE] = LARGEST;
  if (row[KIND] == TIED) return fill(row);
  if (row[CROWDED] > 0) swell(row);
  uint64_t* sums = words(row[WORDS_AT]);
  if (WHOLE < three_at(sums + DRAWN)) return share(row);
  put(sums + USED, three_at(sums + DRAWN));
  for (int64_t number = row[FIRST_CLASS]; number < row[LAST_CLASS]; ++number) {
    int64_t* one = station(number);
    if (one[MEMBERS] > 0 && !turn(row, one, two_at(words(one[CLASS_WORDS]) + ALONE))) return false;
  }
  return true;
}

// Paces of the classes of a station whose members would draw more than there is.
bool Run::share(int64_t* row) {
  uint64_t* sums = words(row[WORDS_AT]);
  put(sums + USED, WHOLE);
  Three left = WHOLE, load;
  const auto drawn = [&](const int64_t* one) {
    return times(two_at(words(one[CLASS_WORDS]) + WEIGHT), static_cast<uint64_t>(one[MEMBERS]));
  };
  int64_t rising = 0;
  for (int64_t number = row[FIRST_CLASS]; number < row[LAST_CLASS]; ++number) {
    if (station(number)[MEMBERS] == 0) continue;
    load += drawn(station(number));
    list_rising(rising++, number);
  }
  Two level = divide(left, load);
  for (int64_t place = 0; place < rising; ++place) {
    int64_t* one = station(list(counts::RISING)[place]);
    const Two alone = two_at(words(one[CLASS_WORDS]) + ALONE);
    Two pace = level;
    if (alone <= level) {
      pace = alone;
      left -= times(drawn(one), pace);
      load -= drawn(one);
      if (!load.is_zero()) level = divide(left, load);
    }
    const bool is_only = row[LAST_CLASS] - row[FIRST_CLASS] == 1 && row[CROWDED] == 0;
    if (is_only) put(sums + USED, times(drawn(one), pace));  // what is rounded off is not used
    if (!turn(row, one, pace)) return false;
  }
  return true;
}

// Another pace of a class, and when its first member then ends; false if that is beyond an int64.
bool Run::turn(int64_t* row, int64_t* one, Two pace) {
  uint64_t* of_class = words(one[CLASS_WORDS]);
  if (one[SEEN_ROOT] != one[ROOT] || pace != two_at(of_class + PACE)) {
    one[SEEN_ROOT] = one[ROOT];
    bring_class(one);
    put(of_class + PACE, pace);
    const Three reached = three_at(of_class + VIRTUAL), wanted = three_at(target(one[ROOT]));
    if (pace == 0) {
      one[CLASS_DUE] = LARGEST;
    } else if (!(reached < wanted)) {
      one[CLASS_DUE] = now();  // it has received its all within this femtosecond
    } else {
      const Three left = wanted - reached;
      const Two time = divide(left, Three(pace));
      if (time >= static_cast<Two>(LARGEST - now())) return false;
      one[CLASS_DUE] = now() + static_cast<int64_t>(time) + (times(pace, static_cast<uint64_t>(time)) < left);
    }
  }
  if (one[CLASS_DUE] < row[DUE]) row[DUE] = one[CLASS_DUE];
  return true;
}

}  // namespace hwsim::services
