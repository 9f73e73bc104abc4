// The keys of a mapping, declared once: reading with its checks, hints about unknown keys, writing, lists, schema and reference follow.
//
//   const Keys<Overlap>& overlap_keys() {
//     static const Keys<Overlap> keys{
//         {"tp", &Overlap::tp, truth(), "Split products and collectives of tensor parallelism run beside each other."},
//         {"tp_splits", &Overlap::tp_splits, whole(1, 1024), "Pieces of it."}};
//     return keys;
//   }
//
// A key more is a field of the struct, whose initial value is the default, and a line here.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/form.hpp"

namespace rehearse::config {

template <class Owner>
class Key {
 public:
  // `field`: where the value lives, a pointer to member or a callable that takes the owner, const or not; it may be optional.
  template <class Field, class Value>
  Key(std::string name, Field field, const Form<Value>& form, std::string means)
      : about_{std::move(name), form.shape, false, "", std::move(means)} {
    read_ = [field, read = form.read](const Node& node, Owner& owner) { std::invoke(field, owner) = read(node); };
    if (!form.write) return;
    write_ = [field, write = form.write](const Owner& owner) -> Node {
      const auto& value = std::invoke(field, owner);
      if constexpr (requires { write(value); }) {
        return write(value);
      } else {
        return value ? write(*value) : Node();
      }
    };
    if (form.shape.kind == Shape::Kind::mapping) return;
    const Node initial = write_(Owner{});
    if (initial) about_.otherwise = one_line(initial);
  }

  // A key that is read and written in its own way; `write` may be empty.
  Key(std::string name, Shape shape, std::function<void(const Node&, Owner&)> read, std::function<Node(const Owner&)> write,
      std::string means)
      : about_{std::move(name), std::move(shape), false, "", std::move(means)}, read_(std::move(read)), write_(std::move(write)) {}
  // The same with a large shape, which is made when somebody asks for it: most files are read without.
  Key(std::string name, std::function<Shape()> shape, std::function<void(const Node&, Owner&)> read,
      std::function<Node(const Owner&)> write, std::string means)
      : about_{std::move(name), {}, false, "", std::move(means)},
        shape_(std::move(shape)),
        read_(std::move(read)),
        write_(std::move(write)) {}

  [[nodiscard]] Key required() && {
    about_.required = true;
    about_.otherwise.clear();
    return std::move(*this);
  }
  // What holds where the key is left out, for people, where it is not the field's initial value; `settle` sees to it.
  [[nodiscard]] Key otherwise(std::string text, std::function<void(Owner&)> settle = {}) && {
    about_.otherwise = std::move(text);
    settle_ = std::move(settle);
    return std::move(*this);
  }
  // Written only when this holds.
  [[nodiscard]] Key written_if(std::function<bool(const Owner&)> holds) && {
    write_ = [write = std::move(write_), holds = std::move(holds)](const Owner& owner) { return holds(owner) ? write(owner) : Node(); };
    return std::move(*this);
  }
  // Written in another way.
  [[nodiscard]] Key written(std::function<Node(const Owner&)> write) && {
    write_ = std::move(write);
    return std::move(*this);
  }
  // Reads one of the keys below, by its dotted path from here.
  [[nodiscard]] Key below(std::function<void(std::string_view, const Node&, Owner&)> read) && {
    read_below_ = std::move(read);
    return std::move(*this);
  }
  // A choice on its own: `explain` shows what each of its values would change, the first being "without it".
  [[nodiscard]] Key feature() && {
    about_.feature = true;
    return std::move(*this);
  }

  [[nodiscard]] const std::string& name() const { return about_.name; }
  [[nodiscard]] bool is_required() const { return about_.required; }
  [[nodiscard]] Parameter about() const {
    Parameter about = about_;
    if (shape_) about.shape = shape_();
    return about;
  }
  void read(const Node& node, Owner& owner) const { read_(node, owner); }
  // Reads the value of this key (path "") or of one below it.
  void read_at(std::string_view path, const Node& node, Owner& owner) const {
    if (path.empty()) return read_(node, owner);
    if (!read_below_) throw InputError("no key '" + std::string(path) + "' in " + about_.name);
    read_below_(path, node, owner);
  }
  void settle(Owner& owner) const {
    if (settle_) settle_(owner);
  }
  [[nodiscard]] Node write(const Owner& owner) const { return write_ ? write_(owner) : Node(); }

 private:
  Parameter about_;
  std::function<Shape()> shape_;  // where it is not in about_
  std::function<void(const Node&, Owner&)> read_;
  std::function<void(std::string_view, const Node&, Owner&)> read_below_;
  std::function<void(Owner&)> settle_;
  std::function<Node(const Owner&)> write_;
};

template <class Owner>
class Keys {
 public:
  Keys(std::initializer_list<Key<Owner>> keys) : Keys(std::vector<Key<Owner>>(keys)) {}
  explicit Keys(std::vector<Key<Owner>> keys) : keys_(std::move(keys)) {
    for (const Key<Owner>& key : keys_) names_.push_back(key.name());
  }

  // Reads a mapping into `owner` in the order of the keys: refuses unknown ones first, then one that is missing or wrong.
  void read(const Node& node, Owner& owner) const {
    node.allow_keys(names_, [this](std::string_view name) { return paths_to(name, shape()); });
    for (const Key<Owner>& key : keys_) read_key(key, node, owner);
  }
  // The same of a mapping that may be absent.
  void read(const std::optional<Node>& node, Owner& owner) const {
    if (node) return read(*node, owner);
    for (const Key<Owner>& key : keys_) key.settle(owner);
  }

  // Reads the value of one key, by its dotted path: "parallel.tp". Refuses unknown ones.
  void read_at(std::string_view path, const Node& node, Owner& owner) const {
    const std::size_t dot = path.find('.');
    const Key<Owner>* key = find(path.substr(0, dot));
    if (key == nullptr) throw InputError("unknown key " + shown(path), suggestion(path.substr(0, dot), names_));
    key->read_at(dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1), node, owner);
  }

  // What `owner` holds, as a mapping; keys that have nothing to write are left out.
  [[nodiscard]] Node write(const Owner& owner) const {
    Node out;
    for (const Key<Owner>& key : keys_) {
      if (const Node value = key.write(owner)) out.set_child(key.name(), value);
    }
    return out;
  }

  // One of the keys by name; nullptr when there is none.
  [[nodiscard]] const Key<Owner>* find(std::string_view name) const {
    for (const Key<Owner>& key : keys_) {
      if (key.name() == name) return &key;
    }
    return nullptr;
  }

  [[nodiscard]] Shape shape() const {
    Shape shape{.kind = Shape::Kind::mapping};
    for (const Key<Owner>& key : keys_) shape.keys.push_back(key.about());
    return shape;
  }

 private:
  static void read_key(const Key<Owner>& key, const Node& node, Owner& owner) {
    if (key.is_required()) return key.read(node.at(key.name()), owner);
    if (const auto given = node.find(key.name())) return key.read(*given, owner);
    key.settle(owner);
  }

  std::vector<Key<Owner>> keys_;
  std::vector<std::string> names_;
};

// A mapping with these keys as a value.
template <class Owner>
[[nodiscard]] Form<Owner> mapping(const Keys<Owner>& keys) {
  return {keys.shape(),
          [&keys](const Node& node) {
            Owner owner{};
            keys.read(node, owner);
            return owner;
          },
          [&keys](const Owner& owner) { return keys.write(owner); }};
}

}  // namespace rehearse::config
