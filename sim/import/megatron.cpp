// Megatron-LM: a launch script, a command line (also as `ps` prints it), or the YAML of its functional tests.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "config/tree.hpp"
#include "config/tree_builder.hpp"
#include "sim/import/importer.hpp"
#include "sim/import/megatron_arguments.hpp"
#include "sim/import/shell.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// A part of a text that a shell reads again: without the quotes around it.
std::string unquoted(std::string part) {
  const bool quoted = part.size() > 1 && part.front() == part.back() && (part.front() == '\'' || part.front() == '"');
  return quoted ? part.substr(1, part.size() - 2) : part;
}

// What a word between quotes holds of arguments: "--fp8-format hybrid".
std::vector<ShellWord> cut_again(const ShellCommand& command) {
  std::vector<ShellWord> words;
  for (const ShellWord& word : command.words) {
    const bool several = word.text.find("--") != std::string::npos && word.text.find_first_of(" \t\n") != std::string::npos;
    if (!several) {
      words.push_back({unquoted(word.text), word.line, word.column});
      continue;
    }
    std::string part;
    for (const char c : word.text + ' ') {
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
        part += c;
      } else if (!part.empty()) {
        words.push_back({unquoted(std::move(part)), word.line, word.column});
        part.clear();
      }
    }
  }
  return words;
}

bool is_option(const ShellWord& word) { return word.text.size() > 2 && word.text.starts_with("--"); }

std::string option_name(const std::string& text) {
  std::string name = text.substr(2, text.find('=') == std::string::npos ? std::string::npos : text.find('=') - 2);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::size_t megatron_options(const std::vector<ShellWord>& words) {
  bool known = false;
  std::size_t options = 0;
  for (const ShellWord& word : words) {
    if (!is_option(word)) continue;
    ++options;
    const std::string name = option_name(word.text);
    known = known || name == "num-layers" || name == "micro-batch-size" || name == "tensor-model-parallel-size" || name == "hidden-size";
  }
  return known ? options : 0;
}

// The words of an option as a node with its place.
Node value_of(const TextFile& file, const std::string& name, const std::vector<ShellWord>& words, const ShellWord& option) {
  config::TreeBuilder tree(file.source, "--" + name);
  const auto scalar = [&](const ShellWord& word) { tree.scalar(file.at(word.line, word.column), word.text, false); };
  if (words.empty()) {
    tree.scalar(file.at(option.line, option.column), "", true);  // a switch, or a value that the script does not know
  } else if (words.size() == 1) {
    scalar(words.front());
  } else {
    tree.open(config::TreeBuilder::Kind::sequence, file.at(words.front().line, words.front().column));
    for (const ShellWord& word : words) scalar(word);
    tree.close();
  }
  return config::NodeAccess::make(tree.root());
}

std::int64_t number_or_0(const std::string& text) {
  const bool digits = !text.empty() && text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::stoll(text) : 0;
}

// GPUs, from what launches the program: torchrun's --nnodes x --nproc_per_node, or Slurm's directives. torchrun takes one node where it is
// told nothing.
struct World {
  std::int64_t nodes = 0, per_node = 0;
  bool nodes_given = false;
  void take(const std::string& name, const std::string& value) {
    if (name == "nnodes" || name == "nodes" || name == "num-nodes" || name == "N") {
      nodes = nodes_given ? std::max(nodes, number_or_0(value)) : number_or_0(value);
      nodes_given = true;
    }
    if (name == "nproc-per-node" && !nodes_given) nodes = 1;
    const bool gpus =
        name == "nproc-per-node" || name == "gpus-per-node" || name == "ntasks-per-node" || name == "num-gpus" || name == "gres";
    const std::string last = value.substr(value.rfind(':') == std::string::npos ? 0 : value.rfind(':') + 1);
    if (gpus) per_node = std::max(per_node, number_or_0(last));
  }
  [[nodiscard]] std::int64_t gpus() const { return nodes * per_node; }
};

void take_directives(const ShellScript& script, World& world) {
  for (const ShellCommand& directive : script.directives) {
    for (std::size_t i = 0; i + 1 < directive.words.size(); ++i) {
      const std::string& word = directive.words[i].text;
      if (word == "-N") world.take("nodes", directive.words[i + 1].text);
      if (is_option(directive.words[i])) world.take(option_name(word), directive.words[i + 1].text);
    }
  }
}

// Options before the program are the launcher's.
MegatronArguments arguments_of(const TextFile& file, const std::vector<ShellWord>& words, World& world) {
  const auto program = std::ranges::find_if(words, [](const ShellWord& word) { return word.text.ends_with(".py"); });
  const auto begin = program == words.end() ? words.begin() : program;
  MegatronArguments arguments;
  for (auto word = words.begin(); word != words.end();) {
    const ShellWord& option = *word++;
    if (!is_option(option)) continue;
    std::vector<ShellWord> values;
    const std::size_t equals = option.text.find('=');
    if (equals != std::string::npos) values.push_back({option.text.substr(equals + 1), option.line, option.column});
    while (equals == std::string::npos && word != words.end() && !is_option(*word) && !word->text.ends_with(".py"))
      values.push_back(*word++);
    const std::string name = option_name(option.text);
    world.take(name, values.empty() ? "" : values.front().text);
    const bool launchers = word <= begin && program != words.end();
    if (launchers || name.starts_with("nproc-per-node") || name == "nnodes" || name.starts_with("master-") || name == "node-rank") continue;
    arguments.add(name, value_of(file, name, values, option));
  }
  return arguments;
}

Draft read_script(const ImportRequest& request) {
  const TextFile file = load_text_file(request.path);
  const ShellScript script = read_shell(file, request.variables);
  std::vector<ShellWord> best;
  int candidates = 0;
  // A script that hands its command on as a text (to sbatch, to bash -c in a here-document) has it in a variable.
  for (const std::vector<ShellCommand>* commands : {&script.commands, &script.assigned}) {
    for (const ShellCommand& command : best.empty() ? *commands : std::vector<ShellCommand>{}) {
      std::vector<ShellWord> words = cut_again(command);
      if (megatron_options(words) == 0) continue;
      ++candidates;
      if (megatron_options(words) >= megatron_options(best)) best = std::move(words);
    }
  }
  if (best.empty()) file.fail(1, 1, "no command here has arguments of Megatron-LM", "such as --num-layers 32 --micro-batch-size 1");
  Draft draft(Draft::Kind::job);
  if (candidates > 1)
    draft.infer(fmt::format("of {} commands with Megatron's arguments the one on line {}", candidates, best.front().line));
  for (const std::string& what : script.inferred) draft.infer(what);
  World world;
  take_directives(script, world);
  MegatronArguments arguments = arguments_of(file, best, world);
  arguments.expect_variables();
  if (world.gpus() > 0) draft.infer(fmt::format("gpus: {}, {} nodes x {}", world.gpus(), world.nodes, world.per_node));
  read_megatron_arguments(arguments, world.gpus(), draft);
  return draft;
}

std::string name_in_yaml(const std::string& key) { return option_name(key.starts_with("--") ? key : "--" + key); }

// ${NAME} as somebody else would fill it in before the file is read.
std::string with_variables(std::string text, const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    const std::string mark = "${" + name + "}";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
      text.replace(at, mark.size(), value);
  }
  return text;
}

// All that is left of them, refused at the first one that counts.
void refuse_open_variables(const Node& given) {
  std::string names;
  std::optional<Node> first;
  for (const std::string& key : given.keys()) {
    const Node value = given.at(key);
    const std::string text = value.is_scalar() && !megatron_has_no_effect(name_in_yaml(key)) ? value.as_string() : "";
    const std::size_t begin = text.find("${"), end = text.find('}', begin == std::string::npos ? 0 : begin);
    if (begin == std::string::npos || end == std::string::npos) continue;
    if (!first) first = value;
    const std::string option = " --variable " + text.substr(begin + 2, end - begin - 2) + "=...";
    if (names.find(option) == std::string::npos) names += option;
  }
  if (first) first->fail(fmt::format("the file leaves {} to whoever runs it", config::shown(first->as_string())), "give it:" + names);
}

Draft read_yaml(const ImportRequest& request) {
  const Node file = Node::load_text(with_variables(config::read_file_text(request.path), request.variables), request.path);
  const Node given = file.at("MODEL_ARGS");
  refuse_open_variables(given);
  MegatronArguments arguments;
  for (const std::string& key : given.keys()) arguments.add(name_in_yaml(key), given.at(key));
  Draft draft(Draft::Kind::job);
  for (const std::string& key : file.keys()) {
    if (key != "MODEL_ARGS") draft.ignore(key);
  }
  read_megatron_arguments(arguments, 0, draft);
  return draft;
}

class Megatron final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override {
    return "Megatron-LM: a launch script (read, never run), a command line, test YAML";
  }
  [[nodiscard]] bool has_variables() const override { return true; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    const bool yaml = request.path.ends_with(".yaml") || request.path.ends_with(".yml");
    return yaml ? read_yaml(request) : read_script(request);
  }
};

const ImporterRegistry::Registration<Megatron> megatron_registration("megatron");

}  // namespace
}  // namespace rehearse::sim
