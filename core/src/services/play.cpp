// Play a program of services: timers, strands and stations, in the order of their instants.
#include "../guarded.h"
#include "run.h"

namespace hwsim::services {

using namespace counts;

// Begin or end an event of a service.
void Run::happen(int64_t number, bool begins) {
  using namespace table;
  const int64_t* event = step(number);
  const int64_t of = event[HAPPENS_TO];
  int64_t* row = service(of);
  if (event[EMPTIED] >= 0) {
    if (begins) step(event[EMPTIED])[LOOKUPS] = 0;
    return;
  }
  if (event[IS_HIT] != 0) {
    for (int64_t cache = count(CACHES); cache < count(CACHES_END); ++cache) {
      if (step(cache)[CACHE_OF] == of) floats(step(cache)[CACHE_HITS])[0] = begins ? floats(event[HIT_RATE])[0] : -1.0;
    }
    return;
  }
  row[service::DOWN] = begins ? 1 : 0;
  if (begins) return;
  int64_t parked = row[service::PARKED];
  row[service::PARKED] = row[service::PARKED_TAIL] = NONE;
  for (; parked >= 0; parked = strand(parked)[strand::FOLLOWING]) go_on(parked, strand(parked)[strand::PC]);
  admit(of);
}

// Whether too little room is left for all that one strand may do.
bool Run::is_short(int64_t margin) const {
  if (count(FREE_STRANDS) < margin || count(FREE_TIMERS) < margin || count(ANSWERS) + margin > of_.answer_rows) return true;
  for (int64_t number = 0; number < count(SERVICES); ++number) {
    using namespace service;
    const int64_t* row = service(number);
    if (row[ENTRY] >= 0 && row[CLIENTS] == 0 && row[ARRIVED] == row[ARRIVALS] && row[ARRIVALS] >= 0) return true;
  }
  for (int64_t number = 0; number < count(STATIONS); ++number) {
    const int64_t* row = station(number);
    if (row[station::CROWDED] > 0 && row[station::DEPTH] + margin > row[station::CROWDED]) return true;
  }
  return false;
}

// Do what a timer was set for; false if an end is beyond an int64.
bool Run::expire(int64_t number) {
  using namespace timer;
  const int64_t* row = timer(number);
  const int64_t kind = row[TIMER_KIND], first = row[TIMER_KIND + 1], second = row[TIMER_KIND + 2], third = row[TIMER_KIND + 3];
  switch (kind) {
    case ARRIVES:
    case ASKS_NOW:
      if (is_counted(first)) {
        if (kind == ARRIVES) next_arrival(first, second + 1);
        const int64_t refused = come(first, second);
        if (refused >= 0) end(refused, false);
      }
      return true;
    case LATE:
      give_up(first, second, third);
      return true;
    case RETRY:
      ask(first);
      return true;
    case BEGINS_WORK:
      return begin_work(first, second);
    case GOES_ON:
      return run(first, strand(first)[strand::PC]);
    default:
      happen(first, kind == BEGINS);
      return true;
  }
}

// Set the timer of something that happens.
void Run::set_event(int64_t time, int64_t happening, bool begins) {
  set_timer(time, begins ? timer::BEGINS : timer::OVER, happening);
}

// Play all instants before a limit; why it returned.
int32_t Run::play(int64_t limit, int64_t margin, Watch watch) {
  for (;;) {
    if (watch.is_over() || is_short(margin)) return HWSIM_MORE;
    if (count(READY) > 0) {
      const int64_t at = count(READY_HEAD);
      count(READY_HEAD) = (at + 1) % of_.strand_rows;
      --count(READY);
      if (!run(list(READY_STRANDS)[at], list(READY_STEPS)[at])) return HWSIM_TOO_FAR;
      continue;
    }
    if (count(ENDED_AT) < count(ENDED_COUNT)) {
      const int64_t number = list(ENDED_LIST)[count(ENDED_AT)++];
      const int64_t* row = strand(number);
      const int64_t waited = now() - row[strand::SINCE] - row[strand::ALONE];
      if (waited > 0) waits(number)[row[strand::RESOURCE]] += waited;
      if (!run(number, row[strand::PC] - (row[strand::ACCESS] > 0))) return HWSIM_TOO_FAR;
      continue;
    }
    if (now() > FARTHEST) return HWSIM_TOO_FAR;
    int64_t soonest = LARGEST, which = NONE;
    for (int64_t number = 0; number < count(STATIONS); ++number) {
      if (station(number)[station::DUE] >= soonest) continue;
      soonest = station(number)[station::DUE];
      which = number;
    }
    if (count(TIMERS) > 0 && timer(0)[timer::TIMER_TIME] < soonest) {
      if (timer(0)[timer::TIMER_TIME] >= limit) return HWSIM_DONE;
      count(NOW) = timer(0)[timer::TIMER_TIME];
      if (!expire(drop_timer())) return HWSIM_TOO_FAR;
      continue;
    }
    if (soonest >= limit || which < 0) return HWSIM_DONE;
    count(NOW) = soonest;
    const int64_t many = leave(which);
    if (many < 0) return HWSIM_TOO_FAR;
    count(ENDED_AT) = 0;
    count(ENDED_COUNT) = many;
  }
}

}  // namespace hwsim::services

int32_t hwsim_services_begin(const hwsim_services* columns, int64_t entry) {
  hwsim::services::Run(*columns).begin(entry);
  return HWSIM_DONE;
}

int32_t hwsim_services_event(const hwsim_services* columns, int64_t time, int64_t happening, int64_t begins) {
  hwsim::services::Run(*columns).set_event(time, happening, begins != 0);
  return HWSIM_DONE;
}

int32_t hwsim_services_play(const hwsim_services* columns, int64_t limit, int64_t margin, int64_t patience) {
  return hwsim::guarded([&]() -> int32_t { return hwsim::services::Run(*columns).play(limit, margin, hwsim::Watch(patience)); });
}
