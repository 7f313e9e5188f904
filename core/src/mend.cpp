// Mending the paces: `hwsim.engine.fluid.Fluid._mend`, which says how it works. `attempt` is tried before.
#include "flows.h"

namespace hwsim {

// The pace of a class before this instant.
Two Flows::pace_of(const Class& one) const {
  if (one.bound >= 0) {
    return capacities_[one.bound].stamped == tick_ ? capacities_[one.bound].before : levels_[one.bound];
  }
  return one.bound == FREE ? one.alone : 0;
}

// A capacity differs from the last solution from this level on; `begun`: there are lower ones.
void Flows::fill_anew(int32_t which, bool begun, Two level, int64_t instant) {
  Capacity& capacity = capacities_[which];
  capacity.seen = tick_;
  stamp(which, instant);
  capacity.is_full = false;
  refilled_.push_back(which);
  Three left = capacity.room < capacity.held ? Three() : capacity.room - capacity.held;
  Two load = 0;
  for (int32_t place = capacity.first_user; place < capacity.first_user + capacity.users; ++place) {
    const int32_t number = users_[place].number;
    Class& one = classes_[number];
    const Two weight = weight_of(place, one.members);
    if (one.state == 2 * tick_) {
      load += weight;
      continue;
    }
    Two pace = one.found;
    if (one.state != 2 * tick_ + 1) {
      pace = pace_of(one);
      const bool is_free = one.bound < 0;
      if (!begun || level < pace || (level == pace && !is_free)) {
        one.state = 2 * tick_;
        ++rising_;
        queue_.push({pace, is_free ? Event::at_alone : Event::expected, number});
        load += weight;
        continue;
      }
    }
    left -= times(pace, weight);
  }
  sums_[which].left = left;
  sums_[which].load = load;
  if (capacity.is_short && load != 0) queue_.push({divide(left, Three(load)), Event::full_at, which});
}

// List the classes held back by the capacities that fill at this level, this one and what else the queue has.
void Flows::fill_at(int32_t which, Two level) {
  for (;;) {
    const Sums& sums = sums_[which];
    if (sums.load != 0) {
      const Two filled_at = divide(sums.left, Three(sums.load));
      if (level < filled_at) {
        queue_.push({filled_at, Event::full_at, which});
      } else {
        Capacity& capacity = capacities_[which];
        capacity.is_full = true;
        set_level(which, level);
        for (int32_t place = capacity.first_user; place < capacity.first_user + capacity.users; ++place) {
          Class& one = classes_[users_[place].number];
          if (one.state != 2 * tick_) continue;
          one.state = 2 * tick_ + 1;
          stopping_.push_back(users_[place].number);
        }
      }
    }
    if (queue_.is_empty() || queue_.least().what != Event::full_at || level < queue_.least().level) return;
    which = queue_.pop().number;
  }
}

// A class has its pace; the capacities that are to be filled anew for that are listed.
void Flows::stop(int32_t number, Two level) {
  Class& one = classes_[number];
  --rising_;
  one.state = 2 * tick_ + 1;
  one.found = level;
  const bool differs = one.is_touched || pace_of(one) != level;
  for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
    const int32_t which = pairs_[pair].capacity;
    if (!capacities_[which].is_short) continue;
    if (capacities_[which].seen == tick_) {
      const Two weight = weights_[pairs_[pair].weight] * static_cast<uint64_t>(one.members);
      sums_[which].load -= weight;
      sums_[which].left -= times(level, weight);
    } else if (differs) {
      reached_.push_back(which);
    }
  }
}

// Find the paces of what the reached capacities reach. `begun`: nothing differs up to the level.
void Flows::mend(bool begun, Two level, int64_t instant) {
  queue_.clear();
  rising_ = 0;
  for (const int32_t number : touched_) {
    Class& one = classes_[number];
    if (one.members == 0) continue;
    one.state = 2 * tick_;
    ++rising_;
    queue_.push({one.alone, Event::at_alone, number});
  }
  for (;;) {
    for (const int32_t which : reached_) {
      if (capacities_[which].seen != tick_) fill_anew(which, begun, level, instant);
    }
    reached_.clear();
    if (rising_ == 0) return;
    begun = true;
    const Event event = queue_.pop();
    level = event.level;
    stopping_.clear();
    if (event.what == Event::full_at) {
      fill_at(event.number, level);
    } else {
      const Class& one = classes_[event.number];
      if (one.state != 2 * tick_) continue;
      if (event.what == Event::expected) {
        bool is_held = false;
        for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
          const int32_t which = pairs_[pair].capacity;
          if (!capacities_[which].is_short) continue;
          is_held = is_held || (capacities_[which].is_full && levels_[which] == level);
          reached_.push_back(which);
        }
        if (!is_held) {
          queue_.push({one.alone, Event::at_alone, event.number});
          continue;
        }
        reached_.clear();
      }
      stopping_.push_back(event.number);
    }
    for (const int32_t number : stopping_) {
      stop(number, level);
      mended_.push_back(number);
    }
  }
}

// As `mend`, and all that is known of the levels and stops is brought up to that.
void Flows::mend_all(bool begun, Two level, int64_t instant) {
  for (const int32_t which : stamped_) {
    const Two before = capacities_[which].before;
    set_level(which, before);
    capacities_[which].is_full = before != NOWHERE;
  }
  mend(begun, level, instant);
  for (const int32_t which : refilled_) {
    if (!capacities_[which].is_full) set_level(which, NOWHERE);
  }
  if (!tries_) return;
  ++round_;
  for (const int32_t number : mended_) sort_class(number);
  for (const int32_t number : moved_) sort_class(number);
  for (const int32_t which : scarce_) sort_users(which);
  for (const int32_t which : refilled_) add_up(which);
  for (const int32_t which : spoilt_) {
    if (capacities_[which].seen != tick_) add_up(which);
  }
}

}  // namespace hwsim
