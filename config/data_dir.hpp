// Where the ready-made files are (workloads/models, workloads/jobs, platforms/*).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::config {

// PREFIX of the program, which lies in PREFIX/bin, or of Python's module in PREFIX/lib/python3/dist-packages.
[[nodiscard]] std::filesystem::path install_prefix();

// The folder that holds workloads/ and platforms/: $REHEARSE_DATA, else share/rehearse below install_prefix(), else the source
// tree that it was built from, else (for programs on the installed library) /usr/local/share or /usr/share. Throws InputError where there
// is none.
[[nodiscard]] std::string data_dir();

// Names (without .yaml) of the files in a folder below data_dir(), sorted: data_names("workloads/models").
[[nodiscard]] std::vector<std::string> data_names(std::string_view folder);

// Path of data_dir()/folder/name.yaml, or "" when there is no such file.
[[nodiscard]] std::string data_file(std::string_view folder, std::string_view name);

}  // namespace rehearse::config
