// The peer of hwsim's network benchmarks: SimGrid (S4U, C++), max-min sharing without factors (CM02, no TCP window), solved in
// full at every event (network/optim:Full): its default, Lazy, is slower on the flows and ends the
// tasks 0.2 % too early.
//
//   ring RANKS BYTES            a ring all-reduce, every message of it, behind a star
//   flows star|fat-tree FILE    flows between 512 hosts, all started together; a line of the file: from to bytes
//   tasks FILE                  tasks on 64 hosts of a star and transfers between them; a line of the file: `task HOST FLOP` or
//                               `move FROM TO BYTES`, numbered as they come, or `edge BEFORE AFTER`
//
// Prints the simulated seconds.  g++ -O2 -o simgrid simgrid.cpp -lsimgrid   (Debian: libsimgrid-dev)

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

constexpr double LINK = 12.5e9;  // B/s
constexpr double HOP  = 1e-6;    // s

static std::vector<sg4::Host*> star(int hosts) {
  auto* zone = sg4::create_star_zone("star");
  std::vector<sg4::Host*> found;
  for (int rank = 0; rank < hosts; rank++) {
    const std::string name = "host" + std::to_string(rank);
    auto* host             = zone->create_host(name, 1e9)->seal();
    auto* port             = zone->create_split_duplex_link("port" + std::to_string(rank), LINK)->set_latency(HOP)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {{port, sg4::LinkInRoute::Direction::UP}}, true);
    found.push_back(host);
  }
  zone->seal();
  return found;
}

static void rank_of_ring(int rank, int ranks, std::uint64_t chunk) {
  static int word = 0;
  auto* to        = sg4::Mailbox::by_name(std::to_string((rank + 1) % ranks));
  auto* from      = sg4::Mailbox::by_name(std::to_string(rank));
  for (int step = 0; step < 2 * (ranks - 1); step++) {
    int* got   = nullptr;
    auto taken = from->get_async<int>(&got);
    auto given = to->put_async(&word, chunk);
    taken->wait();
    given->wait();
  }
}

// 8 leaves of 64 hosts, each linked to 32 spines
static std::vector<sg4::Host*> fat_tree() {
  std::vector<sg4::Host*> found;
  const auto host = [&found](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long rank) {
    auto* made = zone->create_host("host" + std::to_string(rank), 1e9)->seal();
    found.push_back(made);
    return std::make_pair(made->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  sg4::create_fatTree_zone("tree", nullptr, {2, {64, 8}, {1, 32}, {1, 1}}, {host, {}, {}}, LINK, HOP,
                           sg4::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  return found;
}

static void all_flows(std::vector<sg4::Host*> hosts, std::string path) {
  std::ifstream file(path);
  std::vector<sg4::CommPtr> flows;
  int source;
  int target;
  double bytes;
  while (file >> source >> target >> bytes)
    flows.push_back(sg4::Comm::sendto_async(hosts[source], hosts[target], static_cast<std::uint64_t>(bytes)));
  for (auto& flow : flows)
    flow->wait();
}

static std::vector<sg4::ActivityPtr> all_tasks(const std::vector<sg4::Host*>& hosts, const std::string& path) {
  std::ifstream file(path);
  std::vector<sg4::ActivityPtr> made;
  std::string word;
  while (file >> word) {
    double first;
    double second;
    file >> first >> second;
    if (word == "edge") {
      auto* before = made[static_cast<std::size_t>(first)].get();
      auto& after  = made[static_cast<std::size_t>(second)];
      if (auto* task = dynamic_cast<sg4::Exec*>(before))
        task->add_successor(after);
      else
        dynamic_cast<sg4::Comm*>(before)->add_successor(after);
    } else if (word == "task") {
      made.push_back(sg4::Exec::init()->set_flops_amount(second)->set_host(hosts[static_cast<std::size_t>(first)]));
    } else {
      double bytes;
      file >> bytes;
      auto* from = hosts[static_cast<std::size_t>(first)];
      auto* to   = hosts[static_cast<std::size_t>(second)];
      made.push_back(sg4::Comm::sendto_init(from, to)->set_payload_size(static_cast<std::uint64_t>(bytes)));
    }
  }
  for (auto& each : made)
    each->vetoable_start();
  return made;
}

int main(int count, char** words) {
  sg4::Engine engine(&count, words);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/optim:Full");
  std::vector<sg4::ActivityPtr> tasks;
  if (count == 4 && std::strcmp(words[1], "ring") == 0) {
    const int ranks   = std::atoi(words[2]);
    const auto hosts  = star(ranks);
    const auto chunk  = static_cast<std::uint64_t>(std::atof(words[3]) / ranks);
    for (int rank = 0; rank < ranks; rank++)
      sg4::Actor::create("rank", hosts[rank], rank_of_ring, rank, ranks, chunk);
  } else if (count == 4 && std::strcmp(words[1], "flows") == 0) {
    const auto hosts = std::strcmp(words[2], "star") == 0 ? star(512) : fat_tree();
    sg4::Actor::create("all", hosts[0], all_flows, hosts, std::string(words[3]));
  } else if (count == 3 && std::strcmp(words[1], "tasks") == 0) {
    tasks = all_tasks(star(64), words[2]);
  } else {
    std::fprintf(stderr, "ring RANKS BYTES | flows star|fat-tree FILE | tasks FILE\n");
    return 2;
  }
  engine.run();
  std::printf("%.9f\n", sg4::Engine::get_clock());
  return 0;
}
