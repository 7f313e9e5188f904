// The blocks of a copy's cache: `hwsim.families.serving.actors.prefixes` and `blocks`, decision by decision.
#pragma once

#include <list>
#include <unordered_map>

#include "served_books.h"

namespace hwsim::served {

constexpr int64_t OWN = -1;

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t bits = static_cast<uint64_t>(key.first) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(key.second);
    bits ^= bits >> 30;
    return static_cast<size_t>(bits * 0xBF58476D1CE4E5B9u);
  }
};

class Pool {
 public:
  int64_t blocks, free;

  explicit Pool(int64_t all) : blocks(all), free(all) {
    line_.push_back({{0, 0}, false, all});
    last_ = line_.begin();
    has_last_ = true;
  }

  void take(int64_t count) {
    if (count <= 0) return;
    free -= count;
    while (count > 0) {
      auto front = line_.begin();
      if (front->blocks > count) {
        front->blocks -= count;
        return;
      }
      count -= front->blocks;
      if (front->is_piece) {
        places_.erase(front->key);
      } else if (has_last_ && front == last_) {
        has_last_ = false;
      }
      line_.erase(front);
    }
  }

  // Keys of the first pieces that are there, their blocks, and those of them that count as free.
  void beginning(const std::vector<Key>& pieces, std::vector<Key>& keys, int64_t& hit, int64_t& stale) const {
    for (const Key& key : pieces) {
      const auto used = used_.find(key);
      int64_t there = 0;
      if (used != used_.end()) {
        there = used->second.second;
      } else if (const auto place = places_.find(key); place != places_.end()) {
        there = place->second->blocks;
        stale += there;
      }
      if (there == 0) return;
      keys.push_back(key);
      hit += there;
      if (there < key.second) return;
    }
  }

  int64_t held(const Key& key) const {
    if (const auto used = used_.find(key); used != used_.end()) return used->second.second;
    const auto place = places_.find(key);
    return place == places_.end() ? 0 : place->second->blocks;
  }

  void uses(const std::vector<Key>& keys) {
    for (const Key& key : keys) {
      if (const auto used = used_.find(key); used != used_.end()) {
        ++used->second.first;
        continue;
      }
      const auto place = places_.find(key);
      const int64_t count = place->second->blocks;
      line_.erase(place->second);
      places_.erase(place);
      free -= count;
      used_[key] = {1, count};
    }
  }

  bool keeps(const Key& key, int64_t count) {
    if (used_.count(key)) return false;
    if (const auto place = places_.find(key); place != places_.end()) {
      const int64_t stale = place->second->blocks;
      line_.erase(place->second);
      places_.erase(place);
      appends(stale);
    }
    used_[key] = {1, count};
    return true;
  }

  void gives(int64_t count, const std::vector<Key>& keys) {
    if (count > 0) {
      free += count;
      appends(count);
    }
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
      auto used = used_.find(*key);
      if (used->second.first > 1) {
        --used->second.first;
        continue;
      }
      const int64_t blocks_of = used->second.second;
      used_.erase(used);
      line_.push_back({*key, true, blocks_of});
      places_[*key] = std::prev(line_.end());
      has_last_ = false;
      free += blocks_of;
    }
  }

 private:
  struct Free {
    Key key;
    bool is_piece;
    int64_t blocks;
  };
  std::list<Free> line_;  // free blocks in the order of giving back
  std::unordered_map<Key, std::list<Free>::iterator, KeyHash> places_;
  std::unordered_map<Key, std::pair<int64_t, int64_t>, KeyHash> used_;  // (requests that use it, blocks)
  std::list<Free>::iterator last_;  // the end of the line, if blocks of no key stand there
  bool has_last_ = false;

  void appends(int64_t count) {
    if (has_last_) {
      last_->blocks += count;
      return;
    }
    line_.push_back({{0, 0}, false, count});
    last_ = std::prev(line_.end());
    has_last_ = true;
  }
};

// Blocks that answers under way want; needs: blocks of a sequence by its tokens, where layers keep the last ones only.
class Growth {
 public:
  Growth(int64_t block, const int64_t* needs, int64_t many)
      : block_(block), counts_(static_cast<size_t>(block), 0), needs_(needs, needs + many) {}

  int64_t need(int64_t tokens) const {
    if (needs_.empty()) return (tokens + block_ - 1) / block_;
    if (tokens >= static_cast<int64_t>(needs_.size())) throw TooFar{};
    return needs_[static_cast<size_t>(tokens)];
  }

  void add(int64_t tokens) { changes(tokens, 1); }
  void remove(int64_t tokens) { changes(tokens, -1); }
  void grow(int64_t iterations) { grown_ += iterations; }

  int64_t wanted(int64_t iterations) const {
    if (needs_.empty()) {
      const int64_t turns = iterations / block_, rest = iterations % block_;
      int64_t all = turns * many_;
      for (int64_t ahead = 0; ahead < rest; ++ahead) all += due(ahead);
      return all;
    }
    int64_t all = 0;
    for (const auto& [base, count] : bases_) all += count * (need(base + grown_ + iterations) - need(base + grown_));
    return all;
  }

  // Blocks that all want in the iteration after this number of them.
  int64_t due(int64_t ahead) const {
    if (needs_.empty()) {
      int64_t place = (-(grown_ + ahead)) % block_;
      if (place < 0) place += block_;
      return counts_[static_cast<size_t>(place)];
    }
    int64_t all = 0;
    for (const auto& [base, count] : bases_) {
      const int64_t now = base + grown_ + ahead;
      all += count * (need(now + 1) - need(now));
    }
    return all;
  }

 private:
  int64_t block_, many_ = 0, grown_ = 0;
  std::vector<int64_t> counts_;  // by (length when it began, less what all had grown) mod block
  std::vector<int64_t> needs_;
  std::unordered_map<int64_t, int64_t> bases_;

  void changes(int64_t tokens, int64_t change) {
    many_ += change;
    const int64_t base = tokens - grown_;
    if (needs_.empty()) {
      int64_t place = base % block_;
      if (place < 0) place += block_;
      counts_[static_cast<size_t>(place)] += change;
    } else if ((bases_[base] += change) == 0) {
      bases_.erase(base);
    }
  }
};

}  // namespace hwsim::served
