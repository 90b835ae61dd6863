"""Frame names: what patterns are matched against."""

from __future__ import annotations

import pytest

from whyhang.schemas.frame import Frame, bare_function

SITE = "/opt/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("all_reduce", "all_reduce"),
        ("Tensor.backward", "backward"),
        ("_exception_logger.<locals>.wrapper", "wrapper"),
        ("A.m.<locals>.B.inner", "inner"),
        ("fetch.<locals>.<listcomp>", "<listcomp>"),
        ("<module>", "<module>"),
        ("<lambda>", "<lambda>"),
    ],
)
def test_function_is_the_last_part(name: str, function: str) -> None:
    """Qualified names of new Pythons and bare names of old ones give one function name."""
    assert bare_function(name) == function


@pytest.mark.parametrize(
    ("filename", "short", "module"),
    [
        (f"{SITE}/torch/autograd/__init__.py", "torch/autograd/__init__.py", "torch.autograd"),
        (f"{SITE}/torch/_tensor.py", "torch/_tensor.py", "torch._tensor"),
        ("/usr/lib/python3/dist-packages/yaml/loader.py", None, "yaml.loader"),
        ("/usr/lib/python3.11/threading.py", "threading.py", "threading"),
        ("/workspace/project/train.py", "train.py", "train"),
        ("torch/distributed/distributed_c10d.py", None, "torch.distributed.distributed_c10d"),
        (None, None, ""),
    ],
)
def test_module_is_the_path_below_the_root(
    filename: str | None, short: str | None, module: str
) -> None:
    """Every layout of site-packages gives the same module name."""
    assert Frame("f", filename, short).module_name == module


def test_native_names_stay_whole() -> None:
    """A demangled name is never cut at a dot or a colon."""
    frame = Frame("c10d::Work::wait(std::chrono::duration<long>)", "x.so", "x.so", 0, "x.so")
    assert frame.id == frame.name
    assert frame.is_native


def test_ids_cover_qualified_and_bare() -> None:
    """One rule serves both: the bare id and the qualified id are known."""
    frame = Frame("Tensor.backward", f"{SITE}/torch/_tensor.py", "torch/_tensor.py", 623)
    assert frame.id == "torch._tensor.backward"
    assert frame.qualified_id == "torch._tensor.Tensor.backward"
    assert frame.in_package
    assert not frame.in_stdlib
