#include <algorithm>

#include "draws.h"
#include "run.h"

namespace hwsim::services {

using namespace service;

// Set the first timers of an entry: its clients think, or its first request comes.
void Run::begin(int64_t entry) {
  for (int64_t number = 0; number < count(counts::SERVICES); ++number) {
    const int64_t* row = service(number);
    if (row[ENTRY] != entry) continue;
    if (row[CLIENTS] == 0) next_arrival(number, 0);
    for (int64_t client = 0; client < row[CLIENTS]; ++client) think(number, client);
  }
}

// Set the timer of the next arrival, if its instant is known.
void Run::next_arrival(int64_t number, int64_t place) {
  int64_t* row = service(number);
  if (row[ARRIVED] >= row[ARRIVALS]) return;
  const int64_t at = of_.arrivals[row[ENTRY] * of_.arrival_width + row[ARRIVED]++];
  set_timer(at, timer::ARRIVES, number, place);
}

// Whether a request that comes at this instant still belongs to the run; it is counted if so.
bool Run::is_counted(int64_t number) {
  int64_t* load = service(service(number)[LOAD]);
  if ((0 <= load[UNTIL] && load[UNTIL] <= now()) || load[COME] == load[REQUESTS]) return false;
  ++load[COME];
  return true;
}

// Begin a request from outside; its strand if it is refused.
int64_t Run::come(int64_t number, int64_t place) {
  int64_t* row = service(number);
  ++row[CAME];
  row[LAST_CAME] = now();
  return enter(new_strand(number, place, 0));
}

// Set the timer after which a client asks.
void Run::think(int64_t number, int64_t place) {
  const int64_t* row = service(number);
  const int64_t draw = place < row[CLIENTS] ? row[FIRST_THINK] : row[THINK];
  const int64_t wait = fs_of(drawn(step(draw), of_.floats, place, 0) * 1e15);
  set_timer(std::max(now(), row[START]) + wait, timer::ASKS_NOW, number, place);
}

// Give a request a worker, or a place in line; the request itself if it is refused.
int64_t Run::enter(int64_t number) {
  int64_t* request = strand(number);
  const int64_t of = request[strand::SERVICE];
  int64_t* row = service(of);
  count_requests(of, 1);
  if (row[FREE] > 0 && row[DOWN] == 0) {
    --row[FREE];
    go_on(number, row[BASE]);
    return NONE;
  }
  if (row[LINE_LENGTH] >= row[LIMIT_OF_LINE]) {
    request[strand::FAILED] = 1;
    request[strand::WHY] = strand::WAS_REFUSED;
    return number;
  }
  count_line(of, 1);
  request[strand::SINCE] = now();
  append(row, LINE_HEAD, LINE_TAIL, number);
  return NONE;
}

}  // namespace hwsim::services
