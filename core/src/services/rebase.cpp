// A run longer than an int64 of femtoseconds: its clock begins anew, and all instants with it. Spans stay as they are.
#include <algorithm>
#include <vector>

#include "../guarded.h"
#include "run.h"

namespace hwsim::services {

namespace {

constexpr int64_t EARLIEST = -(int64_t{1} << 62);  // sums and differences of it and of FARTHEST fit

// What happened so long before the new beginning that it no longer fits is a reason to stop.
bool moved(int64_t& instant, int64_t shift) {
  instant -= shift;
  return instant >= EARLIEST;
}

}  // namespace

// Add a change to the targets of all members of a heap: `middle` to what a line's servers have, else `virtual_time` off all three.
void Run::move_heap(int64_t root, int64_t shift, Three virtual_time) {
  std::vector<int64_t> left;
  if (root >= 0) left.push_back(root);
  while (!left.empty()) {
    const int64_t at = left.back();
    left.pop_back();
    if (shift > 0) {
      target(at)[1] -= static_cast<uint64_t>(shift);
    } else {
      take_from(target(at), virtual_time);
    }
    for (const int column : {strand::LEFT_CHILD, strand::RIGHT_CHILD}) {
      if (strand(at)[column] >= 0) left.push_back(strand(at)[column]);
    }
  }
}

void Run::move_station(int64_t* row, int64_t shift) {
  using namespace station;
  bring_station(row);
  row[station::LAST] -= shift;
  if (row[DUE] < LARGEST) row[DUE] -= shift;
  if (row[KIND] == FIFO || row[KIND] == ARMS) return move_heap(row[HEAD], shift, Three());
  for (int64_t number = row[FIRST_CLASS]; number < row[LAST_CLASS]; ++number) {
    using namespace member;
    int64_t* one = station(number);
    if (one[MEMBERS] == 0) continue;
    bring_class(one);
    one[SINCE] -= shift;
    if (one[CLASS_DUE] < LARGEST) one[CLASS_DUE] -= shift;
    uint64_t* of_class = words(one[CLASS_WORDS]);
    move_heap(one[ROOT], 0, three_at(of_class + VIRTUAL));  // what a class received since it had a member grows as well
    put(of_class + VIRTUAL, Three());
  }
}

// The clock begins anew at this instant; arrivals, and until when requests come, are not moved. False if that is too far.
bool Run::rebase() {
  const int64_t shift = now();
  bool fits = true;
  for (int64_t number = 0; number < count(counts::SERVICES); ++number) {
    using namespace service;
    int64_t* row = service(number);
    for (const int column : {ENDED, service::LAST, LINE_LAST, EDGE}) fits = moved(row[column], shift) && fits;
    if (row[CAME] > 0) fits = moved(row[LAST_CAME], shift) && fits;
    if (row[FIRST_CAME] >= 0) row[FIRST_CAME] = 0;
    row[START] = std::max<int64_t>(0, row[START] - shift);
    fits = fits && row[WINDOW] < -EARLIEST;
  }
  for (int64_t number = 0; number < count(counts::STATIONS); ++number) move_station(station(number), shift);
  for (int64_t at = 0; at < count(counts::TIMERS); ++at) timer(at)[timer::TIMER_TIME] -= shift;
  std::vector<char> is_free(static_cast<size_t>(of_.strand_rows), false);
  for (int64_t at = 0; at < count(counts::FREE_STRANDS); ++at) is_free[static_cast<size_t>(list(counts::FREE_LIST)[at])] = true;
  for (int64_t number = 0; number < of_.strand_rows; ++number) {
    if (is_free[static_cast<size_t>(number)]) continue;
    fits = moved(strand(number)[strand::BEGAN], shift) && fits;
    strand(number)[strand::SINCE] = std::max(EARLIEST, strand(number)[strand::SINCE] - shift);  // it is set before it is used
  }
  count(counts::NOW) = 0;
  return fits;
}

}  // namespace hwsim::services

int32_t hwsim_services_rebase(const hwsim_services* columns) {
  return hwsim::guarded([&]() -> int32_t { return hwsim::services::Run(*columns).rebase() ? HWSIM_DONE : HWSIM_TOO_FAR; });
}
