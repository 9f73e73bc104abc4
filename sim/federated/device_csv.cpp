#include <fmt/format.h>

#include "config/table.hpp"
#include "sim/federated/device.hpp"

namespace rehearse::federated {
namespace {

class DeviceCsv {
 public:
  explicit DeviceCsv(const config::Node& reference) : table_(reference) {
    table_.check_titles({"name", "count", "speed_flop_per_s", "ms_per_sample", "uplink_bytes_per_s", "downlink_bytes_per_s", "latency_s",
                         "samples", "memory_bytes", "leakage"},
                        {"name", "uplink_bytes_per_s", "downlink_bytes_per_s", "samples"});
    if (has("speed_flop_per_s") == has("ms_per_sample")) table_.fail("give one of the columns speed_flop_per_s and ms_per_sample");
  }

  std::vector<Entry> read() {
    std::vector<Entry> entries;
    while (table_.next()) entries.push_back(row());
    if (entries.empty()) table_.fail("there are no devices below the titles");
    return entries;
  }

 private:
  [[nodiscard]] bool has(std::string_view title) const { return table_.column(title).has_value(); }

  [[nodiscard]] Entry row() const {
    Entry entry;
    entry.where = table_.where();
    const std::size_t name = *table_.column("name");
    entry.name = table_.cell(name);
    if (entry.name.empty()) table_.fail_at(name, "a device needs a name");
    entry.count = has("count") ? static_cast<int>(whole(entry, "count", 1, most_devices)) : 1;
    entry.samples = Drawn(whole(entry, "samples", 1, 1e12));
    entry.uplink_bytes_per_s = Drawn(number(entry, "uplink_bytes_per_s", 0, 1e15));
    entry.downlink_bytes_per_s = Drawn(number(entry, "downlink_bytes_per_s", 0, 1e15));
    if (has("latency_s")) entry.latency_s = Drawn(number(entry, "latency_s", 0, 1e9));
    if (has("memory_bytes")) entry.memory_bytes = Drawn(number(entry, "memory_bytes", 0, 1e18));
    if (has("leakage")) entry.leakage = Drawn(number(entry, "leakage", 0, 1));
    if (has("speed_flop_per_s")) {
      entry.flop_per_s = Drawn(number(entry, "speed_flop_per_s", 0, 1e24));
    } else {
      constexpr double ms_per_s = 1000;
      entry.s_per_sample = number(entry, "ms_per_sample", 1e-9, 1e12) / ms_per_s;
    }
    return entry;
  }

  [[nodiscard]] double number(const Entry& entry, std::string_view title, double low, double high) const {
    return table_.number(*table_.column(title), low, high, whose(entry));
  }
  [[nodiscard]] double whole(const Entry& entry, std::string_view title, double low, double high) const {
    return static_cast<double>(table_.whole(*table_.column(title), low, high, whose(entry)));
  }
  [[nodiscard]] static std::string whose(const Entry& entry) { return fmt::format("device '{}': ", entry.name); }

  config::Table table_;
};

}  // namespace

std::vector<Entry> read_device_csv(const config::Node& path) { return DeviceCsv(path).read(); }

}  // namespace rehearse::federated
