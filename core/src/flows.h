// Demands in flight: what joins and leaves, and the pace of each.
//
// Paces, weights and what is drawn are the numbers of `hwsim.engine.fair`. All classes that one capacity holds back run at its
// level: they are a group, and service is counted by group. A class knows how much more or less than its group it has received.
// A pair is a class and a capacity from which it draws; while the class is active, the pair is a user of the capacity. Group n
// is what capacity n holds back; group capacities + n is class n while nothing does.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heaps.h"
#include "meters.h"
#include "notes.h"
#include "words.h"

namespace hwsim {

using Numbers = std::vector<int32_t>;

constexpr Two NOWHERE = ~static_cast<Two>(0);   // the level of a capacity that is not full
constexpr uint64_t WHOLE = uint64_t{1} << 53;   // parts of a capacity
constexpr int32_t FREE = -1, NOBODY = -2;       // of what holds a class back: nothing does; it has no member
constexpr int32_t SEARCH = -2;                  // the first of a group is to be found
enum class Kind : int32_t { below, rises, ties, alone_below };  // stops below, at another; does not; and at another too; free
enum Opposite : int32_t { only = -1, several = -2, tied = -3 };  // it crosses no other; look at the class; it rises at several

// What is asked for: see `hwsim_flows_new`.
struct Demands {
  int64_t classes, weights, amounts, capacities;
  const uint64_t *alone, *weight_words, *amount_words, *unit, *margins, *clock_words;
  const int64_t *first_pair, *first_draw, *first_clock;
  const int32_t *pair_capacity, *pair_weight, *draw_capacity, *draw_amount;
  int64_t nearly, keeps_levels, metered;
  const int32_t* ops;
};

struct Class {
  Two alone = 0, found = 0;           // alone: at the clocks as they are
  Three offset;
  int32_t members = 0, root = NONE, bound = NOBODY, holder = 0;  // holder: as `bound`, of what is being tried
  int32_t first_pair = 0, last_pair = 0, first_draw = 0, last_draw = 0;
  bool is_touched = false;             // a member came or went
  int32_t noted = NOBODY;              // what the notes say of `bound` last
  int64_t state = 0;                   // 2 x tick while it rises, 2 x tick + 1 once its pace is found
  int64_t moved = 0, asked = 0;        // the tick or the round at which it came into a list
};

// A class runs at most at pace most x part x 2^shift / (rest x part + own), where that part of the capacity is there.
struct Clock {
  int32_t capacity, shift;
  uint64_t most;
  Two rest;
  Three own;
};

// The pace of a class alone at full clocks, and which of its clocks makes it slower now.
struct Nominal {
  Two alone = 0;
  int32_t first_clock = 0, last_clock = 0, slowest = FREE;
};

struct Capacity {
  Three drawn, held, room;             // what the active demands would draw alone, what they hold, what there is
  Two noted = NOWHERE, before = NOWHERE;  // the level that was noted last, the level before this instant
  int64_t seen = 0, stamped = 0, spoilt = 0;  // ticks
  int32_t first_user = 0, users = 0, risers = 0;
  bool is_short = false, is_full = false;
};

// What those leave that stop below the level, what the others draw at pace 1, the least pace alone.
struct Sums {
  Three left;
  int64_t waiting = 0;  // tick
  Two load = 0, least = NOWHERE;
};

struct Group {
  Three service, key;  // what its members receive; at which the first ends
  int64_t since = 0, due = -1, marked = 0;
  int32_t due_place = NONE, first = NONE;  // first: the class that ends first
};

struct Pair {
  int32_t capacity, number, user, weight;  // number: of the class; user: its place, or NONE; weight: of one member
};

struct Draw {
  int32_t capacity, amount;  // amount: its number
};

struct Amount {
  Three drawn, held;  // drawn: alone, with what is held
};

struct User {
  int32_t number, pair;
  Kind kind;
  int32_t many, weight;  // many: members counted in the sums
};

// Of a class of two capacities with one member that rises at one: the other, and its weight there. Of one that stops below:
// the capacity that holds it back. Else an Opposite.
struct Other {
  int32_t number, weight;
};

struct Member {
  Three tag;  // the service of its class at which it ends
  int32_t left, right, op;
};

struct Event {
  enum What : int32_t { at_alone, full_at, expected };  // in this order at one level
  Two level;
  What what;
  int32_t number;  // of a class, of a capacity, of a class
  bool operator<(const Event& other) const { return level != other.level ? level < other.level : what < other.what; }
};

struct Waiting {
  double top;
  int32_t number;
  bool operator<(const Waiting& other) const { return top < other.top; }
};

class Flows {
 public:
  Flows() = default;
  explicit Flows(const Demands& demands);

  void join(int32_t number, int32_t op, int64_t time, int64_t instant);
  bool is_due(int64_t instant) const { return !due_heap_.empty() && groups_[due_heap_[0]].due <= instant; }
  int64_t due() const { return due_heap_.empty() ? -1 : groups_[due_heap_[0]].due; }
  void leave(int64_t instant, Numbers& retired);
  void change(int32_t which, uint64_t part);
  bool is_unsettled() const { return !touched_.empty() || !resized_.empty(); }
  bool is_empty() const { return members_.size() == free_.size(); }
  bool settle(int64_t instant);  // false: an end is beyond an int64
  void note(int64_t instant);
  void finish();

  Notes notes;
  Meters meters;
  int64_t solves = 0;

 private:
  int32_t capacities() const { return static_cast<int32_t>(capacities_.size()); }
  template <typename Row>
  void list_once(Row& row, int64_t Row::*when, int32_t number, Numbers& list) {
    if (row.*when != tick_) {
      row.*when = tick_;
      list.push_back(number);
    }
  }

  // flows.cpp: groups, and who is in them
  void set_due(int32_t number, int64_t time);
  int32_t group_of(int32_t number) const;
  Two level_of(int32_t group) const;
  void bring(int32_t group, int64_t instant);
  Three service(int32_t number, int64_t instant);
  Three key_of(const Class& one) const;
  void find_first(int32_t group);
  void count(int32_t number, int64_t change);
  void mark(int32_t group) { list_once(groups_[group], &Group::marked, group, marked_); }

  // users.cpp: the lists of users
  void enter(int32_t number);
  void drop(int32_t number);
  void put_user(int32_t source, int32_t place);
  void turn(int32_t pair, Kind kind);
  void look_across(int32_t number);
  void tie(int32_t number);

  // sums.cpp
  void set_level(int32_t which, Two level);
  void stamp(int32_t which, int64_t instant);
  void wait(int32_t which);
  Two weight_of(int32_t place, int32_t many) const { return weights_[users_[place].weight] * static_cast<uint64_t>(many); }
  Two taken_by(const User& user) const { return weights_[user.weight] * static_cast<uint64_t>(user.many); }
  Two counted_pace(const Class& one) const { return one.holder >= 0 ? levels_[one.holder] : one.alone; }
  int32_t lowest(const Class& one, Two& level) const;
  bool is_new(Class& one);
  bool is_clear(Two low, Two high) const;
  void note_move(int32_t number) { list_once(classes_[number], &Class::moved, number, moved_); }
  void sort_user(int32_t number);
  void count_class(int32_t number);
  void sort_users(int32_t which);
  void sort_class(int32_t number);
  void add_up(int32_t which);

  // attempt.cpp: the last stops, tried again
  void spread(int32_t which, Three change);
  bool pass(int64_t instant, int64_t& budget);
  void look(int32_t which, Two was, Two level);
  void suspect_above(int32_t which, Two level, bool fell);
  void suspect_below(int32_t which, Two level);
  bool is_nearly_full(int32_t which) const { return sums_[which].left < margin_left_; }
  Two highest_below(int32_t which) const;
  Two filled(int32_t which) const;
  bool is_off(const Class& one) const;
  bool is_settled(int32_t number);
  bool fills_too(int32_t which, Two level) const;
  void recount(int32_t number, Two before);
  void move(int32_t number) { recount(number, counted_pace(classes_[number])); }
  void release(int64_t instant);
  bool attempt(int64_t instant);

  // mend.cpp: filling from the lowest level up, where something differs
  Two pace_of(const Class& one) const;
  void fill_anew(int32_t which, bool begun, Two level, int64_t instant);
  void fill_at(int32_t which, Two level);
  void stop(int32_t number, Two level);
  void mend(bool begun, Two level, int64_t instant);
  void mend_all(bool begun, Two level, int64_t instant);

  // settle.cpp
  Two pace_at(const Clock& clock) const;
  void follow(int32_t number, int64_t instant);
  void regroup(int32_t number, int64_t instant);
  void arrive(int32_t number);
  bool schedule(int32_t group, int64_t instant);
  bool take_over(int64_t instant);
  int32_t bound_to_note(int32_t number) const;
  void note_bound(int32_t number, int64_t instant);
  void note_level(int32_t group, Two level, int64_t instant);
  void note_nearly(int32_t which, Two highest, int64_t instant);

  std::vector<Class> classes_;
  std::vector<Capacity> capacities_;
  std::vector<Sums> sums_;
  std::vector<Two> levels_;    // at which each capacity is full
  std::vector<double> tops_;   // the same, rounded
  std::vector<Pair> pairs_;
  std::vector<Two> weights_;   // by number
  std::vector<User> users_;    // pairs by capacity: of each first those that rise there, then the other active ones
  std::vector<Other> others_;  // of a user, what is looked at of it again and again
  std::vector<Draw> draws_;
  std::vector<Amount> amounts_;  // by number
  std::vector<Group> groups_;
  std::vector<Member> members_;  // of demands in flight, and of earlier ones whose places are free
  Numbers free_;                 // places of members
  Numbers due_heap_;             // groups by when their first member ends
  Heap<Event> queue_;
  Heap<Waiting> waiting_;        // capacities whose levels are to be found again, the lowest first
  Two unit_ = 0;                 // the least part of a capacity
  std::vector<uint64_t> parts_;  // of each capacity that are there
  std::vector<Clock> clocks_;    // by class
  std::vector<Nominal> nominals_;
  std::vector<std::pair<int32_t, int32_t>> followers_;  // (capacity of a clock, class), in order
  Two margin_ = 0;               // of levels, for roundings to make no difference
  Three margin_left_;            // of what is left
  bool tries_ = false;           // the last stops
  int64_t nearly_ = 0;           // leading bits in which nearly equal paces agree
  bool keeps_levels_ = false;    // in the notes

  int64_t tick_ = 0, round_ = 0;
  int64_t rising_ = 0;  // classes whose pace is not found yet
  bool has_more_ = false;  // something joined, or holds changed

  Numbers touched_, reached_, slack_, stopping_, mended_, changed_, refilled_, stamped_, spoilt_, moved_, marked_, suspects_,
      asked_, scarce_, resized_, slowed_;
};

}  // namespace hwsim
