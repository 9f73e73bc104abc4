#include "sim/faults/fault.hpp"

namespace rehearse::sim {

Slows slowed_by(Component component) {
  switch (component) {
    case Component::gpu:
    case Component::hbm:
    case Component::host:
      return Slows::compute;
    case Component::nic:
    case Component::link:
    case Component::switch_:
      return Slows::ports;
    case Component::spine:
      return Slows::trunks;
    case Component::any:
    case Component::rack:
    case Component::software:
      break;
  }
  return Slows::nothing;
}

}  // namespace rehearse::sim
