// Arms of hard disks: what `hwsim.families.services.actors.arms` says, to the femtosecond.
#include <algorithm>
#include <cmath>

#include "draws.h"
#include "run.h"

namespace hwsim::services {

using namespace station;

// Begin the next access of a work; `mean`: fs of one with a mean way. False if its end is beyond an int64.
bool Run::begin_access(const int64_t* serving, int64_t number, int64_t mean) {
  const int64_t* work = station(station(serving[step::STATION])[LAST_CLASS] + 1 + serving[step::FLOW]);
  int64_t* row = strand(number);
  const int64_t* main = strand(row[strand::MAIN]);
  const int64_t access = row[strand::ACCESS], count = work[arm::ACCESSES];
  const uint64_t visit = (static_cast<uint64_t>(main[strand::VISIT]) * static_cast<uint64_t>(count) + static_cast<uint64_t>(access)) * 2;
  const auto share = [&](uint64_t which) {
    return uniform(static_cast<uint64_t>(work[arm::WAYS_KEY]), static_cast<uint64_t>(main[strand::ROOT]), visit + which);
  };
  const double *curve = floats(work[arm::CURVE]), *turning = floats(work[arm::CURVE] + 1);
  const double distance = turning[1] * (1.0 - std::sqrt(1.0 - share(0)));
  const double seek = distance <= 0         ? 0.0
                      : distance <= turning[0] ? curve[0] + curve[1] * std::sqrt(distance)
                                               : curve[2] + curve[3] * distance;
  const double way = seek + turning[2] * share(1) + turning[3];
  row[strand::REACH] = std::max<int64_t>(0, fs_of(way * floats(work[arm::CURVE] + 2)[0]));
  row[strand::WORKS] = std::max<int64_t>(0, mean - work[arm::MEAN_WAY]);
  row[strand::FOLLOWS] = access > 0 ? work[arm::FOLLOWING_TIME] : NONE;
  const bool follows = row[strand::FOLLOWS] >= 0;
  row[strand::RESOURCE] = serving[step::WAITS_FOR], row[strand::SINCE] = now();
  row[strand::ALONE] = follows ? row[strand::FOLLOWS] : row[strand::WORKS] + row[strand::REACH];
  add_to(words(this->count(counts::WORKED_AT) + serving[step::COST]), over(1, follows ? row[strand::FOLLOWS] : mean));
  row[strand::ACCESS] = access + 1 == count ? 0 : access + 1;
  return join(serving[step::STATION], serving[step::FLOW], row[strand::ALONE], number);
}

// Begin any access of those that wait; one that goes on where it has ended is not there yet while others are.
bool Run::choose(int64_t* row) {
  int64_t* shared = station(row[LAST_CLASS]);
  const int64_t busy = row[SERVERS] - row[FREE], waiting = row[THERE] - busy;
  const int64_t many = std::min(waiting, shared[arm::SEEN]);
  const auto key = static_cast<uint64_t>(shared[arm::CHOICES_KEY]);
  const double share = many > 1 ? uniform(key, static_cast<uint64_t>(row[WORKING]), 0) : 0.0;
  const auto at = static_cast<int64_t>(share * static_cast<double>(many));
  int64_t before = NONE, number = NONE;
  const auto find = [&](int64_t place) {
    for (before = NONE, number = row[LINE_FIRST]; place > 0; --place) before = number, number = strand(number)[strand::FOLLOWING];
  };
  const auto continues = [&] { return strand(number)[strand::FOLLOWS] >= 0 && number == shared[arm::LATEST]; };
  find(at);
  if (many > 1 && continues()) find((at + 1) % many);
  const int64_t following = strand(number)[strand::FOLLOWING];
  (before < 0 ? row[LINE_FIRST] : strand(before)[strand::FOLLOWING]) = following;
  if (following < 0) row[TAIL] = before;
  const int64_t* work = station(strand(number)[strand::ARM_CLASS]);
  const double scale = floats(work[arm::SCALES] + std::min(waiting + busy, work[arm::MOST_THERE]))[0];
  const int64_t way = fs_of(static_cast<double>(strand(number)[strand::REACH]) * scale);
  const int64_t time = continues() ? strand(number)[strand::FOLLOWS] : strand(number)[strand::WORKS] + way;
  if (time > LARGEST - now()) return false;
  shared[arm::LATEST] = number;
  --row[FREE];
  begin_server(row, number, time);
  return true;
}

// List the accesses that end now, -1 if an end is beyond an int64; if none ends, free arms choose.
int64_t Run::leave_arms(int64_t* row) {
  int64_t* ended = list(counts::ENDED_LIST);
  int64_t many = 0;
  while (row[HEAD] >= 0 && static_cast<int64_t>(target(row[HEAD])[1]) <= now()) {
    ended[many++] = end_server(row);
    ++row[FREE];
  }
  if (many > 0 && row[LINE_FIRST] >= 0) {  // they choose when all of this instant have come
    row[DUE] = now() + 1;
    return many;
  }
  while (row[FREE] > 0 && row[LINE_FIRST] >= 0) {
    if (!choose(row)) return -1;
  }
  row[DUE] = row[HEAD] >= 0 ? static_cast<int64_t>(target(row[HEAD])[1]) : LARGEST;
  return many;
}

}  // namespace hwsim::services
