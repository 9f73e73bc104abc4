#include "symbolic_buffers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;
using workloads::GroupShape;
using workloads::Round;
using workloads::Transfer;
using Contributions = std::uint64_t;        // bit p: the member at position p
using Buffer = std::vector<Contributions>;  // [block]

// Written anew here from the header's words: members sorted by domain, domains by first appearance.
std::vector<int> positions(const GroupShape& group) {
  std::map<int, int> rank_of_domain;
  for (const int domain : group.domain) rank_of_domain.try_emplace(domain, static_cast<int>(rank_of_domain.size()));
  std::vector<int> members(static_cast<std::size_t>(group.size)), out(members.size());
  for (int m = 0; m < group.size; ++m) members[static_cast<std::size_t>(m)] = m;
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return rank_of_domain[group.domain[static_cast<std::size_t>(a)]] < rank_of_domain[group.domain[static_cast<std::size_t>(b)]];
  });
  for (std::size_t p = 0; p < members.size(); ++p) out[static_cast<std::size_t>(members[p])] = static_cast<int>(p);
  return out;
}

class Exercise {
 public:
  Exercise(CollectiveKind kind, const GroupShape& group, double bytes, int root)
      : kind_(kind),
        n_(static_cast<std::size_t>(group.size)),
        bytes_(bytes),
        root_(static_cast<std::size_t>(root)),
        domain_(group.domain),
        position_(positions(group)) {}

  std::string run(const std::vector<Round>& rounds) {
    lay_out(rounds);
    for (const Round& round : rounds) {
      if (auto fault = play(round); !fault.empty()) return fault;
    }
    return final_fault();
  }

 private:
  [[nodiscard]] std::size_t blocks() const { return kind_ == CollectiveKind::all_to_all ? n_ * n_ : n_; }
  [[nodiscard]] std::size_t position(std::size_t member) const { return static_cast<std::size_t>(position_[member]); }
  [[nodiscard]] Contributions own(std::size_t member) const { return Contributions{1} << position(member); }
  [[nodiscard]] Contributions everybody() const { return n_ == 64 ? ~Contributions{0} : (Contributions{1} << n_) - 1; }
  [[nodiscard]] bool channels_divide_the_buffer() const {
    return kind_ != CollectiveKind::all_to_all && kind_ != CollectiveKind::send_recv;
  }

  void lay_out(const std::vector<Round>& rounds) {
    int channels = 1;
    for (const Round& round : rounds) {
      for (const Transfer& t : round.transfers) channels = std::max(channels, t.channel + 1);
    }
    shares_ = channels_divide_the_buffer() ? static_cast<std::size_t>(channels) : 1;
    std::vector<Buffer> start(n_, Buffer(blocks(), 0));
    for (std::size_t m = 0; m < n_; ++m) fill(start[m], m);
    state_.assign(shares_, start);
  }

  void fill(Buffer& buffer, std::size_t member) const {
    const std::size_t p = position(member);
    for (std::size_t b = 0; b < blocks(); ++b) {
      if (begins_with(p, member, b)) buffer[b] = own(member);
    }
  }

  [[nodiscard]] bool begins_with(std::size_t p, std::size_t member, std::size_t block) const {
    switch (kind_) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce_scatter:
        return true;
      case CollectiveKind::all_gather:
      case CollectiveKind::send_recv:
        return block == p;
      case CollectiveKind::broadcast:
        return member == root_;
      case CollectiveKind::all_to_all:
        return block / n_ == p;
    }
    return false;
  }

  // What member must hold in the end; 0 = anything.
  [[nodiscard]] Contributions promised(std::size_t member, std::size_t block) const {
    switch (kind_) {
      case CollectiveKind::all_reduce:
        return everybody();
      case CollectiveKind::reduce_scatter:
        return block == position(member) ? everybody() : 0;
      case CollectiveKind::all_gather:
        return Contributions{1} << block;
      case CollectiveKind::broadcast:
        return own(root_);
      case CollectiveKind::all_to_all:
        return block % n_ == position(member) ? Contributions{1} << (block / n_) : 0;
      case CollectiveKind::send_recv:
        return block == position((member + n_ - 1) % n_) ? Contributions{1} << block : 0;
    }
    return 0;
  }

  // Everything is sent before anything arrives: within a round nobody passes on what it gets.
  std::string play(const Round& round) {
    std::vector<Transfer> transfers;
    for (const Transfer& t : round.transfers) {
      for (const Transfer& each : spelt_out(t)) transfers.push_back(each);
    }
    std::vector<Buffer> sent;
    for (const Transfer& t : transfers) sent.push_back(payload(t));
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (auto fault = receive(transfers[i], sent[i]); !fault.empty()) return fault;
    }
    return "";
  }

  // What a switch does, as transfers between the members of the domain.
  [[nodiscard]] std::vector<Transfer> spelt_out(const Transfer& t) const {
    if (t.in_switch == workloads::InSwitch::nothing) return {t};
    std::vector<Transfer> out;
    if (workloads::between_domains(t.in_switch)) {
      if (t.from != t.to) out.push_back(t);
      return out;
    }
    for (std::size_t member = 0; member < n_; ++member) {
      if (static_cast<int>(member) == t.to || domain_[member] != domain_[static_cast<std::size_t>(t.to)]) continue;
      Transfer& each = out.emplace_back(t);
      (t.in_switch == workloads::InSwitch::reduction ? each.from : each.to) = static_cast<int>(member);
    }
    return out;
  }

  [[nodiscard]] std::vector<Buffer>& share(const Transfer& t) { return state_[shares_ > 1 ? static_cast<std::size_t>(t.channel) : 0]; }
  [[nodiscard]] std::size_t block(const Transfer& t, int i) const {
    return static_cast<std::size_t>(t.first_block + i * t.block_stride) % blocks();
  }

  Buffer payload(const Transfer& t) {
    Buffer out;
    for (int i = 0; i < t.blocks; ++i) out.push_back(share(t)[static_cast<std::size_t>(t.from)][block(t, i)]);
    return out;
  }

  [[nodiscard]] double expected_bytes(const Transfer& t) const {
    const double whole = kind_ == CollectiveKind::send_recv ? static_cast<double>(n_) : 1;
    return whole * bytes_ * t.blocks / static_cast<double>(n_ * shares_);
  }

  std::string receive(const Transfer& t, const Buffer& sent) {
    if (std::abs(t.bytes - expected_bytes(t)) > 1e-12 * bytes_) return "size of a transfer does not fit its blocks";
    for (int i = 0; i < t.blocks; ++i) {
      const Contributions got = sent[static_cast<std::size_t>(i)];
      Contributions& mine = share(t)[static_cast<std::size_t>(t.to)][block(t, i)];
      if (got == 0) return "sent what it does not have";
      if (t.reduce && (mine & got) != 0) return "counted twice";
      mine = t.reduce ? mine | got : got;
    }
    return "";
  }

  [[nodiscard]] std::string final_fault() const {
    for (const auto& members : state_) {
      for (std::size_t m = 0; m < n_; ++m) {
        for (std::size_t b = 0; b < blocks(); ++b) {
          const Contributions want = n_ == 1 ? 0 : promised(m, b);
          if (want != 0 && members[m][b] != want) return "member " + std::to_string(m) + " ends with the wrong block " + std::to_string(b);
        }
      }
    }
    return "";
  }

  CollectiveKind kind_;
  std::size_t n_;
  double bytes_;
  std::size_t root_;
  std::vector<int> domain_, position_;
  std::size_t shares_ = 1;
  std::vector<std::vector<Buffer>> state_;  // [channel's share of the buffer][member]
};

}  // namespace

std::string wrong_data(const std::vector<Round>& rounds, CollectiveKind kind, const GroupShape& group, double bytes, int root) {
  return Exercise(kind, group, bytes, root).run(rounds);
}

}  // namespace rehearse::tests
