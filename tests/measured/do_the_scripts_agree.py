"""Do scripts/bands and its kin say one thing of one thing?"""
import importlib.machinery
import importlib.util
import pathlib
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(SCRIPTS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def a_stack_has_one_need_of_each_vendor():
    """What a run reserves is more than what it allocates: of both counters the larger need holds, whichever comes first."""
    bands = script("bands")
    cases, rows = [], []
    for counter, factor in (("allocated", 1.0), ("reserved", 1.08), ("nvidia-smi", 1.04)):
        fitted = [name for name in (f"{counter}-{i}" for i in range(40)) if bands.is_fitted(name)]
        cases += [{"id": name, "failed": None, "needed_share": None, "gpu": "h100-sxm5-80g", "vendor": "nvidia", "software": "pytorch", "experts": False, "gpus": 1, "counter": counter,
                   "measured": {"peak_memory_gib": factor}, "predicted": {"peak_memory_gib": 1.0}} for name in fitted]
        rows.append({"of": "peak", "vendor": "nvidia", "software": "pytorch", "experts": False, "counter": counter, "cases": len(fitted), "most_gpus": 1, "low": 0.9, "high": factor + 0.01})
    needs = [row for row in bands.need_rows(cases, rows) if row.get("software") == "pytorch"]
    assert [(row["half"], row["high"]) for row in needs] == [(1.08, 1.09)], needs


def sheets_have_in_common_what_the_program_has():
    sheets = script("sheets")
    text = (SCRIPTS.parent / "sim/cost/common_efficiency.cpp").read_text()
    sheets.check_lines(text)
    for here, other in (("products{0.914", "products{0.913"), ("ep: {alpha: 1.19}", "ep: {alpha: 1.2}"), ("128: 0.36", "128: 0.37")):
        assert here in text
        try:
            sheets.check_lines(text.replace(here, other))
        except SystemExit:
            continue
        raise AssertionError(f"{other} is not noticed")


def halves_are_the_same_for_all():
    of = script("bands").is_fitted
    assert all(script(name).is_fitted is of for name in ("aims", "coverage", "fit", "sheets"))


if __name__ == "__main__":
    a_stack_has_one_need_of_each_vendor()
    sheets_have_in_common_what_the_program_has()
    halves_are_the_same_for_all()
