// The lists of users: of each capacity first the classes that rise there, then the other active ones.
#include "flows.h"

namespace hwsim {

// An active class becomes a user of its capacities.
void Flows::enter(int32_t number) {
  for (int32_t pair = classes_[number].first_pair; pair < classes_[number].last_pair; ++pair) {
    Capacity& capacity = capacities_[pairs_[pair].capacity];
    const int32_t place = capacity.first_user + capacity.users++;
    pairs_[pair].user = place;
    users_[place] = {number, pair, Kind::alone_below, 0, pairs_[pair].weight};
    others_[place] = {several, 0};
  }
}

// Copy a user to a place in the list of its capacity.
void Flows::put_user(int32_t source, int32_t place) {
  users_[place] = users_[source];
  others_[place] = others_[source];
  pairs_[users_[place].pair].user = place;
}

// A class that is no longer active is no user.
void Flows::drop(int32_t number) {
  for (int32_t pair = classes_[number].first_pair; pair < classes_[number].last_pair; ++pair) {
    Capacity& capacity = capacities_[pairs_[pair].capacity];
    int32_t place = pairs_[pair].user;
    pairs_[pair].user = NONE;
    if (place < capacity.first_user + capacity.risers) {
      const int32_t last = capacity.first_user + --capacity.risers;
      if (place != last) put_user(last, place);
      place = last;
    }
    const int32_t last = capacity.first_user + --capacity.users;
    if (place != last) put_user(last, place);
  }
}

// A user rises at its capacity from now on, or does not: it comes among those that do so, too.
void Flows::turn(int32_t pair, Kind kind) {
  Capacity& capacity = capacities_[pairs_[pair].capacity];
  const int32_t place = pairs_[pair].user, border = capacity.first_user + capacity.risers;
  const bool rises = kind == Kind::rises || kind == Kind::ties;
  int32_t to = place;
  if (rises && place >= border) {
    to = border;
    ++capacity.risers;
  } else if (!rises && place < border) {
    to = border - 1;
    --capacity.risers;
  }
  if (to != place) {
    const User user = users_[place];
    put_user(to, place);
    users_[to] = user;
    pairs_[pair].user = to;
  }
  users_[to].kind = kind;
}

// Write into the rows of a class as a user what decides whether it stays as it is.
void Flows::look_across(int32_t number) {
  const Class& one = classes_[number];
  const int32_t first = one.first_pair, last = one.last_pair;
  for (int32_t pair = first; pair < last; ++pair) {
    const int32_t place = pairs_[pair].user;
    const User& user = users_[place];
    Other& other = others_[place];
    other.number = several;
    if (user.kind == Kind::below) {
      other.number = one.holder;
    } else if (user.kind == Kind::ties) {
      other.number = tied;
    } else if (user.kind == Kind::rises && last - first == 1) {
      other.number = only;
    } else if (user.kind == Kind::rises && last - first == 2 && user.many == 1) {
      const Pair& second = pairs_[first + last - 1 - pair];
      other = {second.capacity, second.weight};
    }
  }
}

// A class rises at several capacities.
void Flows::tie(int32_t number) {
  for (int32_t pair = classes_[number].first_pair; pair < classes_[number].last_pair; ++pair) {
    User& user = users_[pairs_[pair].user];
    if (user.kind == Kind::rises) user.kind = Kind::ties;  // among those that rise already
  }
}

}  // namespace hwsim
