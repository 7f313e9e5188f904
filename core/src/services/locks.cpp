// Locks of services: strands wait in the order in which they came, and a group of them may go through together.
#include "run.h"

namespace hwsim::services {

using namespace service;

// Strike a lock from those that a strand holds.
void Run::let_go(int64_t number, int64_t lock) {
  int64_t& held = strand(number)[strand::HELD];
  int64_t* locks = waits(number) + count(counts::RESOURCES);
  for (int64_t place = 0; place < held; ++place) {
    if (locks[place] != lock) continue;
    for (int64_t after = place + 1; after < held; ++after) locks[after - 1] = locks[after];
    --held;
    return;
  }
}

// Free a lock, and give it to the strands next in line.
void Run::give_back(int64_t number) {
  int64_t* lock = service(number);
  lock[TAKEN] = 0;
  for (int64_t along = lock[ALONG]; along >= 0; along = strand(along)[strand::FOLLOWING]) go_on(along, strand(along)[strand::PC]);
  lock[ALONG] = lock[ALONG_TAIL] = NONE;
  lock[ALONG_COUNT] = 0;
  if (lock[LOCK_HEAD] < 0) return;
  lock[TAKEN] = 1;
  const int64_t first = next_in_line(number);
  int64_t* row = strand(first);
  waits(first)[count(counts::RESOURCES) + row[strand::HELD]++] = number;
  for (; lock[LOCK_HEAD] >= 0 && lock[ALONG_COUNT] < lock[GROUP] - 1; ++lock[ALONG_COUNT]) {
    const int64_t follower = next_in_line(number);
    strand(follower)[strand::PC] = strand(follower)[strand::LOCK_END];
    strand(follower)[strand::SINCE] = now();
    append(lock, ALONG, ALONG_TAIL, follower);
  }
  go_on(first, row[strand::PC]);
}

// Take the first strand out of the line of a lock.
int64_t Run::next_in_line(int64_t number) {
  int64_t* lock = service(number);
  const int64_t first = lock[LOCK_HEAD];
  lock[LOCK_HEAD] = strand(first)[strand::FOLLOWING];
  if (lock[LOCK_HEAD] < 0) lock[LOCK_TAIL] = NONE;
  waits(first)[lock[LOCK_RESOURCE]] += now() - strand(first)[strand::SINCE];
  return first;
}

}  // namespace hwsim::services
