// What the changes of an instant make of paces, groups and ends.
#include "flows.h"

#include <algorithm>
#include <utility>

namespace hwsim {

namespace {

constexpr size_t FEW = 48;    // classes touched at one instant whose last stops are tried
constexpr int32_t STEP = 16;  // bits of a quotient at once: what is left of it stays in three words

}  // namespace

// The pace at which a clock lets a class run, rounded down: `hwsim.engine.fluid.Clock.pace`.
Two Flows::pace_at(const Clock& clock) const {
  const uint64_t part = parts_[clock.capacity];
  const Three whole = times(clock.rest, part) + clock.own;
  Three left = times(static_cast<Two>(clock.most), part);
  Two pace = 0;
  for (int32_t bits = clock.shift;; bits -= STEP) {
    const Two digit = divide(left, whole);
    pace += digit;
    if (bits <= 0) return pace;
    const int32_t step = std::min(bits, STEP);
    left = times(left - times(whole, digit), static_cast<Two>(1) << step);
    pace <<= step;
  }
}

// An active class runs alone as its clocks are now.
void Flows::follow(int32_t number, int64_t instant) {
  Class& one = classes_[number];
  Nominal& nominal = nominals_[number];
  if (nominal.first_clock == nominal.last_clock || one.members == 0) return;
  Two alone = nominal.alone;
  int32_t slowest = FREE;
  for (int32_t at = nominal.first_clock; at < nominal.last_clock; ++at) {
    const Two pace = pace_at(clocks_[at]);
    if (!(pace < alone)) continue;
    alone = pace;
    slowest = clocks_[at].capacity;
  }
  const bool is_same = alone == one.alone && (slowest == nominal.slowest || one.bound != FREE);
  nominal.slowest = slowest;
  if (is_same) return;
  if (one.bound == FREE) bring(capacities() + number, instant);
  const int64_t members = one.members;
  count(number, -members);
  one.alone = alone;
  count(number, members);
  slowed_.push_back(number);
}

// A class belongs to the group of what holds it back now.
void Flows::regroup(int32_t number, int64_t instant) {
  Class& one = classes_[number];
  const int32_t was = one.bound;
  int32_t bound = NOBODY;
  Two level;
  if (one.members > 0) bound = lowest(one, level);
  if (was != NOBODY) {
    const int32_t group = group_of(number);
    if (one.is_touched) mark(group);
    if (bound != was && groups_[group].first == number) {
      groups_[group].first = SEARCH;
      mark(group);
    }
  }
  if (bound == was) return;
  const Three received = service(number, instant);
  one.bound = bound;
  changed_.push_back(number);
  if (bound == NOBODY) return;
  const int32_t group = group_of(number);
  bring(group, instant);
  one.offset = received - groups_[group].service;
}

// Find when the first of a group ends; false if that is beyond an int64.
bool Flows::schedule(int32_t group, int64_t instant) {
  Group& one = groups_[group];
  if (one.first == SEARCH) find_first(group);
  const Two level = level_of(group);
  if (one.first < 0 || level == 0) {
    set_due(group, NONE);
    return true;
  }
  bring(group, instant);
  const Three left = one.key - one.service;
  const Two time = divide(left, Three(level));
  if (time >= static_cast<Two>(INT64_MAX - instant)) return false;
  int64_t end = instant + static_cast<int64_t>(time);
  if (times(level, static_cast<uint64_t>(time)) < left) ++end;
  if (end != one.due) set_due(group, end);
  return true;
}

// Groups as the new levels say, and when each ends first; false if that is beyond an int64.
bool Flows::take_over(int64_t instant) {
  for (const int32_t number : touched_) regroup(number, instant);
  for (const int32_t number : moved_) regroup(number, instant);
  for (const int32_t number : mended_) regroup(number, instant);
  for (const int32_t number : touched_) arrive(number);
  for (const int32_t number : changed_) arrive(number);
  for (const int32_t which : stamped_) {
    if (levels_[which] != capacities_[which].before) mark(which);
  }
  bool fits = true;
  for (const int32_t group : marked_) fits = schedule(group, instant) && fits;
  return fits;
}

// Mend the paces as far as this instant's changes reach; false if an end is beyond an int64.
//
// `changed_` then lists the classes that something else holds back than before, `stamped_` the capacities whose level may differ.
bool Flows::settle(int64_t instant) {
  for (Numbers* list : {&reached_, &slack_, &mended_, &changed_, &refilled_, &stamped_, &spoilt_, &moved_, &marked_, &scarce_,
                         &slowed_}) {
    list->clear();
  }
  waiting_.clear();
  ++tick_;
  ++round_;
  for (size_t at = 0; !clocks_.empty() && at < touched_.size(); ++at) follow(touched_[at], instant);
  for (const int32_t which : resized_) {
    auto place = std::lower_bound(followers_.begin(), followers_.end(), std::pair<int32_t, int32_t>(which, 0));
    for (; place != followers_.end() && place->first == which; ++place) follow(place->second, instant);
  }
  bool solved = false;
  Two level = NOWHERE;  // of the touched classes, the lowest pace
  const auto reach = [&](int32_t which) {
    Capacity& capacity = capacities_[which];
    const bool is_short = capacity.room < capacity.drawn;
    if (is_short || capacity.is_short) {
      reached_.push_back(which);
      solved = solved || is_short;
      if (!is_short) slack_.push_back(which);
      if (!capacity.is_short) scarce_.push_back(which);
    }
    capacity.is_short = is_short;
  };
  for (const int32_t number : touched_) {
    const Class& one = classes_[number];
    const Two pace = pace_of(one);
    if (pace < level) level = pace;
    for (int32_t at = one.first_draw; at < one.last_draw; ++at) reach(draws_[at].capacity);
  }
  for (const int32_t which : resized_) reach(which);
  for (const int32_t number : touched_) count_class(number);
  for (const int32_t which : resized_) wait(which);
  if (!reached_.empty()) {
    solves += solved;
    const bool is_tried = tries_ && scarce_.empty() && slowed_.empty() && touched_.size() <= FEW;
    if (is_tried) release(instant);
    if (!(is_tried && attempt(instant))) mend_all(!has_more_, level, instant);
  }
  if (!take_over(instant)) return false;
  for (const int32_t number : touched_) classes_[number].is_touched = false;
  touched_.clear();
  resized_.clear();
  has_more_ = false;
  return true;
}

// What the notes say of what holds a class back.
int32_t Flows::bound_to_note(int32_t number) const {
  const int32_t held = classes_[number].bound, slowest = nominals_[number].slowest;
  if (held == NOBODY) return NOBODY;
  const int32_t bound = held == FREE && slowest >= 0 ? capacities() + slowest : held;
  const Two alone = nominals_[number].alone;
  return bound >= 0 && !(level_of(group_of(number)) < alone - (alone >> nearly_)) ? NEARLY - bound : bound;
}

void Flows::note_bound(int32_t number, int64_t instant) {
  notes.bound_times.push(instant);
  notes.bound_classes.push(number);
  notes.bounds.push(classes_[number].noted = bound_to_note(number));
}

void Flows::note_level(int32_t group, Two level, int64_t instant) {
  notes.level_times.push(instant);
  notes.filled.push(group);
  notes.levels.push(level);
}

// Note which classes a capacity holds back nearly at their pace alone, or no longer; highest: of its levels before and now.
void Flows::note_nearly(int32_t which, Two highest, int64_t instant) {
  const Two least = sums_[which].least;
  if (highest < least - (least >> nearly_)) return;
  const Capacity& capacity = capacities_[which];
  for (int32_t place = capacity.first_user; place < capacity.first_user + capacity.users; ++place) {
    const Class& one = classes_[users_[place].number];
    if (one.bound == which && one.noted != bound_to_note(users_[place].number)) note_bound(users_[place].number, instant);
  }
}

// Note what the last settling changed.
void Flows::note(int64_t instant) {
  for (const int32_t number : changed_) {
    note_bound(number, instant);
    const int32_t bound = classes_[number].bound;
    meters.hold(number, bound, bound == NOBODY ? 0 : level_of(group_of(number)), instant);
  }
  for (const int32_t number : slowed_) {
    const Class& one = classes_[number];
    if (one.bound == FREE && one.noted != bound_to_note(number)) note_bound(number, instant);
    if (one.bound == FREE) meters.hold(number, FREE, one.alone, instant);
    if (keeps_levels_) note_level(capacities() + number, one.alone, instant);
  }
  for (const int32_t which : stamped_) {
    Capacity& capacity = capacities_[which];
    const Two level = levels_[which], before = capacity.noted;
    if (!capacity.is_full || level == before) continue;
    capacity.noted = level;
    meters.level(which, level, instant);
    note_nearly(which, before == NOWHERE ? level : std::max(level, before), instant);
    if (keeps_levels_) note_level(which, level, instant);
  }
}

// The run is over: only the notes are kept.
void Flows::finish() {
  Flows empty;
  std::swap(empty.notes, notes);
  std::swap(empty.meters, meters);
  std::swap(empty.solves, solves);
  *this = std::move(empty);
}

}  // namespace hwsim
