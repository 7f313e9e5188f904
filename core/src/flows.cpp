// Groups of classes: what they receive, who is in them, and who ends first.
#include "flows.h"

namespace hwsim {

namespace {

// Whether one key is lower: both may have wrapped, and are near each other.
bool comes_before(Three one, Three other) { return (one - other).is_negative(); }

}  // namespace

Flows::Flows(const Demands& given)
    : meters(given.ops, given.metered, given.classes, given.capacities),
      classes_(given.classes),
      capacities_(given.capacities),
      sums_(given.capacities),
      levels_(given.capacities, NOWHERE),
      tops_(given.capacities, rounded(Three(NOWHERE))),
      weights_(given.weights),
      amounts_(given.amounts),
      groups_(given.capacities + given.classes),
      unit_(two_at(given.unit)),
      parts_(given.capacities, WHOLE),
      nominals_(given.classes),
      margin_(two_at(given.margins)),
      margin_left_(three_at(given.margins + 2)),
      tries_(margin_ != 0),
      nearly_(given.nearly),
      keeps_levels_(given.keeps_levels != 0) {
  for (int64_t at = 0; at < given.weights; ++at) weights_[at] = two_at(given.weight_words + 2 * at);
  for (int64_t at = 0; at < given.amounts; ++at) {
    amounts_[at] = {three_at(given.amount_words + 6 * at), three_at(given.amount_words + 6 * at + 3)};
  }
  pairs_.reserve(given.first_pair[given.classes]);
  draws_.reserve(given.first_draw[given.classes]);
  for (int64_t number = 0; number < given.classes; ++number) {
    Class& one = classes_[number];
    one.alone = two_at(given.alone + 2 * number);
    one.first_pair = static_cast<int32_t>(given.first_pair[number]);
    one.last_pair = static_cast<int32_t>(given.first_pair[number + 1]);
    one.first_draw = static_cast<int32_t>(given.first_draw[number]);
    one.last_draw = static_cast<int32_t>(given.first_draw[number + 1]);
    for (int32_t pair = one.first_pair; pair < one.last_pair; ++pair) {
      pairs_.push_back({given.pair_capacity[pair], static_cast<int32_t>(number), NONE, given.pair_weight[pair]});
      ++capacities_[given.pair_capacity[pair]].first_user;
    }
    for (int32_t draw = one.first_draw; draw < one.last_draw; ++draw) {
      draws_.push_back({given.draw_capacity[draw], given.draw_amount[draw]});
    }
    nominals_[number] = {one.alone, static_cast<int32_t>(clocks_.size()), static_cast<int32_t>(given.first_clock[number + 1])};
    for (int32_t at = nominals_[number].first_clock; at < nominals_[number].last_clock; ++at) {
      const uint64_t* words = given.clock_words + 8 * at;
      followers_.emplace_back(static_cast<int32_t>(words[0]), static_cast<int32_t>(number));
      clocks_.push_back({followers_.back().first, static_cast<int32_t>(words[1]), words[2], two_at(words + 3), three_at(words + 5)});
    }
  }
  std::sort(followers_.begin(), followers_.end());
  int32_t begin = 0;
  for (Capacity& capacity : capacities_) {
    capacity.room = times(unit_, WHOLE);
    const int32_t users = capacity.first_user;
    capacity.first_user = begin;
    begin += users;
  }
  users_.resize(pairs_.size());
  others_.resize(pairs_.size());
}

// When the first member of a group ends; -1: not as things are.
void Flows::set_due(int32_t number, int64_t time) {
  int32_t place = groups_[number].due_place;
  groups_[number].due = time;
  if (time < 0) {
    if (place < 0) return;
    groups_[number].due_place = NONE;
    const int32_t last = due_heap_.back();
    due_heap_.pop_back();
    if (place == static_cast<int32_t>(due_heap_.size())) return;
    number = last;
    time = groups_[number].due;
  } else if (place < 0) {
    place = static_cast<int32_t>(due_heap_.size());
    due_heap_.push_back(number);
  }
  const auto put = [&](int32_t to, int32_t group) {
    due_heap_[to] = group;
    groups_[group].due_place = to;
  };
  for (; place > 0; place = (place - 1) / 2) {
    const int32_t above = due_heap_[(place - 1) / 2];
    if (groups_[above].due <= time) break;
    put(place, above);
  }
  const auto size = static_cast<int32_t>(due_heap_.size());
  for (;;) {
    int32_t below = 2 * place + 1;
    if (below >= size) break;
    if (below + 1 < size && groups_[due_heap_[below + 1]].due < groups_[due_heap_[below]].due) ++below;
    if (groups_[due_heap_[below]].due >= time) break;
    put(place, due_heap_[below]);
    place = below;
  }
  put(place, number);
}

// The group of an active class.
int32_t Flows::group_of(int32_t number) const {
  const int32_t bound = classes_[number].bound;
  return bound >= 0 ? bound : capacities() + number;
}

// The pace of its members.
Two Flows::level_of(int32_t group) const {
  return group < capacities() ? levels_[group] : classes_[group - capacities()].alone;
}

// A group's service, up to now.
void Flows::bring(int32_t group, int64_t instant) {
  Group& one = groups_[group];
  const int64_t passed = instant - one.since;
  if (passed == 0) return;
  one.since = instant;
  if (group < capacities() && !capacities_[group].is_full) return;
  one.service += times(level_of(group), static_cast<uint64_t>(passed));
}

// Service that one member of an active class has received since the class became active.
Three Flows::service(int32_t number, int64_t instant) {
  const Class& one = classes_[number];
  if (one.bound == NOBODY) return one.offset;
  const int32_t group = group_of(number);
  bring(group, instant);
  return groups_[group].service + one.offset;
}

// The service of its group at which the first member of a class ends.
Three Flows::key_of(const Class& one) const { return members_[one.root].tag - one.offset; }

// Find the class of a group that ends first.
void Flows::find_first(int32_t group) {
  Group& found = groups_[group];
  found.first = NONE;
  if (group >= capacities()) {
    const int32_t number = group - capacities();
    const Class& one = classes_[number];
    if (one.members > 0 && one.bound == FREE) {
      found.first = number;
      found.key = key_of(one);
    }
    return;
  }
  const Capacity& capacity = capacities_[group];
  const int32_t end = capacity.first_user + (tries_ ? capacity.risers : capacity.users);
  for (int32_t place = capacity.first_user; place < end; ++place) {
    const int32_t number = users_[place].number;
    const Class& one = classes_[number];
    if (one.bound != group || one.members == 0) continue;
    const Three key = key_of(one);
    if (found.first < 0 || comes_before(key, found.key)) {
      found.first = number;
      found.key = key;
    }
  }
}

// So many members more, or fewer.
void Flows::count(int32_t number, int64_t change) {
  Class& one = classes_[number];
  if (!one.is_touched) {
    one.is_touched = true;
    touched_.push_back(number);
  }
  one.members += static_cast<int32_t>(change);
  const auto many = static_cast<uint64_t>(change > 0 ? change : -change);
  for (int32_t at = one.first_draw; at < one.last_draw; ++at) {
    Capacity& capacity = capacities_[draws_[at].capacity];
    const Amount& amount = amounts_[draws_[at].amount];
    const Three drawn = times(amount.drawn, many), held = times(amount.held, many);
    has_more_ = has_more_ || !amount.held.is_zero();
    capacity.drawn = change > 0 ? capacity.drawn + drawn : capacity.drawn - drawn;
    capacity.held = change > 0 ? capacity.held + held : capacity.held - held;
  }
  const Two slower = nominals_[number].alone - one.alone;
  for (int32_t pair = one.first_pair; slower != 0 && pair < one.last_pair; ++pair) {
    const Three spared = times(slower, weights_[pairs_[pair].weight] * many);
    Capacity& capacity = capacities_[pairs_[pair].capacity];
    capacity.drawn = change > 0 ? capacity.drawn - spared : capacity.drawn + spared;
  }
}

// From now on this part of a capacity is there.
void Flows::change(int32_t which, uint64_t part) {
  const Three room = times(unit_, part);
  sums_[which].left += room - capacities_[which].room;
  capacities_[which].room = room;
  parts_[which] = part;
  has_more_ = true;
  resized_.push_back(which);
}

// A member that alone would take `time` starts to flow.
void Flows::join(int32_t number, int32_t op, int64_t time, int64_t instant) {
  Class& one = classes_[number];
  has_more_ = true;
  if (one.members == 0 && one.bound == NOBODY) one.offset = Three();
  const Member member{service(number, instant) + times(nominals_[number].alone, static_cast<uint64_t>(time)), NONE, NONE, op};
  int32_t place;
  if (free_.empty()) {
    place = static_cast<int32_t>(members_.size());
    members_.push_back(member);
  } else {
    place = free_.back();
    free_.pop_back();
    members_[place] = member;
  }
  one.root = merged(members_, one.root, place);
  if (meters.is_metered(op)) meters.begin(op, number, one.bound, one.bound == NOBODY ? 0 : level_of(group_of(number)), instant);
  count(number, 1);
}

// Members of the group that is due first leave, which have received all their service by now.
void Flows::leave(int64_t instant, Numbers& retired) {
  const int32_t group = due_heap_[0];
  Group& due = groups_[group];
  set_due(group, NONE);
  bring(group, instant);
  while (due.first >= 0 && !comes_before(due.service, due.key)) {
    const int32_t number = due.first;
    Class& one = classes_[number];
    const Three reached = due.service + one.offset;
    int64_t ended = 0;
    for (; one.root >= 0 && !(reached < members_[one.root].tag); ++ended) {
      const Member& member = members_[one.root];
      retired.push_back(member.op);
      if (meters.is_metered(member.op)) meters.end(member.op, number, instant);
      free_.push_back(one.root);
      one.root = merged(members_, member.left, member.right);
    }
    count(number, -ended);
    find_first(group);
  }
}

// A class whose group is another, or whose members are, may be the first of its group to end.
void Flows::arrive(int32_t number) {
  const Class& one = classes_[number];
  if (one.members == 0) return;
  const int32_t group = group_of(number);
  Group& found = groups_[group];
  if (found.first == SEARCH) return;
  const Three key = key_of(one);
  if (found.first < 0 || found.first == number || comes_before(key, found.key)) {
    found.first = number;
    found.key = key;
    mark(group);
  }
}

}  // namespace hwsim
