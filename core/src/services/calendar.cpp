#include "draws.h"
#include "run.h"

namespace hwsim::services {

using namespace counts;
using namespace timer;

namespace {

bool is_before(const int64_t* one, const int64_t* other) {
  return one[TIMER_TIME] != other[TIMER_TIME] ? one[TIMER_TIME] < other[TIMER_TIME] : one[TIMER_NUMBER] < other[TIMER_NUMBER];
}

void copy(const int64_t* from, int64_t* to) {
  for (int column = TIMER_TIME; column <= TIMER_ROW; ++column) to[column] = from[column];
}

}  // namespace

double Run::drawn_for(int64_t draw, int64_t number) const {
  const int64_t* main = strand(strand(number)[strand::MAIN]);
  return drawn(step(draw), of_.floats, main[strand::ROOT], main[strand::VISIT]);
}

void Run::set_timer(int64_t time, int64_t kind, int64_t first, int64_t second, int64_t third) {
  const int64_t row = timer(--count(FREE_TIMERS))[FREE_ROW];
  int64_t* what = timer(row) + TIMER_KIND;
  what[0] = kind, what[1] = first, what[2] = second, what[3] = third;
  const int64_t entry[] = {time, ++count(SET), row};
  int64_t place = count(TIMERS)++;
  for (; place > 0 && is_before(entry, timer((place - 1) / 2)); place = (place - 1) / 2) copy(timer((place - 1) / 2), timer(place));
  copy(entry, timer(place));
}

// Take the first timer out of the heap and return its row.
int64_t Run::drop_timer() {
  const int64_t first_row = timer(0)[TIMER_ROW], last = --count(TIMERS);
  int64_t entry[3];
  copy(timer(last), entry);
  int64_t place = 0;
  for (int64_t below = 1; below < last; below = 2 * place + 1) {
    if (below + 1 < last && is_before(timer(below + 1), timer(below))) ++below;
    if (is_before(entry, timer(below))) break;
    copy(timer(below), timer(place));
    place = below;
  }
  copy(entry, timer(place));
  timer(count(FREE_TIMERS)++)[FREE_ROW] = first_row;
  return first_row;
}

// Let a strand go on at a step, in its turn of this instant.
void Run::go_on(int64_t strand, int64_t at) {
  const int64_t place = (count(READY_HEAD) + count(READY)++) % of_.strand_rows;
  list(READY_STRANDS)[place] = strand;
  list(READY_STEPS)[place] = at;
}

// Begin a strand of a request and return its number.
int64_t Run::new_strand(int64_t service, int64_t root, int64_t visit) {
  const int64_t number = list(FREE_LIST)[--count(FREE_STRANDS)];
  int64_t* row = strand(number);
  for (int column = 0; column < strand::STRAND_WIDTH; ++column) row[column] = 0;
  row[strand::SERVICE] = service, row[strand::ROOT] = root, row[strand::VISIT] = visit, row[strand::BEGAN] = now();
  row[strand::MAIN] = number;
  row[strand::CALLER] = row[strand::CHOICE] = row[strand::RESOURCE] = NONE;
  for (int64_t column = 0; column < of_.wait_width; ++column) waits(number)[column] = 0;
  return number;
}

// Free the row of a strand.
void Run::forget(int64_t strand) { list(FREE_LIST)[count(FREE_STRANDS)++] = strand; }

// A strand comes last in a line, whose ends the row has in these columns.
void Run::append(int64_t* row, int64_t head, int64_t tail, int64_t number) {
  strand(number)[strand::FOLLOWING] = NONE;
  (row[tail] < 0 ? row[head] : strand(row[tail])[strand::FOLLOWING]) = number;
  row[tail] = number;
}

}  // namespace hwsim::services
