// The steps of a strand, up to the next at which it waits.
#include <algorithm>
#include <cmath>

#include "draws.h"
#include "run.h"

namespace hwsim::services {

using namespace hwsim::services::step;
using namespace table;

// The hit rate of a cache for the next lookup; -1: it is full, and no event has changed it.
double Run::hit_rate(int64_t cache) {
  int64_t* row = step(cache);
  double hit = floats(row[CACHE_HITS])[0];
  const int64_t lookups = row[LOOKUPS];
  if (lookups < 0) return hit;
  int64_t line = row[FIRST_LINE];
  const int64_t last = row[LAST_LINE];
  while (line < last && static_cast<double>(lookups) > floats(line)[0]) ++line;
  row[LOOKUPS] = static_cast<double>(lookups + 1) <= floats(last)[0] ? lookups + 1 : NONE;
  if (hit < 0) hit = floats(line)[1] + floats(line)[2] * static_cast<double>(lookups);
  return hit;
}

// Time of a work whose size differs from request to request, in fs.
int64_t Run::size_of(int64_t number, int64_t of) const {
  const int64_t* row = step(number);
  const double x = row[NUMBER_DRAW] >= 0 ? drawn_for(row[NUMBER_DRAW], of) : slots(strand(of)[strand::MAIN])[row[NUMBER_SLOT]];
  double amount = x;
  for (int64_t line = row[LINE]; line < row[LINES]; ++line) {
    if (x <= floats(line)[0] || line == row[LINES] - 1) {
      amount = floats(line)[1] + floats(line)[2] * x;
      break;
    }
  }
  return fs_of(floats(row[BODY])[0] * std::max(amount, 0.0));
}

// Begin the work before the next step of a strand at its station; false if its end is beyond an int64.
bool Run::begin_work(int64_t number, int64_t time) {
  int64_t* row = strand(number);
  const int64_t* serving = step(row[strand::PC] - 1);
  if (station(serving[STATION])[station::KIND] == station::ARMS) return begin_access(serving, number, time);
  row[strand::RESOURCE] = serving[WAITS_FOR], row[strand::SINCE] = now(), row[strand::ALONE] = time;
  add_to(words(count(counts::WORKED_AT) + serving[COST]), over(1, time));
  return join(serving[STATION], serving[FLOW], time, number);
}

// Serve at a station, or for a time that no station has; false if its end is beyond an int64.
bool Run::serve(const int64_t* serving, int64_t number, int64_t at) {
  const int64_t time = serving[NUMBER] < 0 ? serving[TIME] : size_of(serving[NUMBER], number);
  strand(number)[strand::PC] = at + 1;
  if (serving[STATION] < 0) {
    if (time > LARGEST - now() - serving[LATENCY]) return false;
    set_timer(now() + serving[LATENCY] + time, timer::GOES_ON, number);
    return true;
  }
  if (serving[LATENCY] == 0 || strand(number)[strand::ACCESS] > 0) return begin_work(number, time);
  set_timer(now() + serving[LATENCY], timer::BEGINS_WORK, number, time);
  return true;
}

// The step at which a request goes on that branches.
int64_t Run::way(const int64_t* branching, int64_t at, int64_t main) {
  const double share = drawn_for(branching[DRAW], main);
  if (branching[CACHE] >= 0) {
    const double hit = hit_rate(branching[CACHE]);
    if (hit >= 0) return share < hit ? step(branching[WAY])[WAY_TO] : at + 1;
  }
  for (int64_t number = branching[WAY]; number < branching[WAYS]; ++number) {
    const int64_t* way = step(number);
    if (!(share < floats(way[WAY_LIMIT])[0])) continue;
    if (way[WAY_CHOICE] >= 0) strand(main)[strand::CHOICE] = way[WAY_CHOICE];
    return way[WAY_TO];
  }
  return at + 1;
}

// Begin the branches of a strand.
void Run::fork(const int64_t* forking, int64_t number) {
  int64_t* row = strand(number);
  row[strand::PC] = forking[GOES_TO];
  row[strand::LEFT] = forking[MANY];
  for (int64_t place = forking[BRANCHES]; place < forking[BRANCHES] + forking[MANY]; ++place) {
    const int64_t branch = new_strand(row[strand::SERVICE], row[strand::ROOT], row[strand::VISIT]);
    strand(branch)[strand::MAIN] = row[strand::MAIN];
    strand(branch)[strand::CALLER] = number;
    go_on(branch, step(place)[0]);
  }
}

// Let a strand go on from a step until it waits; false if an end is beyond an int64.
bool Run::run(int64_t number, int64_t at) {
  int64_t* row = strand(number);
  int64_t* of = service(row[strand::SERVICE]);
  if (of[service::DOWN] != 0) {
    row[strand::PC] = at;
    append(of, service::PARKED, service::PARKED_TAIL, number);
    return true;
  }
  const int64_t main = row[strand::MAIN];
  for (;;) {
    const int64_t* next = step(at);
    switch (next[0]) {
      case SERVE:
        return serve(next, number, at);
      case END:
        end(number, true);
        return true;
      case KEEP:
        slots(main)[next[SLOT]] = drawn_for(next[DRAW], main);
        ++at;
        break;
      case BRANCH:
        at = way(next, at, main);
        break;
      case JUMP:
        at = next[TO];
        break;
      case ASK:
        row[strand::PC] = at;
        row[strand::ATTEMPTS] = 0;
        ask(number);
        return true;
      case FORK:
        fork(next, number);
        return true;
      case JOIN: {
        const int64_t failing = join_branch(number);
        if (failing >= 0) end_failed(failing);
        return true;
      }
      case TAKE: {
        int64_t* lock = service(next[LOCK]);
        row[strand::PC] = at + 1;
        if (lock[service::TAKEN] != 0) {
          row[strand::SINCE] = now();
          row[strand::LOCK_END] = next[AFTER];
          append(lock, service::LOCK_HEAD, service::LOCK_TAIL, number);
          return true;
        }
        lock[service::TAKEN] = 1;
        waits(number)[count(counts::RESOURCES) + row[strand::HELD]++] = next[LOCK];
        ++at;
        break;
      }
      default:  // GIVE
        let_go(number, next[LOCK]);
        give_back(next[LOCK]);
        ++at;
    }
  }
}

}  // namespace hwsim::services
