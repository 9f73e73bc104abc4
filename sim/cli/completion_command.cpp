// rehearse completion: a script for a shell, which asks the program itself what can stand where.
#include <CLI/App.hpp>
#include <map>

#include "sim/cli/command.hpp"
#include "sim/cli/terminal.hpp"

namespace rehearse::cli {
namespace {

// bash cuts words at '=' as well, so that of KEY=VALUE it replaces the value alone.
constexpr const char* bash = R"sh(# bash completion of rehearse: eval "$(rehearse completion bash)"
_rehearse() {
  local line=${COMP_LINE:0:COMP_POINT} words word candidate
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word=${words[-1]}
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    [[ $candidate == *= ]] && compopt -o nospace
    [[ $word == *=* && $COMP_WORDBREAKS == *=* ]] && candidate=${candidate#"${word%%=*}="}
    COMPREPLY+=("$candidate")
  done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _rehearse rehearse
)sh";

constexpr const char* zsh = R"sh(#compdef rehearse
# zsh completion of rehearse: as _rehearse in a folder of $fpath, or eval "$(rehearse completion zsh)"
_rehearse() {
  local -a ready open
  local candidate means
  while IFS=$'\t' read -r candidate means; do
    if [[ $candidate == *= ]]; then open+=("$candidate"); else ready+=("$candidate"); fi
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#ready} + ${#open} )) || { _files; return; }
  (( ${#ready} )) && compadd -- "${ready[@]}"
  (( ${#open} )) && compadd -S '' -- "${open[@]}"
}
if [[ $funcstack[1] == _rehearse ]]; then _rehearse "$@"; else compdef _rehearse rehearse; fi
)sh";

constexpr const char* fish = R"sh(# fish completion of rehearse: rehearse completion fish | source
function __rehearse_complete
    set -l words (commandline -opc)
    $words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c rehearse -a '(__rehearse_complete)'
)sh";

class CompletionScript final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Print the script that completes commands, names and keys in a shell"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  eval \"$(rehearse completion bash)\"        in ~/.bashrc\n"
           "  eval \"$(rehearse completion zsh)\"         in ~/.zshrc, behind compinit\n"
           "  rehearse completion fish >rehearse.fish    into ~/.config/fish/completions\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto shell = std::make_shared<std::string>();
    app.add_option("SHELL", *shell, "bash, zsh or fish")->required();
    return [shell] {
      static const std::map<std::string, const char*, std::less<>> scripts{{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
      const auto script = scripts.find(*shell);
      if (script == scripts.end()) throw config::InputError("unknown shell '" + *shell + "'", "bash, zsh or fish");
      print_result(script->second);
      return Exit::fine;
    };
  }
};

const CommandRegistry::Registration<CompletionScript> completion_script_registration("completion");

}  // namespace
}  // namespace rehearse::cli
