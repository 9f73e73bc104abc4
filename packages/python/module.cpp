// _rehearse: predictions in the interpreter's own process, for rehearse.py beside it. What the program prints comes from the same
// functions.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "sim/api/rehearse.hpp"

namespace py = pybind11;

namespace {

// A message may repeat bytes of a file that are no text.
py::str text_of(const std::string& bytes) {
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

void raise(const py::handle& type, const rehearse::Error& error) {
  const py::object value = type(text_of(error.what()));
  value.attr("file") = text_of(error.where().file);
  value.attr("line") = error.where().line;
  value.attr("column") = error.where().column;
  value.attr("message") = text_of(error.message());
  value.attr("suggestion") = text_of(error.suggestion());
  PyErr_SetObject(type.ptr(), value.ptr());
}

using Answer = std::string (*)(const std::string& job, const rehearse::Settings& settings);

void define(py::module_& module, const char* name, Answer answer, const char* means) {
  const auto without_gil = [answer](const std::string& job, const rehearse::Settings& settings) {
    const py::gil_scoped_release others_run;
    return answer(job, settings);
  };
  module.def(name, without_gil, py::arg("job"), py::arg("settings") = rehearse::Settings(), means);
}

}  // namespace

PYBIND11_MODULE(_rehearse, module) {
  static py::handle error;  // lives as long as the interpreter
  error = py::exception<rehearse::Error>(module, "Error").release();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(std::move(thrown));
    } catch (const rehearse::Error& refusal) {
      raise(error, refusal);
    }
  });
  define(module, "predict", rehearse::predict_json, "JSON of `rehearse predict JOB`: a file, or a ready-made name.");
  define(module, "predict_text", rehearse::predict_text_json, "JSON of `rehearse predict -`: of a job that is given itself.");
}
