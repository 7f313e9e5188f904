// What the changes of an instant make of paces, groups and ends.
#include "flows.h"

#include <algorithm>
#include <utility>

namespace hwsim {

namespace {

constexpr size_t FEW = 48;  // classes touched at one instant whose last stops are tried

}  // namespace

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
  for (Numbers* list : {&reached_, &slack_, &mended_, &changed_, &refilled_, &stamped_, &spoilt_, &moved_, &marked_, &scarce_}) {
    list->clear();
  }
  waiting_.clear();
  ++tick_;
  ++round_;
  bool solved = false;
  Two level = NOWHERE;  // of the touched classes, the lowest pace
  for (const int32_t number : touched_) {
    const Class& one = classes_[number];
    const Two pace = pace_of(one);
    if (pace < level) level = pace;
    for (int32_t at = one.first_draw; at < one.last_draw; ++at) {
      const int32_t which = draws_[at].capacity;
      Capacity& capacity = capacities_[which];
      const bool is_short = full_ < capacity.drawn;
      if (is_short || capacity.is_short) {
        reached_.push_back(which);
        solved = solved || is_short;
        if (!is_short) {
          slack_.push_back(which);
        } else if (!capacity.is_short) {
          scarce_.push_back(which);
        }
      }
      capacity.is_short = is_short;
    }
  }
  for (const int32_t number : touched_) count_class(number);
  if (!reached_.empty()) {
    solves += solved;
    const bool is_tried = tries_ && scarce_.empty() && touched_.size() <= FEW;
    if (is_tried) release(instant);
    if (!(is_tried && attempt(instant))) mend_all(!has_more_, level, instant);
  }
  if (!take_over(instant)) return false;
  for (const int32_t number : touched_) classes_[number].is_touched = false;
  touched_.clear();
  has_more_ = false;
  return true;
}

// Whether what holds a class back hardly does.
bool Flows::is_nearly_free(const Class& one) const {
  return one.bound >= 0 && !(levels_[one.bound] < one.alone - (one.alone >> nearly_));
}

void Flows::note_bound(int32_t number, int64_t instant) {
  Class& one = classes_[number];
  one.is_nearly_free = is_nearly_free(one);
  notes.bound_times.push(instant);
  notes.bound_classes.push(number);
  notes.bounds.push(one.is_nearly_free ? NEARLY - one.bound : one.bound);
}

// Note which classes a capacity holds back nearly at their pace alone, or no longer; highest: of its levels before and now.
void Flows::note_nearly(int32_t which, Two highest, int64_t instant) {
  const Two least = sums_[which].least;
  if (highest < least - (least >> nearly_)) return;
  const Capacity& capacity = capacities_[which];
  for (int32_t place = capacity.first_user; place < capacity.first_user + capacity.users; ++place) {
    const Class& one = classes_[users_[place].number];
    if (one.bound == which && one.is_nearly_free != is_nearly_free(one)) note_bound(users_[place].number, instant);
  }
}

// Note what the last settling changed.
void Flows::note(int64_t instant) {
  for (const int32_t number : changed_) {
    note_bound(number, instant);
    const int32_t bound = classes_[number].bound;
    meters.hold(number, bound, bound == NOBODY ? 0 : level_of(group_of(number)), instant);
  }
  for (const int32_t which : stamped_) {
    Capacity& capacity = capacities_[which];
    const Two level = levels_[which], before = capacity.noted;
    if (!capacity.is_full || level == before) continue;
    capacity.noted = level;
    meters.level(which, level, instant);
    note_nearly(which, before == NOWHERE ? level : std::max(level, before), instant);
    if (!keeps_levels_) continue;
    notes.level_times.push(instant);
    notes.filled.push(which);
    notes.levels.push(level);
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
