// A served model that has its devices to itself, without a clock: `hwsim.families.serving.actors.alone`, event by event.
//
// It asks for what only Python knows (the times of kernels, by their sizes), and goes on where it was once it is told.
#pragma once

#include <memory>

#include "hwsim_core.h"
#include "served_copy.h"
#include "served_source.h"
#include "table.h"
#include "watch.h"

namespace hwsim::served {
constexpr int64_t BITS = 5, LONGEST = 1000000000000000;
constexpr double FEMTO = 1e15;
enum Kind : int { END, COME, BEGIN };

struct Line {
  int64_t start, attention, slope, rows, low, step, host;
};

// All exchanges of one kind in an iteration.
struct Phase {
  int64_t cost, time, latency;
  double size, body;
};

struct Exchanges {
  int64_t label;
  std::vector<Phase> phases;
};

struct Cost {
  int64_t label, cost;
};

struct Sum {
  Sizes<3> of;  // copy, label, cost
  double size;
  Time time;
};

inline int64_t bit_length(int64_t value) {
  int64_t bits = 0;
  for (; value > 0; value >>= 1) ++bits;
  return bits;
}

inline int64_t grid(int64_t rows) {
  if (rows <= int64_t{1} << BITS) return rows;
  const int64_t step = int64_t{1} << (bit_length(rows - 1) - BITS);
  return (rows + step - 1) / step * step;
}

// A whole number over 1e15 as the nearest float, as Python divides.
inline double seconds(Time femtoseconds) {
  constexpr int64_t EXACT = int64_t{1} << 53;
  if (femtoseconds <= EXACT) return static_cast<double>(static_cast<int64_t>(femtoseconds)) / FEMTO;
  const int64_t all = narrow(femtoseconds), whole = all / LONGEST;
  int64_t rest = all % LONGEST, bits = whole;  // whole >= 9: bits of the quotient, one after another, until there are 55
  int exponent = 0;
  while (bits < int64_t{1} << 54) {
    rest *= 2;
    bits = 2 * bits + (rest >= LONGEST);
    if (rest >= LONGEST) rest -= LONGEST;
    --exponent;
  }
  return std::ldexp(static_cast<double>(bits | (rest != 0)), exponent);  // the last bit stands for all that are left out
}

inline int64_t nearest(double femtoseconds) { return static_cast<int64_t>(std::nearbyint(femtoseconds)); }

class Service {
 public:
  Service(const int64_t* numbers, const double* parts, const int64_t* graphs, const int64_t* needs)
      : settings_(settings_of(numbers, parts)),
        step_(numbers[13]), each_(numbers[14]), eager_(numbers[15]), kernel_(numbers[16]), starts_(numbers[17]),
        mixed_(numbers[18]), exact_(numbers[19]), coarse_(numbers[20]), router_(numbers[21]), rows_(numbers[27]),
        block_(numbers[28]), graphs_(graphs, graphs + numbers[25]), books_(numbers[23]),
        runs_(static_cast<size_t>(numbers[23])), has_run_(runs_.size(), false), turns_(runs_.size(), 0),
        ends_(runs_.size(), -1), busy_(runs_.size(), 0), source_(numbers[22], numbers[29], numbers[30] != 0) {
    for (int64_t copy = 0; copy < numbers[23]; ++copy) {
      copies_.push_back(std::make_unique<Copy>(copy, settings_, numbers[24], needs, numbers[26], books_));
    }
  }

  void feed(int64_t count, const int64_t* arrivals, const int64_t* afters, const int64_t* prompts, const int64_t* outputs,
            const int64_t* firsts, const int64_t* ids, int64_t span, bool is_last) {
    for (int64_t at = 0; at < count; ++at) {
      Request* request = fresh();
      request->number = ++number_;
      request->prompt = request->to_read = prompts[at];
      request->output = outputs[at];
      request->span = span;
      request->ids.assign(ids + firsts[at], ids + firsts[at + 1]);
      request->arrival = joined(arrivals + 2 * at);
      source_.add(request, afters[at]);
    }
    is_last_ = is_last;
  }

  // What comes next: an answer of `hwsim_served_status`, with its numbers in `asked`.
  int32_t play(int64_t* asked, Watch watch) {
    for (;;) {
      if (watch.is_over()) return HWSIM_MORE;
      if (pending_ == SETTING) {
        if (const int32_t wants = sets(asked)) return wants;
        pending_ = IDLE;
        begun();
      } else if (pending_ == ENDING) {
        if (const int32_t wants = writes(asked)) return wants;
        pending_ = IDLE;
        ended();
        continue;
      }
      if (static_cast<int64_t>(books_.ended.size()) >= block_) {
        asked[0] = static_cast<int64_t>(books_.ended.size());
        return HWSIM_SERVED_ENDED;
      }
      if (!source_.has_rows(is_last_)) return HWSIM_SERVED_WANTS_REQUESTS;
      const bool comes = !source_.is_empty();
      if (due_.empty() || (comes && comes_before(source_.time(), due_.top()))) {
        if (!comes) {
          asked[0] = static_cast<int64_t>(books_.ended.size());
          return HWSIM_DONE;
        }
        arrives(source_.take());
        continue;
      }
      const Event event = due_.top();
      due_.pop();
      now_ = event.time;
      if (event.turn != turns_[static_cast<size_t>(event.copy)]) continue;
      at_ = event.copy;
      if (event.kind == END) {
        pending_ = ENDING;
      } else {
        notes_wake();
        nexts();
      }
    }
  }

  void told_line(const int64_t* key, const int64_t* values) {
    lines_[{key[0], key[1]}] = {values[0], values[1], values[2], values[3], key[1], key[2], values[4]};
  }
  void told_around(const int64_t* key, int64_t time) { around_[{key[0], key[1], key[2]}] = time; }
  void told_prompt(const int64_t* key, int64_t time) { prompts_[{key[0], key[1], key[2]}] = time; }
  void told_sent(const int64_t* key, int64_t time) { sent_[{key[0], key[1]}] = time; }
  void told_cost(const int64_t* values, const double* floats) {
    const Run& run = runs_[static_cast<size_t>(at_)];
    costs_[cost_key(run)] = {values[0], values[1]};
    if (values[2] < 0) return;
    Exchanges exchanges{values[2], {}};
    for (int64_t at = 0; at < values[3]; ++at) {
      const int64_t* phase = values + 4 + 3 * at;
      exchanges.phases.push_back({phase[0], phase[1], phase[2], floats[2 * at], floats[2 * at + 1]});
    }
    exchanges_[exchange_key(run)] = exchanges;
    has_exchanges_ = true;
  }

  // Rows of requests that have ended, 2 words a number; they are forgotten.
  void take_ended(int64_t* rows) {
    for (Request* request : books_.ended) {
      const Time facts[] = {request->number, request->arrival, request->copy,  request->prompt,      request->output,
                            request->begin,  request->first,   request->end,   request->noted_cached};
      for (const Time fact : facts) rows = put(rows, fact);
      for (const Time part : request->parts) rows = put(rows, part);
      for (const Time part : request->to_first) rows = put(rows, part);
      free_.push_back(request);
    }
    books_.ended.clear();
  }

  void sizes(int64_t* out) const {
    int64_t bins = 0;
    for (const int64_t count : books_.gaps.count) bins += count != 0;
    out[0] = bins;
    out[1] = static_cast<int64_t>(sums_.size());
    out[2] = runs_counted_ <= rows_ ? static_cast<int64_t>(records_.size()) : 0;
    out[3] = runs_counted_;
  }

  void results(int64_t* numbers, int64_t* meters, int64_t* course, int64_t* bins, int64_t* sums, double* sizes_of,
               int64_t* records) const {
    const Time single[] = {books_.iterations, books_.worked, books_.put_off, books_.read_again, books_.course.bits,
                           books_.course.area, books_.course.most, books_.gaps.total, books_.gaps.most, now_,
                           first_arrival_, last_arrival_, has_asked_};
    for (const Time number : single) numbers = put(numbers, number);
    for (size_t copy = 0; copy < copies_.size(); ++copy) {
      for (const Time spent : books_.meters[copy].spent) meters = put(meters, spent);
      meters = put(put(meters, ends_[copy]), busy_[copy]);
      meters = put(meters, order_of(copy));
    }
    for (size_t cell = 0; cell < Course::CELLS; ++cell) {
      course = put(put(course, books_.course.came[cell]), books_.course.began[cell]);
      course = put(put(course, books_.course.ended[cell]), books_.course.taken[cell]);
    }
    for (size_t bin = 0; bin < books_.gaps.count.size(); ++bin) {
      if (!books_.gaps.count[bin]) continue;
      *bins++ = static_cast<int64_t>(bin);
      *bins++ = books_.gaps.count[bin];
    }
    for (const Sum& sum : sums_) {
      for (const int64_t part : sum.of) *sums++ = part;
      sums = put(sums, sum.time);
      *sizes_of++ = sum.size;
    }
    if (runs_counted_ <= rows_) {
      for (const Record& each : records_) records = std::copy(each.begin(), each.end(), records);
    }
  }

 private:
  struct Event {
    Time time;
    int kind;
    int64_t copy, turn;
    bool operator<(const Event& other) const {
      return std::tie(other.time, other.kind, other.copy, other.turn) < std::tie(time, kind, copy, turn);
    }
  };
  using Record = Sizes<8>;
  static bool comes_before(Time arrival, const Event& event) {
    return arrival < event.time || (arrival == event.time && event.kind > COME);
  }
  enum Pending { IDLE, SETTING, ENDING };

  const Settings settings_;
  const int64_t step_, each_, eager_, kernel_, starts_, mixed_, exact_, coarse_, router_, rows_, block_;
  const std::vector<int64_t> graphs_;
  Books books_;
  std::vector<std::unique_ptr<Copy>> copies_;
  std::vector<Run> runs_;
  std::vector<char> has_run_;
  std::vector<int64_t> turns_;
  std::vector<Time> ends_, busy_;
  std::vector<size_t> first_ended_;  // copies in the order in which their first runs ended
  std::priority_queue<Event> due_;
  Source source_;
  std::deque<Request> store_;
  std::vector<Request*> free_, over_;
  int64_t number_ = -1, last_copy_ = -1, at_ = 0, runs_counted_ = 0;
  Time now_ = 0;
  Time first_arrival_ = -1, last_arrival_ = 0;
  bool is_last_ = false, has_exchanges_ = false, has_asked_ = false;
  Pending pending_ = IDLE;
  Table<2, Line> lines_;
  Table<3, int64_t> around_, prompts_;
  Table<2, int64_t> sent_;
  Table<7, Cost> costs_;
  Table<3, Exchanges> exchanges_;
  Table<3, size_t> places_;
  std::vector<Sum> sums_;
  std::vector<Record> records_;

  static Settings settings_of(const int64_t* n, const double* parts) {
    return {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], parts[0], parts[1], parts[2]};
  }
  static Time joined(const int64_t* words) { return static_cast<Time>(words[1]) << 64 | static_cast<uint64_t>(words[0]); }
  static int64_t* put(int64_t* out, Time value) {
    *out++ = static_cast<int64_t>(static_cast<uint64_t>(value));
    *out++ = static_cast<int64_t>(value >> 64);
    return out;
  }
  static Record record(const Sizes<6>& facts, Time time) {
    Record made{};
    std::copy(facts.begin(), facts.end(), made.begin());
    put(made.data() + 6, time);
    return made;
  }
  Time order_of(size_t copy) const {
    const auto at = std::find(first_ended_.begin(), first_ended_.end(), copy);
    return at == first_ended_.end() ? -1 : at - first_ended_.begin();
  }

  Request* fresh() {
    if (free_.empty()) return &store_.emplace_back();
    Request* request = free_.back();
    free_.pop_back();
    *request = Request{};
    return request;
  }

  void plan(int64_t copy, Kind kind, Time at) { due_.push({at, kind, copy, ++turns_[static_cast<size_t>(copy)]}); }

  int64_t choose() {
    const auto many = static_cast<int64_t>(copies_.size());
    if (router_ == 2) return last_copy_ = (last_copy_ + 1) % many;
    int64_t best = 0, least = INT64_MAX;
    for (int64_t at = 0; at < many; ++at) {
      const Copy& copy = *copies_[static_cast<size_t>(at)];
      const int64_t count = copy.requests() + (router_ == 1 ? 3 * copy.in_line() : 0);
      if (count < least) best = at, least = count;
    }
    return best;
  }

  // A request wakes its copy; the record of what it came after, and when that was.
  void notes_wake() {
    const Request* head = copies_[static_cast<size_t>(at_)]->head();
    if (!head || head->at != now_ || ends_[static_cast<size_t>(at_)] == now_) return;  // it waited for the end of the last run
    const int64_t after = head->after;
    if (after >= 0) has_asked_ = true;
    if (runs_counted_ > rows_) return;
    Sizes<6> facts{at_, -1, after, 0, 0, 0};
    if (after >= 0) put(facts.data() + 3, head->after_end);
    records_.push_back(record(facts, now_));
  }

  void arrives(Request* request) {
    const Time instant = request->arrival;
    if (first_arrival_ < 0) first_arrival_ = instant;
    last_arrival_ = instant;
    request->at = instant + settings_.api;
    const int64_t number = choose();
    Copy& copy = *copies_[static_cast<size_t>(number)];
    copy.waiting.push_back(request);
    books_.came(request, instant, number);
    if (!has_run_[static_cast<size_t>(number)]) {
      plan(number, BEGIN, std::max(instant, copy.head()->at));
      return;
    }
    Run& run = runs_[static_cast<size_t>(number)];
    if (run.count <= 1) return;
    const int64_t before = run.count;
    copy.cut(run, request->at);
    if (run.count < before) plan(number, END, run.end());
  }

  // The copy decides what it does next; its times are set then.
  void nexts() {
    Copy& copy = *copies_[static_cast<size_t>(at_)];
    has_run_[static_cast<size_t>(at_)] = copy.next(now_, runs_[static_cast<size_t>(at_)]);
    if (has_run_[static_cast<size_t>(at_)]) {
      pending_ = SETTING;
    } else if (copy.head() && copy.head()->at > now_) {
      plan(at_, BEGIN, copy.head()->at);
    }
  }

  void begun() {
    Run& run = runs_[static_cast<size_t>(at_)];
    const Copy& copy = *copies_[static_cast<size_t>(at_)];
    if (copy.head()) copy.cut(run, copy.head()->at);
    plan(at_, END, run.end());
  }

  void ended() {
    Copy& copy = *copies_[static_cast<size_t>(at_)];
    has_run_[static_cast<size_t>(at_)] = false;
    copy.done(runs_[static_cast<size_t>(at_)], now_, over_);
    const int64_t op = runs_counted_ <= rows_ ? static_cast<int64_t>(records_.size()) - 1 : -1;
    for (const Request* request : over_) source_.answered(request->number, now_ + settings_.out, op, now_);
    if (!copy.is_idle()) return nexts();
    if (copy.head()) plan(at_, BEGIN, std::max(now_, copy.head()->at));
  }

  // ---- times, as of `pace.Pace`

  template <size_t N>
  int32_t asks(int32_t what, const Sizes<N>& key, int64_t* asked) const {
    std::copy(key.begin(), key.end(), asked);
    asked[N] = at_;
    return what;
  }

  int64_t host_of(int64_t sequences, int64_t rows) const {
    const int64_t host = step_ + each_ * sequences;
    if (!eager_ || graphs_.empty()) return host;
    const auto at = std::lower_bound(graphs_.begin(), graphs_.end(), rows);
    return at != graphs_.end() && (!exact_ || *at == rows) ? host : host + eager_;
  }

  int32_t sets(int64_t* asked) {
    Run& run = runs_[static_cast<size_t>(at_)];
    const Line* line = nullptr;
    int64_t beyond = 0, more = 0, low = -1;
    if (run.answers) {
      const int64_t floor = run.context / run.answers, step = int64_t{1} << std::max<int64_t>(0, bit_length(floor) - 1 - coarse_);
      low = floor / step * step;
      const auto known = lines_.find({run.answers, low});
      if (known == lines_.end()) return asks<3>(HWSIM_SERVED_WANTS_LINE, {run.answers, low, step}, asked);
      line = &known->second;
      beyond = run.context - run.answers * low;
      int64_t product;
      if (__builtin_mul_overflow(line->slope, beyond, &product)) throw TooFar{};
      more = product / run.answers;
    }
    const auto parts = static_cast<int64_t>(run.parts.size());
    if (!parts) {
      const auto sent = sent_.find({at_, line->rows});
      if (sent == sent_.end()) return asks<2>(HWSIM_SERVED_WANTS_SENT, {at_, line->rows}, asked);
      run.low = low;
      run.kernels = line->start + more;
      run.slope = line->slope;
      run.host = line->host;
      const int64_t left = run.answers * line->step - beyond;
      run.most = std::min(run.most, (left + run.answers - 1) / run.answers);
      run.network = sent->second;
    } else {
      const int64_t rows = run.answers + run.tokens();
      const auto around = around_.find({rows, run.ended, rows});
      if (around == around_.end()) return asks<3>(HWSIM_SERVED_WANTS_AROUND, {rows, run.ended, rows}, asked);
      int64_t kernels = around->second;
      for (const auto& [request, tokens] : run.parts) {
        const auto prompt = prompts_.find({tokens, request->read, parts});
        if (prompt == prompts_.end()) return asks<3>(HWSIM_SERVED_WANTS_PROMPT, {tokens, request->read, parts}, asked);
        kernels += prompt->second;
      }
      const auto sent = sent_.find({at_, -rows});
      if (sent == sent_.end()) return asks<2>(HWSIM_SERVED_WANTS_SENT, {at_, -rows}, asked);
      run.slope = 0;
      run.most = 1;
      if (line) {
        kernels += line->attention + more;
        run.answered = line->start + more;
      }
      run.kernels = kernels;
      run.network = sent->second;
      run.host = mixed_ ? host_of(run.answers + parts, rows) : step_ + each_ * (run.answers + parts);
      if (kernel_ && !(mixed_ && !graphs_.empty() && rows <= graphs_.back())) {
        run.host += std::max<int64_t>(0, starts_ * kernel_ - run.kernels - run.network);
      }
    }
    run.count = run.most;
    run.first = run.host + run.kernels + run.network;
    return 0;
  }

  // ---- what is drawn, as of `costs.Costs` and `alone.Written`

  Sizes<7> cost_key(const Run& run) const {
    if (run.parts.empty()) return {at_, 0, run.answers, run.low, 0, 0, 0};
    int64_t read = 1;
    for (const auto& [request, tokens] : run.parts) read += request->read;
    return {at_, 1, run.answers ? grid(run.answers) : 0, run.answers ? grid(run.context / run.answers) : 0, grid(run.tokens()),
            grid(read), static_cast<int64_t>(run.parts.size())};
  }
  Sizes<3> exchange_key(const Run& run) const { return {at_, !run.parts.empty(), run.answers + run.tokens()}; }

  int32_t writes(int64_t* asked) {
    const Run& run = runs_[static_cast<size_t>(at_)];
    const auto cost = costs_.find(cost_key(run));
    const auto exchanges = exchanges_.find(exchange_key(run));
    if (cost == costs_.end() || (has_exchanges_ && exchanges == exchanges_.end())) {
      const int64_t facts[] = {at_, run.answers, run.context, run.ended, run.low, static_cast<int64_t>(run.parts.size())};
      asked = std::copy(std::begin(facts), std::end(facts), asked);
      for (const auto& [request, tokens] : run.parts) {
        *asked++ = tokens;
        *asked++ = request->read;
      }
      return HWSIM_SERVED_WANTS_COST;
    }
    ++runs_counted_;
    const Time kernels = run.computed(), host = static_cast<Time>(run.host) * run.count, end = run.end();
    const auto [label, number] = cost->second;
    if (runs_counted_ <= rows_) {
      records_.push_back(record({at_, label, number, run.count, narrow(host), exchange_key(run)[2]}, kernels));
      if (!run.parts.empty()) records_.back()[5] = -records_.back()[5];
    }
    if (!has_exchanges_) {
      adds({at_, label, number}, seconds(kernels), host);
    } else {
      Time left = kernels;
      adds({at_, label, number}, seconds(std::min<Time>(left, LONGEST)), host);
      while (left > LONGEST) {
        left -= LONGEST;
        adds({at_, label, number}, seconds(std::min<Time>(left, LONGEST)), 0);
      }
      for (const Phase& phase : exchanges->second.phases) sums(exchanges->second.label, phase, run.count);
    }
    if (busy_[static_cast<size_t>(at_)] == 0 && ends_[static_cast<size_t>(at_)] < 0) first_ended_.push_back(static_cast<size_t>(at_));
    busy_[static_cast<size_t>(at_)] += end - run.begin;
    ends_[static_cast<size_t>(at_)] = end;
    return 0;
  }

  void sums(int64_t label, const Phase& phase, int64_t count) {
    const Sizes<3> of = {at_, label, phase.cost};
    if (count == 1) return adds(of, phase.size, phase.time);
    const int64_t flowing = narrow(static_cast<Time>(count) * nearest(phase.body * phase.size * FEMTO));
    const int64_t pieces = std::max<int64_t>(1, (flowing + LONGEST - 1) / LONGEST);
    const Time time = static_cast<Time>(count) * (phase.time + phase.latency) - static_cast<Time>(pieces) * phase.latency;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t part = flowing / pieces + (piece < flowing % pieces);
      double size = phase.body > 0 ? static_cast<double>(part) / FEMTO / phase.body : 0.0;
      int64_t rest;
      while ((rest = part - nearest(phase.body * size * FEMTO)) < 0) size = static_cast<double>(part + rest) / FEMTO / phase.body;
      adds(of, size, rest + (piece ? 0 : time));
    }
  }

  void adds(const Sizes<3>& of, double size, Time time) {
    const auto [place, is_new] = places_.try_emplace(of, sums_.size());
    if (is_new) sums_.push_back({of, 0.0, 0});
    sums_[place->second].size += size;
    sums_[place->second].time += time;
  }
};

}  // namespace hwsim::served
