"""The position of a process: the frame that says what it is doing.

Words: DESIGN calls a frame *transparent* when it only carries a wait (threading, selectors, queue)
and a *position* the first frame, from innermost outwards, that a list of the rules claims or that
is user code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

from whyhang.rules.patterns import matcher
from whyhang.rules.ruleset import FrameList
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.stack import Stack, Thread

TRANSPARENT = "transparent"
IDLE = "idle"
MAIN_THREADS = "main_threads"
MAIN_THREAD = "MainThread"

# Calls that only wait for the threads of PyTorch's autograd engine, which run hooks and custom
# backward functions (torch/autograd/graph.py; torch/csrc/autograd/python_engine.cpp).
_HANDS_OVER = frozenset(
    {
        "torch.autograd.backward",
        "torch.autograd.grad",
        "torch.autograd.graph._engine_run_backward",
    }
)
# Waits of a main thread for another of its threads, or for what that one returns.
_LOOKS_ON = frozenset(
    {
        "threading._wait_for_tstate_lock",
        "threading.join",
        "concurrent.futures._base.result",
    }
)
# Where the threads of a pool take their work from.
_POOL = "concurrent.futures.thread._worker"
# The outermost frame of a script, which no thread but the main one has.
_SCRIPT = "<module>"
# What Python calls a thread that it did not start, once that thread asks for its own name.
_FOREIGN_THREAD = "Dummy-*"
# The outermost frames of every thread that Python itself started.
_STARTS = frozenset({"threading._bootstrap", "threading._bootstrap_inner"})

# Frameworks that are often run from a checkout (so without a package root in their path) and
# whose text dumps carry no root at all. Names that projects use for folders of their own
# (`datasets`, `utils`) are missing on purpose.
LIBRARIES = frozenset(
    {
        "PIL",
        "accelerate",
        "aiohttp",
        "apex",
        "bitsandbytes",
        "boto3",
        "botocore",
        "clearml",
        "cloudpickle",
        "comet_ml",
        "composer",
        "cupy",
        "cutlass",
        "cv2",
        "decord",
        "deep_ep",
        "deep_gemm",
        "deepspeed",
        "dill",
        "einops",
        "fairscale",
        "faiss",
        "flash_attn",
        "flax",
        "fsspec",
        "grpc",
        "h5py",
        "habana_frameworks",
        "horovod",
        "httpcore",
        "httpx",
        "huggingface_hub",
        "hydra",
        "intel_extension_for_pytorch",
        "jax",
        "jaxlib",
        "joblib",
        "keras",
        "lightning",
        "lightning_fabric",
        "lmcache",
        "lmdb",
        "matplotlib",
        "mlflow",
        "mpi4py",
        "multiprocess",
        "neptune",
        "numba",
        "numpy",
        "omegaconf",
        "optimum",
        "optree",
        "orbax",
        "pandas",
        "peft",
        "psutil",
        "pyarrow",
        "pycocotools",
        "pydantic",
        "pytorch_lightning",
        "ray",
        "redis",
        "requests",
        "s3fs",
        "safetensors",
        "scipy",
        "sglang",
        "sklearn",
        "swanlab",
        "sympy",
        "tensorboard",
        "tensorboardX",
        "tensordict",
        "tensorflow",
        "torch",
        "torch_npu",
        "torch_xla",
        "torchao",
        "torchaudio",
        "torchcodec",
        "torchdata",
        "torchmetrics",
        "torchrec",
        "torchvision",
        "tqdm",
        "transformer_engine",
        "transformers",
        "triton",
        "trl",
        "urllib3",
        "uvicorn",
        "vllm",
        "wandb",
        "webdataset",
        "xformers",
        "zmq",
    }
)


class Positions:
    """Finds positions under one set of frame lists, each distinct stack once."""

    def __init__(self, lists: Mapping[str, FrameList]) -> None:
        self._matchers: dict[str, Callable[[str], bool]] = {
            name: matcher(entry.patterns) for name, entry in lists.items() if entry.frames
        }
        self._threads = lists[MAIN_THREADS].patterns if MAIN_THREADS in lists else ()
        self._claims: dict[Frame, frozenset[str]] = {}
        self._tops: dict[int, Frame | Missing] = {}
        # Stacks whose id is a key must stay alive, or the id may be another's.
        self._kept: list[Stack] = []

    def claims(self, frame: Frame) -> frozenset[str]:
        """The names of the lists that claim a frame."""
        known = self._claims.get(frame)
        if known is None:
            names = {frame.id, frame.qualified_id}
            known = frozenset(
                name for name, match in self._matchers.items() if any(map(match, names))
            )
            self._claims[frame] = known
        return known

    def top(self, stack: Stack) -> Frame | Missing:
        """The position of a stack: the first claimed or user frame from innermost outwards."""
        known = self._tops.get(id(stack))
        if known is None:
            known = self._find_top(stack)
            self._tops[id(stack)] = known
            self._kept.append(stack)
        return known

    def _find_top(self, stack: Stack) -> Frame | Missing:
        for frame in stack.python:
            claims = self.claims(frame)
            if TRANSPARENT in claims:
                continue
            if claims or is_user_code(frame):
                return frame
        return Missing("no frame of its stack is known or user code")

    def thread(self, process: Process) -> Thread | Missing:
        """The thread that matters.

        One that the rules name, else the main thread (or the one that it waits for), else the only
        one.
        """
        if isinstance(process.threads, Missing):
            return process.threads
        named = [
            thread
            for pattern in self._threads
            for thread in process.threads
            if thread.name and fnmatchcase(thread.name, pattern)
        ]
        if named:
            # One without frames was not read, and what the main thread shows says nothing of it.
            return next((thread for thread in named if thread.stack.python), named[0])
        main = _main_thread(process.threads)
        if main is not None:
            return (
                self._autograd_thread(main, process.threads)
                or self._training_thread(main, process.threads)
                or main
            )
        with_python = [thread for thread in process.threads if thread.stack.python]
        if len(with_python) == 1:
            return with_python[0]
        # A debugger's dump of a worker may show one thread without any Python frame.
        if len(process.threads) == 1:
            return process.threads[0]
        return Missing("its dump shows no main thread")

    def _autograd_thread(self, main: Thread, threads: Sequence[Thread]) -> Thread | None:
        """The thread that runs Python code for a backward pass which the main thread waits for."""
        python = main.stack.python
        if not python or python[0].id not in _HANDS_OVER:
            return None
        others = (t for t in threads if t is not main and _is_foreign(t))
        return next((t for t in others if self._is_at_work(t)), None)

    def _training_thread(self, main: Thread, threads: Sequence[Thread]) -> Thread | None:
        """The only other thread that runs user code or has work of a pool.

        Only where the main thread just waits for it.
        """
        if not self._looks_on(main.stack):
            return None
        others = [
            t
            for t in threads
            if t is not main and (any(map(is_user_code, t.stack.python)) or self._serves(t))
        ]
        if len(others) != 1:
            return None
        top = self.top(others[0].stack)
        if isinstance(top, Missing):
            return None
        # Beside a main thread that rests a thread of the user's may be a mere heartbeat.
        rests = not self._is_at_work(main)
        return None if rests and not self.claims(top) else others[0]

    def _serves(self, thread: Thread) -> bool:
        """Whether a thread of a pool does something that the rules know."""
        return any(f.id == _POOL for f in thread.stack.python) and self._is_at_work(thread)

    def _looks_on(self, stack: Stack) -> bool:
        waits = False
        for frame in stack.python:
            if frame.id in _LOOKS_ON:
                waits = True
                continue
            claims = self.claims(frame)
            if TRANSPARENT not in claims:
                # What a compiler or a saver waits for is its own, and says what the rank does.
                return IDLE in claims or (waits and not claims)
        return waits

    def _is_at_work(self, thread: Thread) -> bool:
        top = self.top(thread.stack)
        return not isinstance(top, Missing) and IDLE not in self.claims(top)


def _main_thread(threads: Sequence[Thread]) -> Thread | None:
    """The main thread; in a dump without names the only one that runs a script."""
    for thread in threads:
        if thread.name == MAIN_THREAD:
            return thread
    scripts = [t for t in threads if t.stack.python and t.stack.python[-1].function == _SCRIPT]
    return scripts[0] if len(scripts) == 1 and not any(t.name for t in threads) else None


def _is_foreign(thread: Thread) -> bool:
    """Whether C++ started the thread; a dump such as faulthandler's names no thread at all."""
    if thread.name and not fnmatchcase(thread.name, _FOREIGN_THREAD):
        return False
    return not any(frame.id in _STARTS for frame in thread.stack.python)


def is_user_code(frame: Frame) -> bool:
    """Whether a frame is of the training code rather than of a library or Python itself."""
    filename = frame.filename
    if frame.is_native or not filename or filename.startswith("<"):
        return False
    if frame.in_package or frame.in_stdlib:
        return False
    top_module = frame.module_name.partition(".")[0]
    if top_module in LIBRARIES:
        return False
    # Only a path without a root can be the standard library's: `threading.py` of a text dump.
    return filename.startswith(("/", "~/")) or top_module not in sys.stdlib_module_names
