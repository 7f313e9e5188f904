#include "draws.h"
#include "run.h"

namespace hwsim::services {

using namespace strand;
using namespace hwsim::services::step;

// Send an attempt to another service.
void Run::ask(int64_t number) {
  int64_t* row = strand(number);
  const int64_t* asking = step(row[PC]);
  const int64_t attempts = row[ATTEMPTS]++;
  row[ASKING] = ++count(counts::SET);
  const int64_t* main = strand(row[MAIN]);
  const uint64_t asks = mixed(static_cast<uint64_t>(main[VISIT]), static_cast<uint64_t>(asking[ASK_KEY]));
  const uint64_t visit = mixed(asks, static_cast<uint64_t>(attempts));
  const int64_t child = new_strand(asking[ASKED], main[ROOT], static_cast<int64_t>(visit));
  strand(child)[CALLER] = number;
  strand(child)[ATTEMPT] = row[ASKING];
  if (attempts > 0) ++service(asking[ASKED])[service::ASKED_AGAIN];
  if (asking[TIMEOUT] >= 0) set_timer(now() + asking[TIMEOUT], timer::LATE, number, row[ASKING], child);
  const int64_t refused = enter(child);
  if (refused >= 0) end(refused, false);
}

// Give an attempt up that is still under way at its time limit.
void Run::give_up(int64_t number, int64_t attempt, int64_t child) {
  int64_t* row = strand(number);
  if (row[ASKING] != attempt) return;
  row[ASKING] = 0;
  strand(child)[GONE] = 1;
  const int64_t* asking = step(row[PC]);
  ++service(asking[ASKED])[service::TIMEOUTS];
  waits(number)[count(counts::RESOURCES) - 1] += asking[TIMEOUT];
  if (row[ATTEMPTS] <= asking[RETRIES]) {
    ask_again(number);
    return;
  }
  blame(number, TIMED_OUT);
  end_failed(number);
}

// Set the timer of the next attempt.
void Run::ask_again(int64_t number) {
  const int64_t* row = strand(number);
  const int64_t* asking = step(row[PC]);
  const int64_t attempts = row[ATTEMPTS];
  double wait = floats(asking[WAITS_AT] + attempts - 1)[0];
  const double jitter = floats(asking[WAITS_AT])[1];
  if (jitter > 0 && wait > 0) {
    const int64_t* main = strand(row[MAIN]);
    const uint64_t visit = mixed(static_cast<uint64_t>(main[VISIT]), static_cast<uint64_t>(attempts));
    wait *= 1.0 - jitter * drawn(step(asking[JITTER_DRAW]), of_.floats, main[ROOT], static_cast<int64_t>(visit));
  }
  waits(number)[count(counts::RESOURCES) - 2] += fs_of(wait);
  set_timer(now() + fs_of(wait), timer::RETRY, number);
}

// End a request and let its caller go on; the caller if it fails.
int64_t Run::answer(int64_t number) {
  note_end(number);
  const int64_t* row = strand(number);
  const int64_t caller = row[CALLER], of = row[SERVICE];
  if (caller < 0) {
    const int64_t clients = service(of)[service::CLIENTS];
    if (clients > 0) think(of, row[ROOT] + clients);
    forget(number);
    return NONE;
  }
  int64_t* waiting = strand(caller);
  if (row[GONE] != 0 || waiting[ASKING] != row[ATTEMPT]) {
    forget(number);
    return NONE;
  }
  waiting[ASKING] = 0;
  for (int64_t resource = 0; resource < count(counts::RESOURCES); ++resource) waits(caller)[resource] += waits(number)[resource];
  const int64_t* asking = step(waiting[PC]);
  const bool has_failed = row[FAILED] != 0;
  const int64_t why = row[WHY];
  forget(number);
  if (!has_failed) {
    go_on(caller, waiting[PC] + 1);
  } else if (asking[AGAIN] != 0 && waiting[ATTEMPTS] <= asking[RETRIES]) {
    ask_again(caller);
  } else {
    blame(caller, why);
    return caller;
  }
  return NONE;
}

// Mark the request of a strand as failed, with its first reason.
void Run::blame(int64_t number, int64_t why) {
  int64_t* main = strand(strand(number)[MAIN]);
  main[FAILED] = 1;
  if (main[WHY] == NO_REASON) main[WHY] = why;
}

// Give the locks of a failed strand back; the request that ends, or none if branches go on.
int64_t Run::fail(int64_t number) {
  for (;;) {
    int64_t* row = strand(number);
    for (int64_t at = row[HELD] - 1; at >= 0; --at) give_back(waits(number)[count(counts::RESOURCES) + at]);
    row[HELD] = 0;
    if (row[MAIN] == number) return number;
    number = join_branch(number);
    if (number < 0) return NONE;
  }
}

// End a branch; the strand that forked it, if that strand fails.
int64_t Run::join_branch(int64_t number) {
  const int64_t main = strand(number)[CALLER];
  int64_t* row = strand(main);
  if (--row[LEFT] > 0) {
    forget(number);
    return NONE;
  }
  for (int64_t resource = 0; resource < count(counts::RESOURCES); ++resource) waits(main)[resource] += waits(number)[resource];
  forget(number);
  if (strand(row[MAIN])[FAILED] != 0) return main;
  go_on(main, row[PC]);
  return NONE;
}

// A request ends, and all that fail of it: each gives its worker back, is noted, and lets the first of the line in.
//
// has_entered: whether it has a worker (one that was refused has none).
void Run::end(int64_t number, bool has_entered) {
  stack_.clear();
  while (number >= 0) {
    const int64_t of = strand(number)[SERVICE];
    if (has_entered) {
      ++service(of)[service::FREE];
      stack_.push_back(of);
    }
    has_entered = true;
    const int64_t failing = answer(number);
    number = failing >= 0 ? fail(failing) : NONE;
  }
  for (; !stack_.empty(); stack_.pop_back()) admit(stack_.back());
}

// A strand fails, and its request ends unless branches of it go on.
void Run::end_failed(int64_t failing) {
  const int64_t over = fail(failing);
  if (over >= 0) end(over, true);
}

// Give free workers to the requests in line.
void Run::admit(int64_t of) {
  using namespace service;
  int64_t* row = service(of);
  while (row[LINE_HEAD] >= 0 && row[FREE] > 0 && row[DOWN] == 0) {
    const int64_t number = row[LINE_HEAD];
    int64_t* waiting = strand(number);
    row[LINE_HEAD] = waiting[strand::FOLLOWING];
    if (row[LINE_HEAD] < 0) row[LINE_TAIL] = NONE;
    count_line(of, -1);
    if (waiting[strand::GONE] != 0 && row[DROPS] != 0) {
      waiting[strand::FAILED] = 1;
      waiting[strand::WHY] = strand::WAS_DROPPED;
      note_end(number);
      forget(number);
      continue;
    }
    waits(number)[row[RESOURCE_OF]] += now() - waiting[strand::SINCE];
    --row[FREE];
    go_on(number, row[BASE]);
  }
}

}  // namespace hwsim::services
