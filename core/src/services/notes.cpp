#include "run.h"

namespace hwsim::services {

using namespace service;

// Close the windows that end at this instant or earlier.
void Run::close_windows(int64_t number) {
  int64_t* row = service(number);
  uint64_t* sums = words(number);
  while (now() >= row[EDGE]) {
    const int64_t edge = row[EDGE];
    add_to(sums + AREA, over(row[HERE], edge - row[LAST]));
    add_to(sums + LINE_AREA, over(row[LINE_LENGTH], edge - row[LINE_LAST]));
    row[LAST] = row[LINE_LAST] = edge;
    uint64_t* windows = words(row[WINDOWS_AT]);
    const auto window = [&](int64_t at) { return windows + at * station::WORDS_WIDTH; };
    put(window(row[WINDOWS] - 1), three_at(sums + AREA));
    put(window(row[WINDOWS] - 1) + 3, three_at(sums + LINE_AREA));
    if (row[WINDOWS] == MOST_WINDOWS) {
      for (int64_t at = 0; at < MOST_WINDOWS / 2; ++at) {
        put(window(at), three_at(window(2 * at + 1)));
        put(window(at) + 3, three_at(window(2 * at + 1) + 3));
      }
      row[WINDOWS] = MOST_WINDOWS / 2;
      row[WINDOW] *= 2;
    }
    ++row[WINDOWS];
    row[EDGE] = edge + row[WINDOW];
  }
}

// Note that a request has come (change: 1) or left (-1).
void Run::count_requests(int64_t number, int64_t change) {
  int64_t* row = service(number);
  if (now() >= row[EDGE]) close_windows(number);
  add_to(words(number) + AREA, over(row[HERE], now() - row[LAST]));
  row[LAST] = now();
  row[HERE] += change;
  if (change < 0) {
    row[ENDED] = now();
    return;
  }
  ++row[ENTERED];
  if (row[FIRST_CAME] < 0) row[FIRST_CAME] = now();
  if (row[HERE] > row[MOST]) row[MOST] = row[HERE];
}

// Note that the line has become longer (change: 1) or shorter (-1).
void Run::count_line(int64_t number, int64_t change) {
  int64_t* row = service(number);
  if (now() >= row[EDGE]) close_windows(number);
  add_to(words(number) + LINE_AREA, over(row[LINE_LENGTH], now() - row[LINE_LAST]));
  row[LINE_LAST] = now();
  row[LINE_LENGTH] += change;
  if (row[LINE_LENGTH] > row[LINE_MOST]) row[LINE_MOST] = row[LINE_LENGTH];
}

// Note that a request has left.
void Run::note_end(int64_t number) {
  const int64_t* row = strand(number);
  const int64_t of = row[strand::SERVICE], took = now() - row[strand::BEGAN];
  int64_t* noted = service(of);
  count_requests(of, -1);
  add_to(words(of) + STAY, over(1, took));
  if (row[strand::FAILED] != 0) {
    const int64_t why = row[strand::WHY];
    ++noted[why == strand::WAS_REFUSED ? REFUSED : why == strand::WAS_DROPPED ? DROPPED : FAILED_COUNT];
  } else if (row[strand::GONE] != 0) {
    ++noted[WASTED];
  } else {
    const int64_t resources = count(counts::RESOURCES);
    int64_t* answer = of_.answers + count(counts::ANSWERS)++ * (counts::ANSWER_WIDTH + resources);
    answer[0] = of, answer[1] = now(), answer[2] = took, answer[3] = row[strand::CHOICE];
    for (int64_t resource = 0; resource < resources; ++resource) answer[counts::ANSWER_WIDTH + resource] = waits(number)[resource];
  }
}

}  // namespace hwsim::services
