// Requests that walk through the steps of services, on columns: what `hwsim.families.services.actors.simulation` says, to the femtosecond.
//
// A strand is a request, or a branch of one. Everything that may grow is looked at before each strand goes on: where there is
// too little room left, or an arrival is not known yet, `play` returns and says so, and is called again with more.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "../hwsim_core.h"
#include "../watch.h"
#include "../words.h"
#include "rows.h"

namespace hwsim::services {

constexpr int64_t NONE = -1, LARGEST = INT64_MAX;

class Run {
 public:
  explicit Run(const hwsim_services& columns) : of_(columns) {}

  void begin(int64_t entry);                                     // arrivals.cpp
  void set_event(int64_t time, int64_t happening, bool begins);  // play.cpp
  int32_t play(int64_t limit, int64_t margin, Watch watch);
  bool rebase();  // rebase.cpp

 private:
  // Rows by number.
  int64_t* step(int64_t at) const { return of_.table + at * table::TABLE_WIDTH; }
  double* floats(int64_t at) const { return of_.floats + at * table::FLOATS_WIDTH; }
  int64_t* service(int64_t at) const { return of_.services + at * service::SERVICE_WIDTH; }
  int64_t* station(int64_t at) const { return of_.stations + at * station::STATION_WIDTH; }
  uint64_t* words(int64_t at) const { return of_.words + at * station::WORDS_WIDTH; }
  int64_t* strand(int64_t at) const { return of_.strands + at * strand::STRAND_WIDTH; }
  uint64_t* target(int64_t at) const { return of_.targets + at * 3; }
  double* slots(int64_t at) const { return of_.slots + at * of_.slot_width; }
  int64_t* waits(int64_t at) const { return of_.waits + at * of_.wait_width; }
  int64_t* list(int64_t at) const { return of_.lists + at * of_.strand_rows; }
  int64_t* timer(int64_t at) const { return of_.timers + at * timer::TIMER_WIDTH; }
  int64_t& count(int64_t which) const { return of_.counts[which]; }
  int64_t now() const { return of_.counts[counts::NOW]; }
  double drawn_for(int64_t draw, int64_t strand) const;  // of the request of a strand

  // calendar.cpp: timers as a heap, strands that go on at this instant, and strands that begin and end
  void set_timer(int64_t time, int64_t kind, int64_t first, int64_t second = 0, int64_t third = 0);
  int64_t drop_timer();
  void go_on(int64_t strand, int64_t at);
  int64_t new_strand(int64_t service, int64_t root, int64_t visit);
  void forget(int64_t strand);
  void append(int64_t* row, int64_t head, int64_t tail, int64_t strand);

  // locks.cpp
  void let_go(int64_t strand, int64_t lock);
  void give_back(int64_t lock);
  int64_t next_in_line(int64_t lock);

  // notes.cpp: requests and waiting requests over time, in windows, and each answer
  void close_windows(int64_t service);
  void count_requests(int64_t service, int64_t change);
  void count_line(int64_t service, int64_t change);
  void note_end(int64_t strand);

  // arrivals.cpp: requests from outside, by their instants, or from clients that think; each takes a worker or waits in line
  void next_arrival(int64_t service, int64_t count);
  bool is_counted(int64_t service);
  int64_t come(int64_t service, int64_t count);
  void think(int64_t service, int64_t count);
  int64_t enter(int64_t strand);

  // asking.cpp: attempts, time limits, answers, and requests that end or fail
  void ask(int64_t strand);
  void give_up(int64_t strand, int64_t attempt, int64_t child);
  void ask_again(int64_t strand);
  int64_t answer(int64_t strand);
  void blame(int64_t strand, int64_t why);
  int64_t fail(int64_t strand);
  int64_t join_branch(int64_t strand);
  void end(int64_t strand, bool has_entered);
  void end_failed(int64_t failing);
  void admit(int64_t service);

  // steps.cpp
  double hit_rate(int64_t cache);
  int64_t size_of(int64_t number, int64_t strand) const;
  bool begin_work(int64_t strand, int64_t time);
  bool begin_access(const int64_t* serving, int64_t strand, int64_t mean);
  int64_t way(const int64_t* step, int64_t at, int64_t main);
  bool run(int64_t strand, int64_t at);
  bool serve(const int64_t* step, int64_t strand, int64_t at);
  void fork(const int64_t* step, int64_t strand);

  // play.cpp
  void happen(int64_t number, bool begins);
  bool is_short(int64_t margin) const;
  bool expire(int64_t row);

  // rebase.cpp
  void move_heap(int64_t root, int64_t shift, Three virtual_time);
  void move_station(int64_t* row, int64_t shift);

  // stations.cpp: members of a class, and works that a server does, are skew heaps of requests
  void bring_station(int64_t* row);
  void begin_server(int64_t* row, int64_t strand, int64_t time);
  int64_t end_server(int64_t* row);
  bool join(int64_t at, int64_t flow, int64_t time, int64_t strand);
  void bring_class(int64_t* one);
  int64_t leave(int64_t at);
  int64_t leave_line(int64_t* row);
  int64_t leave_arms(int64_t* row);
  bool choose(int64_t* row);  // arms.cpp
  void swell(int64_t* row);
  void list_rising(int64_t place, int64_t at);
  bool stop(int64_t* row, int64_t* one, Two pace);
  bool fill(int64_t* row);
  bool share(int64_t* row);
  bool settle(int64_t* row);
  bool turn(int64_t* row, int64_t* one, Two pace);

  const hwsim_services& of_;
  std::vector<int64_t> stack_;  // of services whose workers are free again
};

// Sums of three words that lie in a row.
inline void add_to(uint64_t* words, Three value) {
  const Three sum = three_at(words) + value;
  words[0] = sum.low, words[1] = sum.middle, words[2] = sum.high;
}
inline void take_from(uint64_t* words, Three value) {
  const Three sum = three_at(words) - value;
  words[0] = sum.low, words[1] = sum.middle, words[2] = sum.high;
}
inline void put(uint64_t* words, Three value) { words[0] = value.low, words[1] = value.middle, words[2] = value.high; }
inline void put(uint64_t* words, Two value) { words[0] = static_cast<uint64_t>(value), words[1] = static_cast<uint64_t>(value >> 64); }

// Whole fs; what is too far for a run comes to an instant at which `play` says so.
inline int64_t fs_of(double fs) {
  return fs < static_cast<double>(FARTHEST) ? static_cast<int64_t>(std::nearbyint(fs)) : FARTHEST + 1;
}

// A number x fs.
inline Three over(int64_t number, int64_t span) { return times(static_cast<Two>(static_cast<uint64_t>(number)), static_cast<uint64_t>(span)); }

}  // namespace hwsim::services
