// One copy of a model as its server runs it: `hwsim.families.serving.actors.copy.Copy`, decision by decision.
#pragma once

#include <deque>
#include <queue>
#include <tuple>

#include "served_run.h"

namespace hwsim::served {

class DoesNotFit {
 public:
  int64_t tokens;
};

class Copy {
 public:
  const int64_t number;
  std::deque<Request*> waiting;
  std::vector<Request*> partial;
  Pool pool;
  Growth growth;
  int64_t iterations = 0, answers = 0;

  Copy(int64_t at, const Settings& settings, int64_t blocks, const int64_t* needs, int64_t many, Books& books)
      : number(at), pool(blocks), growth(settings.block, needs, many), settings_(settings), books_(books),
        ratio_(settings.promise_first) {}

  int64_t in_line() const { return static_cast<int64_t>(waiting.size()); }
  int64_t requests() const { return in_line() + static_cast<int64_t>(partial.size()) + answers; }
  bool is_idle() const { return answers == 0 && partial.empty(); }
  Request* head() const { return waiting.empty() ? nullptr : waiting.front(); }

  // The next iterations; false if there is nothing to do.
  bool next(Time instant, Run& run) {
    for (;;) {
      const bool idle = is_idle();
      if (idle && waiting.empty()) return false;
      const int64_t before = put_off_;
      const Time seen = idle ? instant : instant - 1;
      if (idle || iterations % settings_.look == 0) door_ = settings_.ahead && !idle ? seen_ : seen;
      seen_ = seen;
      const bool mixes = settings_.prompts == BESIDE;
      const int64_t wanted = mixes && answers ? makes_room(instant) : 0;
      run = Run{};
      if (!partial.empty() || !waiting.empty()) {
        parts(instant, wanted, run.parts);
      } else {
        refuses(NONE);
      }
      if (run.parts.empty() && !mixes && answers) makes_room(instant);
      const int64_t writing = mixes || run.parts.empty() ? answers : 0;
      run.index = iterations;
      run.begin = instant;
      run.seen = seen;
      run.answers = writing;
      run.ended = writing;
      if (run.parts.empty()) {
        if (!writing) {
          if (put_off_ > before) continue;
          if (const Request* first = head(); first && first->at <= instant) throw DoesNotFit{first->to_read};
          return false;
        }
        run.context = context_ + writing;
        run.most = mixes || put_off_ == before ? most() : 1;
        is_open_ = writing + static_cast<int64_t>(partial.size()) < settings_.sequences && !(head() && head()->at <= door_) &&
                   (mixes ? writing < settings_.budget : settings_.prompts == BEFORE);
        return true;
      }
      run.context = writing ? context_ + writing : 0;
      for (const auto& [request, tokens] : run.parts) run.ended += request->read + tokens >= request->to_read;
      if (writing) pool.take(growth.wanted(1));
      return true;
    }
  }

  void cut(Run& run, Time at) const {
    if (run.count > 1 && is_open_) run.count = std::min(run.count, run.joins(run.after(at), settings_.ahead, settings_.look));
  }

  // The iterations of a run have ended; `over` are the requests that are answered.
  void done(Run& run, Time end, std::vector<Request*>& over) {
    const int64_t count = run.count;
    iterations += count;
    if (run.answers) {
      if (run.parts.empty()) pool.take(growth.wanted(count));
      for (int64_t at = 1; at < count; ++at) {
        if (const int64_t later = growth.due(at)) books_.course.adds(run.begin, run.start(at), -later);
      }
      growth.grow(count);
      count_ += count;
      context_ += run.answers * count;
      if (settings_.admit == BY_RATIO) rest_ -= run.answers * count;
    }
    Time begin = run.begin;
    int64_t first = 0;
    if (count > 1) {
      if (!waiting.empty() && waiting.back()->at > door_) arrived(run, end, begin, first);
      looked(run);
    }
    const Spent spent = run.spent(first, count, begin, end);
    if (!run.parts.empty()) {
      const int64_t all = run.tokens();
      for (const auto& [request, tokens] : run.parts) {
        const int64_t prompts = narrow(spent[PROMPTS]);  // times tokens, over all of them, without a product of 128 bits
        if (request->lost < 0) request->alone += static_cast<Time>(prompts / all) * tokens + prompts % all * tokens / all;
      }
    }
    meters().iterated(begin, end, spent);
    books_.iterated(number, run.begin, end, run.answers, run.answers + static_cast<int64_t>(run.parts.size()),
                    pool.blocks - pool.free, count, count > 1 ? static_cast<Time>(run.first) : end - begin, run.slope);
    over.clear();
    for (const auto& [request, tokens] : run.parts) reads(request, tokens, end, over);
    while (!ends_.empty() && (ends_.top().count <= count_ || ends_.top().is_stale())) {
      const Ending ending = ends_.top();
      ends_.pop();
      if (ending.is_stale()) continue;
      Request* request = ending.request;
      const int64_t length = stops(request);
      counts(*request, -1);
      const auto pieces = static_cast<int64_t>(request->ids.size());
      if (settings_.prefixes && (pieces - 1) * request->span >= request->prompt) shares(*request, length);
      gives(*request);
      over.push_back(request);
    }
    if (over.empty()) return;
    hold_ = 0;
    for (Request* request : over) books_.ends(request, end, settings_.out);
    if (order_.size() > 4 * static_cast<size_t>(answers) + 4 * partial.size() + 64) {
      std::erase_if(order_, [](const Joined& each) { return each.is_gone(); });
    }
  }

 private:
  struct Joined {
    Request* request;
    int64_t number, put_off;
    bool is_gone() const { return request->number != number || request->put_off != put_off || request->is_over; }
  };
  struct Ending {
    int64_t count, place;
    Request* request;
    int64_t number, put_off;
    bool is_stale() const { return request->number != number || request->put_off != put_off; }
    bool operator<(const Ending& other) const { return std::tie(other.count, other.place) < std::tie(count, place); }
  };
  static constexpr int64_t AGAIN_AFTER = 16, WRITTEN = 20;

  const Settings& settings_;
  Books& books_;
  int64_t count_ = 0, context_ = 0, put_off_ = 0, places_ = 0, hold_ = 0;
  Time seen_ = -1, door_ = -1;
  bool is_open_ = false;
  std::priority_queue<Ending> ends_;
  std::vector<Joined> order_;
  int64_t whole_ = 0, rest_ = 0, outputs_ = 0, since_ = 0;
  double ratio_;

  Meters& meters() { return books_.meters[static_cast<size_t>(number)]; }
  void refuses(Refusal why) { meters().refusal = why; }

  int64_t most() const {
    int64_t most = ends_.top().count - count_;
    if (hold_ > iterations) most = std::min(most, hold_ - iterations);
    if ((most / settings_.block + 1) * answers > pool.free && growth.wanted(most) > pool.free) {
      int64_t low = 0, high = most;
      while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (growth.wanted(middle) <= pool.free ? low : high) = middle;
      }
      most = low;
    }
    return most;
  }

  int64_t makes_room(Time instant) {
    int64_t wanted;
    while ((wanted = growth.wanted(1)) > pool.free) puts_off(last(), instant);
    return wanted;
  }

  void parts(Time instant, int64_t wanted, std::vector<std::pair<Request*, int64_t>>& read) {
    int64_t left = settings_.budget - (settings_.prompts == BESIDE ? answers : 0);
    const std::vector<Request*> under_way = partial;
    for (Request* request : under_way) {
      const int64_t tokens = std::min(left, request->to_read - request->read);
      if (tokens <= 0 || std::find(partial.begin(), partial.end(), request) == partial.end()) continue;
      const int64_t blocks = std::max<int64_t>(0, growth.need(request->read + tokens) - held(*request));
      while (blocks > pool.free - wanted && last() != request) puts_off(last(), instant);
      if (blocks > pool.free - wanted) {
        puts_off(request, instant);
        continue;
      }
      grows(*request, growth.need(request->read + tokens));
      left -= tokens;
      read.emplace_back(request, tokens);
    }
    if (waiting.empty() || left <= 0 || read.size() < partial.size()) return refuses(NONE);
    if (settings_.prompts == ALONE && answers) return refuses(FOR_SEATS);
    refuses(join(read, left, wanted, instant));
  }

  Refusal join(std::vector<std::pair<Request*, int64_t>>& read, int64_t left, int64_t wanted, Time instant) {
    int64_t promised = 0;
    std::vector<Key> keys;
    while (!waiting.empty() && waiting.front()->at <= door_) {
      if (answers + static_cast<int64_t>(partial.size()) >= settings_.sequences) return FOR_SEATS;
      if (left <= 0) return NONE;
      if (hold_ > iterations) return FOR_ROOM;
      Request* request = waiting.front();
      int64_t hit = 0, stale = 0;
      keys.clear();
      found(*request, keys, hit, stale);
      const int64_t spared = std::min(hit * settings_.block, (request->to_read - 1) / settings_.block * settings_.block);
      const int64_t rest = request->to_read - spared;
      int64_t tokens = std::min(left, rest);
      if (!settings_.chunked && tokens < rest) {
        if (!read.empty() || (settings_.prompts == BESIDE && answers)) return NONE;
        tokens = rest;
      }
      const int64_t blocks = std::max<int64_t>(0, growth.need(request->to_read) - hit);
      if (!fits(*request, blocks + stale, rest, wanted, promised)) {
        if (settings_.admit == BY_RATIO && !is_idle()) hold_ = (iterations / AGAIN_AFTER + 1) * AGAIN_AFTER;
        return FOR_ROOM;
      }
      waiting.pop_front();
      promised += std::min(request->output - request->written, settings_.promise_most) + rest - tokens;
      pool.uses(keys);
      request->keys = keys;
      request->hit = hit;
      request->own = request->kept = 0;
      request->read = request->cached = spared;
      grows(*request, growth.need(spared + tokens));
      left -= tokens;
      counts(*request, 1);
      order_.push_back({request, request->number, request->put_off});
      partial.push_back(request);
      read.emplace_back(request, tokens);
      books_.begins(*request, instant);
    }
    return NONE;
  }

  bool fits(const Request& request, int64_t blocks, int64_t rest, int64_t wanted, int64_t promised) const {
    const int64_t free = pool.free - wanted;
    if (is_idle()) return blocks <= free;
    if (blocks > free - static_cast<int64_t>(settings_.spare * static_cast<double>(pool.blocks))) return false;
    if (settings_.admit == BY_ANSWER) return whole_ + growth.need(request.prompt + request.output) <= pool.blocks;
    if (settings_.admit != BY_RATIO) return true;
    const auto kept = static_cast<int64_t>(part() * static_cast<double>(std::max<int64_t>(0, rest_))) + promised;
    return rest + std::min(request.output - request.written, settings_.promise_most) + kept < free * settings_.block;
  }

  double part() const {
    const double less = (settings_.promise_first - settings_.promise_least) * static_cast<double>(count_ - since_) /
                        static_cast<double>(settings_.promise_steps);
    return std::max(settings_.promise_least, ratio_ - less);
  }

  // A request joins (1) or leaves (-1), with what it has yet to write.
  void counts(const Request& request, int64_t sign) {
    if (settings_.admit == BY_ANSWER) {
      whole_ += sign * growth.need(request.prompt + request.output);
    } else if (settings_.admit == BY_RATIO) {
      rest_ += sign * (std::min(request.output, settings_.promise_most) - request.written);
      outputs_ += sign * request.output;
    }
  }

  Request* last() {
    while (order_.back().is_gone()) order_.pop_back();
    return order_.back().request;
  }

  void puts_off(Request* request, Time instant) {
    int64_t length;
    if (const auto at = std::find(partial.begin(), partial.end(), request); at != partial.end()) {
      partial.erase(at);
      length = request->read;
    } else {
      length = stops(request);
    }
    counts(*request, -1);
    if (settings_.admit == BY_RATIO) {
      const auto written = static_cast<double>(std::max<int64_t>(0, outputs_ - rest_) + WRITTEN * answers);
      ratio_ = std::max(part(), std::min(1.0, written / static_cast<double>(std::max<int64_t>(1, outputs_))));
      since_ = count_;
    }
    const int64_t begun = request->hit + request->kept, full = length / settings_.block - begun;
    const Key own{OWN, request->number};
    if (settings_.prefixes && full > 0 && !has(*request, own) && pool.keeps(own, full)) {
      request->own -= full;
      request->keys.push_back(own);
    }
    release(*request);
    hold_ = 0;
    ++put_off_;
    ++request->put_off;
    request->read = request->hit = 0;
    request->kept = begun;
    request->to_read = request->prompt + request->written;
    waiting.push_front(request);
    books_.puts_off(request, instant, length);
  }

  // ---- blocks of the cache

  static bool has(const Request& request, const Key& key) {
    return std::find(request.keys.begin(), request.keys.end(), key) != request.keys.end();
  }
  static int64_t held(const Request& request) { return request.hit + request.kept + request.own; }

  // The pieces of a prompt, or of this number of tokens, with their whole blocks.
  std::vector<Key> pieces(const Request& request, int64_t tokens) const {
    std::vector<Key> made;
    int64_t before = 0, number = 0;
    for (const int64_t id : request.ids) {
      const int64_t blocks = std::min(++number * request.span, tokens) / settings_.block;
      if (blocks > before) made.emplace_back(id, blocks - before);
      before = blocks;
    }
    return made;
  }

  void found(const Request& request, std::vector<Key>& keys, int64_t& hit, int64_t& stale) const {
    if (!settings_.prefixes || (request.ids.empty() && !request.put_off)) return;
    const std::vector<Key> every = pieces(request, request.prompt);
    int64_t blocks = 0;
    for (const Key& key : every) blocks += key.second;
    pool.beginning(every, keys, hit, stale);
    if (hit < blocks) return;
    const Key own{OWN, request.number};
    if (!request.put_off || hit != request.kept) return;
    if (const int64_t there = pool.held(own)) {
      keys.push_back(own);
      hit += there;
      stale += there;
    }
  }

  void grows(Request& request, int64_t blocks) {
    const int64_t more = blocks - held(request);
    if (more <= 0) return;
    pool.take(more);
    request.own += more;
  }

  // Others may use the pieces that are read; tokens: of prompt and answer once it has ended, else 0.
  void shares(Request& request, int64_t tokens) {
    const int64_t full = (tokens ? tokens : request.read) / settings_.block;
    int64_t start = 0;
    for (const Key& key : pieces(request, tokens ? tokens : request.prompt)) {
      start += key.second;
      if (start > full) return;
      if (start > request.hit + request.kept && key.second <= request.own && !has(request, key)) {
        if (!pool.keeps(key, key.second)) return;
        request.own -= key.second;
        request.kept += key.second;
        request.keys.push_back(key);
      }
    }
  }

  void release(Request& request) {
    pool.gives(request.own, request.keys);
    request.own = 0;
    request.keys.clear();
  }

  // ---- iterations that have ended

  void arrived(const Run& run, Time end, Time& begin, int64_t& first) {
    std::vector<int64_t> numbers;
    int64_t seen = run.count;
    for (auto each = waiting.rbegin(); each != waiting.rend() && (*each)->at > door_; ++each) {
      if ((*each)->at >= end) continue;
      const int64_t at = run.after((*each)->at);
      numbers.push_back(at - 1);
      numbers.push_back(at);
      seen = std::min(seen, run.joins(at, settings_.ahead, settings_.look));
    }
    const bool is_full = answers + static_cast<int64_t>(partial.size()) >= settings_.sequences || settings_.prompts == ALONE;
    if (is_full) numbers.push_back(seen);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    for (const int64_t at : numbers) {
      if (first < at && at < run.count) {
        const Time until = run.start(at);
        meters().iterated(begin, until, run.spent(first, at, begin, until));
        begin = until;
        first = at;
      }
      if (is_full && at >= seen && at < run.count) refuses(FOR_SEATS);
    }
  }

  // Until when requests had come at the last decision of a run, and at the last look for them.
  void looked(const Run& run) {
    const int64_t last_one = run.count - 1;
    if (settings_.look > 1) {
      const int64_t at = (run.index + last_one) / settings_.look * settings_.look - run.index;
      if (at > 0) door_ = at == settings_.ahead ? run.seen : run.start(at - settings_.ahead) - 1;
    }
    seen_ = run.start(last_one) - 1;
  }

  void reads(Request* request, int64_t tokens, Time end, std::vector<Request*>& over) {
    request->read += tokens;
    if (!request->ids.empty() && settings_.prefixes) shares(*request, 0);
    if (request->read < request->to_read) return;
    partial.erase(std::find(partial.begin(), partial.end(), request));
    request->written += request->output != 0;
    if (settings_.admit == BY_RATIO) --rest_;
    books_.writes(request, end, settings_.out);
    if (request->written >= request->output) {
      counts(*request, -1);
      request->joined = count_;
      gives(*request);
      over.push_back(request);
      return;
    }
    request->joined = count_;
    ends_.push({count_ + request->output - request->written, ++places_, request, request->number, request->put_off});
    ++answers;
    context_ += request->read;
    growth.add(request->read);
  }

  // A request answers no more; its tokens in the cache.
  int64_t stops(Request* request) {
    const int64_t steps = count_ - request->joined, length = request->read + steps;
    request->written += steps;
    request->own += growth.need(length) - growth.need(request->read);
    --answers;
    context_ -= length;
    growth.remove(length);
    return length;
  }

  void gives(Request& request) {
    request.is_over = true;
    release(request);
  }
};

}  // namespace hwsim::served
