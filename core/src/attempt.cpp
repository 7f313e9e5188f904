// Mending the levels where little changes: the last solution's stops are tried again, and those that contradict are moved.
//
// Every capacity keeps what the classes leave that stop below its level, and what the others draw. While no class stops
// elsewhere, one pass over the capacities that differ, from the lowest level up, gives all new levels.
//
// When a level has risen, the classes that rise to it are compared with their other levels; when it has fallen, the classes that
// stop below it. So each class is compared after the last change of any of its levels. A class that stops at a level that is
// not its lowest is moved.
//
// A solution is accepted if each class stops at its lowest level and no capacity of it fills earlier than its level says
// (`fills_too`). Filling from zero finds that solution: by induction from the lowest level up. Levels that are clearly higher
// (by the margins) need no such question. If a few rounds do not settle all classes, the attempt is refused, and `mend` mends.
#include "flows.h"

namespace hwsim {

namespace {

constexpr int ROUNDS = 12;
constexpr double SLACK = 0x1p-48;  // of a rounded level, what roundings make of it at most

bool rises(Kind kind) { return kind == Kind::rises || kind == Kind::ties; }

}  // namespace

// Take a change of level off what is left where the classes that the capacity holds back stop below.
void Flows::spread(int32_t which, Three change) {
  const int32_t begin = capacities_[which].first_user, end = begin + capacities_[which].risers;
  int32_t weight_number = NONE;
  Three product;
  for (int32_t place = begin; place < end; ++place) {
    const Other other = others_[place];
    if (other.number >= 0) {
      if (other.weight != weight_number) {
        weight_number = other.weight;
        product = times(change, weights_[weight_number]);
      }
      Sums& sums = sums_[other.number];
      sums.left -= product;
      if (sums.waiting != tick_) wait(other.number);
    } else if (other.number != only) {
      const Class& one = classes_[users_[place].number];
      if (one.holder != which) continue;
      for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
        const User& user = users_[pairs_[pair].user];
        if (user.kind != Kind::below) continue;
        sums_[pairs_[pair].capacity].left -= times(change, taken_by(user));
        wait(pairs_[pair].capacity);
      }
    }
  }
}

// Find the levels of all that wait; false if more than the budget would have to be found.
bool Flows::pass(int64_t instant, int64_t& budget) {
  while (!waiting_.is_empty()) {
    const int32_t which = waiting_.pop().number;
    sums_[which].waiting = 0;
    if (--budget < 0) return false;
    const Two level = filled(which), was = levels_[which];
    if (level != was) {
      stamp(which, instant);
      set_level(which, level);
      capacities_[which].is_full = level != NOWHERE;
      spread(which, Three(level) - Three(was));
    }
    look(which, was, level);
  }
  return true;
}

// Look at the classes of a capacity that may stop elsewhere, or that its level is near; move what clearly does.
void Flows::look(int32_t which, Two was, Two level) {
  suspects_.clear();
  suspect_above(which, level, is_clear(level, was));
  if (level == NOWHERE ? is_nearly_full(which) : !is_clear(was, level)) suspect_below(which, level);
  for (const int32_t number : suspects_) {
    if (is_off(classes_[number])) {
      move(number);
    } else if (is_new(classes_[number])) {
      asked_.push_back(number);
    }
  }
}

// List the classes that rise at a capacity unless their other levels are clearly higher, or it fell below them.
void Flows::suspect_above(int32_t which, Two level, bool fell) {
  const double limit = rounded(Three(level) + Three(margin_)) * (1.0 + SLACK);
  const bool is_below_alone = level < sums_[which].least;
  const int32_t begin = capacities_[which].first_user, end = begin + capacities_[which].risers;
  for (int32_t place = begin; place < end; ++place) {
    const int32_t opposite = others_[place].number;
    if (fell) {
      if (opposite != tied) continue;
    } else if (is_below_alone) {
      if (opposite == only || (opposite >= 0 && tops_[opposite] > limit)) continue;
      if (opposite == several) {
        const Class& one = classes_[users_[place].number];
        bool is_near = false;
        for (int32_t pair = one.first_pair; pair < one.last_pair && !is_near; ++pair) {
          is_near = pairs_[pair].capacity != which && tops_[pairs_[pair].capacity] <= limit;
        }
        if (!is_near) continue;
      }
    }
    suspects_.push_back(users_[place].number);
  }
}

// List the classes that stop below the level of a capacity, unless that is clearly higher.
void Flows::suspect_below(int32_t which, Two level) {
  double limit = 0.0;  // at NOWHERE: all are near that are held back
  if (margin_ < level && level != NOWHERE) limit = rounded(Three(level - margin_)) * (1.0 - SLACK);
  const Capacity& capacity = capacities_[which];
  for (int32_t place = capacity.first_user + capacity.risers; place < capacity.first_user + capacity.users; ++place) {
    const int32_t opposite = others_[place].number, number = users_[place].number;
    if (opposite >= 0 ? tops_[opposite] < limit : !(level < classes_[number].alone)) continue;
    suspects_.push_back(number);
  }
}

// The highest pace of the classes that others hold back; 0: there are none.
Two Flows::highest_below(int32_t which) const {
  const Capacity& capacity = capacities_[which];
  Two highest = 0;
  for (int32_t place = capacity.first_user + capacity.risers; place < capacity.first_user + capacity.users; ++place) {
    const Two pace = counted_pace(classes_[users_[place].number]);
    if (users_[place].kind == Kind::below && highest < pace) highest = pace;
  }
  return highest;
}

// The level at which a capacity is full with what its classes draw as they are counted; NOWHERE: it is not.
Two Flows::filled(int32_t which) const {
  Three left = sums_[which].left;
  Two load = sums_[which].load;
  if (!left.is_negative()) {
    if (load != 0) return divide(left, Three(load));
    if (!is_nearly_full(which)) return NOWHERE;
    const Two highest = highest_below(which);
    return highest != 0 && fills_too(which, highest) ? highest : NOWHERE;
  }
  const Capacity& capacity = capacities_[which];
  const int32_t first = capacity.first_user + capacity.risers, end = capacity.first_user + capacity.users;
  Two level = 0, under = NOWHERE;
  for (;;) {  // of those that stop below, the highest rise instead, until the others stop below
    Two highest = 0;
    for (int32_t place = first; place < end; ++place) {
      const Two pace = counted_pace(classes_[users_[place].number]);
      if (pace < under && highest < pace) highest = pace;
    }
    if (highest == 0 || (load != 0 && !left.is_negative() && highest <= level)) return level;
    for (int32_t place = first; place < end; ++place) {
      if (counted_pace(classes_[users_[place].number]) != highest) continue;
      const Two weight = taken_by(users_[place]);
      left += times(highest, weight);
      load += weight;
    }
    under = highest;
    level = left.is_negative() ? 0 : divide(left, Three(load));
  }
}

// Whether a class is not counted where the levels say that it stops; one that rises at several is not asked yet.
bool Flows::is_off(const Class& one) const {
  Two level;
  const int32_t holder = lowest(one, level);
  bool off = false;
  for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    const Kind kind = users_[pairs_[pair].user].kind;
    if (!capacities_[which].is_short) continue;
    if (kind == Kind::ties) return false;
    const Kind expected = holder < 0 ? Kind::alone_below : levels_[which] == level ? Kind::rises : Kind::below;
    off = off || kind != expected;
  }
  return off;
}

// Whether a class stops where the levels say, in a solution that filling finds; if not, it is moved.
bool Flows::is_settled(int32_t number) {
  Class& one = classes_[number];
  Two level;
  const int32_t holder = lowest(one, level);
  for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    const Kind kind = users_[pairs_[pair].user].kind;
    if (!capacities_[which].is_short) continue;
    const bool is_right = holder >= 0 && levels_[which] == level ? rises(kind)
                                                                 : kind == (holder >= 0 ? Kind::below : Kind::alone_below);
    if (!is_right) {
      move(number);
      return false;
    }
  }
  if (holder < 0) return true;
  if (one.holder != holder) {  // of several at one level the first by number
    one.holder = holder;
    look_across(number);
    note_move(number);
  }
  for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    const Two at = levels_[which];
    if (!capacities_[which].is_short || at == level) continue;
    if (!(at == NOWHERE ? is_nearly_full(which) : !is_clear(level, at))) continue;
    if (!fills_too(which, level)) continue;
    const Two weight = taken_by(users_[pairs_[pair].user]);
    sums_[which].left += times(level, weight);
    sums_[which].load += weight;
    turn(pair, Kind::rises);
    tie(number);
    look_across(number);
    wait(which);
    note_move(number);
    return false;
  }
  return true;
}

// Whether a capacity is full at this level already, if all classes rise there that do not stop below it.
bool Flows::fills_too(int32_t which, Two level) const {
  const Capacity& capacity = capacities_[which];
  const Two following = level + 1;
  Three drawn = capacity.held;
  for (int32_t place = capacity.first_user; place < capacity.first_user + capacity.users; ++place) {
    const User& user = users_[place];
    Two pace = following;
    if (!rises(user.kind)) {
      pace = counted_pace(classes_[user.number]);
      if (level < pace || (user.kind == Kind::below && level == pace)) pace = following;
    }
    drawn += times(pace, taken_by(user));
  }
  return capacity.room < drawn;
}

// Count a class where the levels say that it stops; `before`: the pace at which it is counted.
void Flows::recount(int32_t number, Two before) {
  Class& one = classes_[number];
  Two level;
  const int32_t holder = one.holder = lowest(one, level);
  const Kind below = holder >= 0 ? Kind::below : Kind::alone_below;
  int32_t rising = 0;
  for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    if (!capacities_[which].is_short) {
      turn(pair, below);
      continue;
    }
    const User& user = users_[pairs_[pair].user];
    Sums& sums = sums_[which];
    const Two weight = taken_by(user);
    const bool rose = rises(user.kind), now = holder >= 0 && levels_[which] == level;
    if (!rose) sums.left += times(before, weight);
    if (!now) sums.left -= times(level, weight);
    if (now && !rose) sums.load += weight;
    if (rose && !now) sums.load -= weight;
    wait(which);
    turn(pair, now ? Kind::rises : below);
    rising += now;
  }
  if (rising > 1) tie(number);
  look_across(number);
  note_move(number);
}

// The capacities of `slack_` are no longer short and hold no class back.
void Flows::release(int64_t instant) {
  for (const int32_t which : slack_) {
    stamp(which, instant);
    set_level(which, NOWHERE);
    capacities_[which].is_full = false;
  }
  for (const int32_t which : slack_) {
    const Capacity& capacity = capacities_[which];
    while (capacity.risers > 0) recount(users_[capacity.first_user + capacity.risers - 1].number, capacity.before);
  }
}

// Whether the levels could be found this way; the touched classes are counted in the sums, and what they move is noted.
bool Flows::attempt(int64_t instant) {
  for (const int32_t number : touched_) {
    if (classes_[number].members > 0) note_move(number);
  }
  auto budget = static_cast<int64_t>(8 * levels_.size());
  asked_.clear();
  for (int round = 0; round < ROUNDS; ++round) {
    if (!pass(instant, budget)) return false;
    for (const int32_t number : moved_) {  // what was moved, against levels that have not changed since
      if (is_new(classes_[number])) asked_.push_back(number);
    }
    ++round_;
    bool settled = true;
    for (const int32_t number : asked_) settled = is_settled(number) && settled;
    if (settled) return true;
    asked_.clear();
  }
  return false;
}

}  // namespace hwsim
