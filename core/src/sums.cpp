// Sums of the capacities that are short: what the classes leave that stop below its level, and what the others draw at pace 1.
#include "flows.h"

namespace hwsim {

// A capacity is full at this level; NOWHERE: it is not.
void Flows::set_level(int32_t which, Two level) {
  levels_[which] = level;
  tops_[which] = rounded(Three(level));
}

// Keep the level before this instant, and bring the group there.
void Flows::stamp(int32_t which, int64_t instant) {
  Capacity& capacity = capacities_[which];
  if (capacity.stamped == tick_) return;
  capacity.stamped = tick_;
  bring(which, instant);
  capacity.before = levels_[which];
  stamped_.push_back(which);
}

// Its sums differ: its level is to be found again.
void Flows::wait(int32_t which) {
  Capacity& capacity = capacities_[which];
  if (!capacity.is_short || sums_[which].waiting == tick_) return;
  sums_[which].waiting = tick_;
  list_once(capacity, &Capacity::spoilt, which, spoilt_);
  waiting_.push({tops_[which], which});
}

// What holds a class back as the levels are, and at which pace.
int32_t Flows::lowest(const Class& one, Two& level) const {
  int32_t holder = FREE;
  level = one.alone;
  for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    const Two at = levels_[which];
    if (at < level || (holder >= 0 && which < holder && at == level)) {
      holder = which;
      level = at;
    }
  }
  return holder;
}

// Whether a class has not been asked for in this round.
bool Flows::is_new(Class& one) {
  if (one.asked == round_) return false;
  one.asked = round_;
  return true;
}

// Whether a level is above a pace by more than the margin of roundings.
bool Flows::is_clear(Two low, Two high) const { return Three(low) + Three(margin_) < Three(high); }

// Say of each capacity of a class, in an accepted solution, whether it rises there; and what holds it.
void Flows::sort_user(int32_t number) {
  Class& one = classes_[number];
  Two level;
  const int32_t holder = one.holder = lowest(one, level);
  int32_t rising = 0;
  for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    Kind kind = holder >= 0 ? Kind::below : Kind::alone_below;
    if (holder >= 0 && capacities_[which].is_full && levels_[which] == level) {
      kind = Kind::rises;
      ++rising;
    }
    turn(pair, kind);
    users_[pairs_[pair].user].many = one.members;
  }
  if (rising > 1) tie(number);
  look_across(number);
}

// Count a class that is new, or whose members are more or fewer, in the sums of its capacities.
void Flows::count_class(int32_t number) {
  const Class& one = classes_[number];
  const int32_t first = one.first_pair, last = one.last_pair;
  if (first == last) return;
  if (pairs_[first].user < 0) {
    if (one.members == 0) return;
    enter(number);
    sort_user(number);
    for (int32_t pair = first; pair < last; ++pair) {
      Sums& sums = sums_[pairs_[pair].capacity];
      users_[pairs_[pair].user].many = 0;
      if (one.alone < sums.least) sums.least = one.alone;
    }
  }
  const Two pace = counted_pace(one);
  for (int32_t pair = first; pair < last; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    User& user = users_[pairs_[pair].user];
    const int32_t change = one.members - user.many;
    if (change == 0) continue;
    user.many = one.members;
    Sums& sums = sums_[which];
    const Two weight = weights_[user.weight] * static_cast<uint64_t>(change > 0 ? change : -change);
    if (user.kind == Kind::rises || user.kind == Kind::ties) {
      sums.load = change > 0 ? sums.load + weight : sums.load - weight;
    } else {
      sums.left = change > 0 ? sums.left - times(pace, weight) : sums.left + times(pace, weight);
    }
    wait(which);
  }
  if (one.members == 0) {
    drop(number);
  } else {
    look_across(number);
  }
}

// Say of all users of a capacity whether they rise there.
void Flows::sort_users(int32_t which) {
  int32_t place = capacities_[which].first_user;
  const int32_t end = place + capacities_[which].users;
  while (place < end) {
    const int32_t number = users_[place].number;
    if (is_new(classes_[number])) sort_user(number);
    if (users_[place].number == number) ++place;  // else another has come here that was not looked at yet, or was
  }
}

// Say of a class where it rises.
void Flows::sort_class(int32_t number) {
  Class& one = classes_[number];
  if (one.members > 0 && is_new(one)) sort_user(number);
}

// The sums of a capacity in an accepted solution.
void Flows::add_up(int32_t which) {
  const Capacity& capacity = capacities_[which];
  Sums& sums = sums_[which];
  sums.left = capacity.held < capacity.room ? capacity.room - capacity.held : Three();
  sums.load = 0;
  sums.least = NOWHERE;
  for (int32_t place = capacity.first_user; place < capacity.first_user + capacity.users; ++place) {
    const User& user = users_[place];
    const Class& one = classes_[user.number];
    const Two weight = taken_by(user);
    if (one.alone < sums.least) sums.least = one.alone;
    if (user.kind == Kind::rises || user.kind == Kind::ties) {
      sums.load += weight;
    } else {
      sums.left -= times(counted_pace(one), weight);
    }
  }
}

}  // namespace hwsim
