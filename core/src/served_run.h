// Settings of a server, runs of its iterations, and the books of its copies: `run.Run`, `hwsim.results.served.Log`.
#pragma once

#include <cmath>

#include "served_cache.h"

namespace hwsim::served {

enum PromptsAre { BESIDE, BEFORE, ALONE };
enum Admission { BY_PROMPT, BY_ANSWER, BY_RATIO };

// `hwsim.workload.serving.settings.Settings`, as far as it decides here.
struct Settings {
  int64_t prompts, chunked, budget, sequences, admit, ahead, look, block, prefixes, api, out;
  int64_t promise_steps, promise_most;
  double promise_first, promise_least, spare;
};

// Iterations that do the same, one after another (`run.Run`).
struct Run {
  int64_t index = 0;
  Time begin = 0, seen = 0;
  std::vector<std::pair<Request*, int64_t>> parts;  // prompts, and the tokens of them that are read
  int64_t answers = 0, context = 0, ended = 0, most = 1, count = 1;
  int64_t first = 0, host = 0, kernels = 0, network = 0, slope = 0, answered = 0, low = -1;

  int64_t tokens() const {
    int64_t all = 0;
    for (const auto& [request, part] : parts) all += part;
    return all;
  }
  Time start(int64_t number) const {
    return begin + static_cast<Time>(first) * number + static_cast<Time>(slope) * (static_cast<Time>(number) * (number - 1) / 2);
  }
  Time end() const { return start(count); }
  Time computed() const {
    return static_cast<Time>(kernels) * count + static_cast<Time>(slope) * (static_cast<Time>(count) * (count - 1) / 2);
  }
  Spent spent(int64_t from, int64_t to, Time since, Time until) const {
    const Time many = to - from, sent = many * network, hosted = many * host;
    const Time more = (static_cast<Time>(to) * (to - 1) - static_cast<Time>(from) * (from - 1)) / 2;
    const Time busy = many * kernels + static_cast<Time>(slope) * more;
    const Time others = until - since - busy - sent - hosted;
    if (parts.empty()) return {0, busy, sent, others, hosted};
    const Time writes = std::min<Time>(busy, answered);
    return {busy - writes, writes, sent, others, hosted};
  }
  // The first of its iterations that begins after an instant, `count` + 1 at most.
  int64_t after(Time instant) const {
    if (instant < begin) return 0;
    int64_t low_ = 0, high = count + 1;  // start(low_) <= instant; the first after it is above low_, at most high
    while (high - low_ > 1) {
      const int64_t middle = low_ + (high - low_) / 2;
      (start(middle) <= instant ? low_ : high) = middle;
    }
    return high;
  }
  int64_t joins(int64_t number, int64_t ahead, int64_t look) const {
    const int64_t at = std::max<int64_t>(1, number + ahead);
    const int64_t behind = (index + at) % look;
    return behind == 0 ? at : at + look - behind;
  }
};

// What all copies write in.
struct Books {
  int64_t copies;
  std::vector<Meters> meters;
  Course course;
  Gaps gaps;
  std::vector<std::vector<std::pair<Request*, Time>>> joined;  // by copy, when requests wrote their last token out of a run
  std::vector<Time> wrote;
  int64_t iterations = 0, worked = 0, put_off = 0, read_again = 0;
  std::vector<Request*> ended;

  explicit Books(int64_t many)
      : copies(many), meters(static_cast<size_t>(many)), joined(static_cast<size_t>(many)), wrote(static_cast<size_t>(many), 0) {}

  void came(Request* request, Time arrival, int64_t copy) {
    request->copy = copy;
    request->arrival = request->noted = arrival;
    request->seen = std::max(arrival, request->at);
    meters[static_cast<size_t>(copy)].came(request);
    course.counts(course.came, arrival);
  }
  void begins(Request& request, Time time) {
    if (request.begin >= 0) return;
    request.noted_cached = request.cached;
    meters[static_cast<size_t>(request.copy)].begins(request, time);
    course.counts(course.began, time);
  }
  void forgets(Request* request) {
    auto& every = joined[static_cast<size_t>(request->copy)];
    for (size_t at = 0; at < every.size(); ++at) {
      if (every[at].first == request) {
        every.erase(every.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      }
    }
  }
  void iterated(int64_t copy, Time start, Time end, int64_t answers, int64_t busy, int64_t blocks, int64_t count, Time first,
                int64_t slope) {
    iterations += count;
    worked += busy * count;
    course.takes(start, end, blocks);
    if (answers == 0) return;
    if (first == 0) first = end - start;
    auto& every = joined[static_cast<size_t>(copy)];
    const Time next = start + first;
    const int64_t before = answers - static_cast<int64_t>(every.size());
    for (const auto& [request, since] : every) gaps.add(next - since, 1);
    if (before > 0) gaps.add(next - wrote[static_cast<size_t>(copy)], before);
    every.clear();
    wrote[static_cast<size_t>(copy)] = end;
    Time gap = first + slope;
    for (int64_t more = 1; more < count; ++more, gap += slope) gaps.add(gap, answers);
  }
  void writes(Request* request, Time time, int64_t out) {
    meters[static_cast<size_t>(request->copy)].writes(*request, time + out);
    joined[static_cast<size_t>(request->copy)].emplace_back(request, time);
  }
  void ends(Request* request, Time time, int64_t out) {
    forgets(request);
    meters[static_cast<size_t>(request->copy)].ends(*request, time + out);
    course.counts(course.ended, time + out);
    ended.push_back(request);
  }
  void puts_off(Request* request, Time time, int64_t lost) {
    meters[static_cast<size_t>(request->copy)].puts_off(*request, time);
    forgets(request);
    ++put_off;
    read_again += lost;
  }
};

}  // namespace hwsim::served
