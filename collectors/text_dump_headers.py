"""Lines of a pasted dump that say whose stacks follow: processes, threads, ranks, nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from whyhang.schemas.rankset import MAX_RANK, NOBODY, RankSet

# A list written by hand names few ranks; what names more is no list of ranks.
MAX_LISTED = 65_536
_MAX_HEADER = 400

_PROCESS = re.compile(r"Process (\d{1,9}): ?(.*)\Z")
_PARENT = re.compile(r"Parent Process (\d{1,9}): ?(.*)\Z")
_PYTHON = re.compile(r"Python v(\d\S*)(?: \(.*\))?\Z")
_THREAD = re.compile(
    r"Thread\s*(0x[0-9A-Fa-f]+|\d+|[^\s(:\"]*)?\s*"
    r"(?:\((idle|active|active\+gil|idle\+gil|gil)\))?\s*:?\s*(?:\"(.*)\")?\Z"
)
_FAULT_THREAD = re.compile(
    r"(?:(?P<current>Current t|T)hread (?P<ident>0x[0-9A-Fa-f]+|\d+)(?: \[(?P<name>.*)\])?|Stack)"
    r" \(most recent call first\):\Z"
)
# What programs print above the stacks of `sys._current_frames()`: a thread's name, its number, or
# both. Without a name the number is long: `Thread 3: it works` is prose.
_RECIPE_THREAD = re.compile(
    r"(?:[#*=~>-]+ ?)?(?:(?:stack ?trace|stack|traceback) (?:for|of) )?"
    r"thread(?: ?id)?(?: ?[:=#] ?| )"
    r"(?:\"?(?P<name>[A-Za-z][^\"():]{0,80}(?:\([^()\"]{0,80}\))?)\"?[ ,]*"
    r"\((?:(?:id|ident|tid)[ =:]*)?(?:0x[0-9a-f]+|\d+)(?:, ?daemon)?\)"
    r"|(?:0x[0-9a-f]{6,}|\d{5,})(?: ?\((?P<after>[A-Za-z][^\"()]{0,80})\))?)"
    r"(?: ?[#*=~<-]+)?:?\Z",
    re.IGNORECASE,
)
_PYSTACK_THREAD = re.compile(
    r"Traceback for thread (?P<tid>\d{1,9})(?: \((?P<comm>.*?)\))? \[(?P<status>.*?)\]"
    r" ?\(most recent call last\):\Z"
)
_EU_THREAD = re.compile(r"TID (?P<tid>\d{1,9}):\Z")
_GDB_THREAD = re.compile(
    r"(?:\*?\s*(?P<row>\d+)\s+)?Thread (?:(?P<number>\d+) \(Thread )?0x[0-9A-Fa-f]+ "
    r"\(LWP (?P<tid>\d{1,9})\)(?: \"(?P<name>[^\"]*)\")?\)?:? ?(?P<frame>.*)\Z"
)
_PROGRAM_MADE = re.compile(
    r"\[(?P<stamp>[^\]]*)\] ?Py-?spy dump for (?:PID|process) (?P<pid>\d{1,9})\b", re.IGNORECASE
)
# A command at a prompt, in a shell's trace or in prose, and what debuggers say of a process.
_DUMPING = re.compile(
    r"(?:(?:[\w.@:~/\[\] -]{0,60}[$#%>]|\++|running:?) ?)?(?P<before>(?:[\w./=@:%+-]+ ){0,12}?)"
    r"(?:[\w./-]*/)?(?:py-spy dump|pystack (?:remote|core)|gdb|eu-stack|pstack|gstack)\b"
    r"(?P<after>[^|>]{0,200})",
    re.IGNORECASE,
)
_DUMPED_PID = re.compile(r"(?:--pid[ =]|-p ?| )(\d{1,9})\b(?!\S)")
_EXEC = re.compile(
    r"\bkubectl (?:[\w./=-]+ )*?exec "
    r"(?:(?:-[nc]|--(?:namespace|container|context))[ =]\S+ |-\S+ )*"
    r"(?:pod/)?(?P<pod>[a-z][\w.-]*)"
    r"|\b(?:ssh|rsh) (?:-\S+ )*(?:\w+@)?(?P<host>[A-Za-z][\w.-]*)"
)
_PROMPT = re.compile(r"[\[(]?\w+@(?P<host>[A-Za-z][\w.-]*)[: ]")
_DEBUGGED = re.compile(
    r"(?:Attaching to (?:program: .{1,300}, )?process (?P<pid>\d{1,9})|PID (?P<eu>\d{1,9}) - \w+"
    r"|pid: (?P<core>\d{1,9}) ppid: \d+ sid: \d+)\Z"
)
_RULED = re.compile(
    r"(?:[=#*~+<>─━═-]{2,}|[\u2013\u2014]+|# ) ?(?P<inside>[^=]{1,200}?)"
    r" ?(?:[=#*~+<>─━═-]{2,}|[\u2013\u2014]+)?:?\Z"
)
_GATHERED = re.compile(
    r"(?P<node>[A-Za-z][\w.-]{0,80}(?:\[[\d,-]+\])?)(?: \((?P<count>\d{1,5})\))?\Z"
)
# A name that more likely tells a rank than a machine, even between rules.
_RANKED_NAME = re.compile(r"(?:rank|worker|proc|gpu(?!0\d))s?[-_]?\d+\Z", re.IGNORECASE)
_TAIL = re.compile(r"==> .{1,300} <==\Z")
# Words of a sentence that leads over to a stack: `And here is what rank 3 shows`.
_LEADS_OVER = re.compile(
    r":\Z|\b(?:here|mine|this|these|below|dumps?|stacks?|traces?|back ?traces?|py-spy|gdb)\b",
    re.IGNORECASE,
)
_LIST = r"\d{1,8}(?: ?(?:-|\.\.|\u2013|to|through) ?\d{1,8})?"
_LISTS = rf"{_LIST}(?: ?(?:,|/|&|and) ?{_LIST})*"
_RANKS = re.compile(
    r"\[?(?:all )?(?:(?:global|training|torch|trainer|world)[ _-])?"
    r"(?P<word>ranks?|workers?|gpus?|procs?|DP|TP|EP|PP)"
    rf"[ _#:=-]{{0,2}}(?P<list>{_LISTS})\]?(?P<rest>.*)\Z",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(?:the )?(?:other |remaining )?(?P<count>\d{1,6}) ?x?"
    r"(?: (?:other |remaining )?"
    r"(?:process(?:es)?|ranks?|workers?|procs?|gpus?|trainers?|threads?))?"
    r"(?: (?:are|is))?(?: (?:stuck|waiting|blocked|hanging|hung|all))?"
    r" (?:in|at):?(?: (?P<rest>.*))?\Z",
    re.IGNORECASE,
)
_AFTER_RANKS = re.compile(
    r"(?: ?\((?P<note>[^()]*)\))?"
    r"(?: ?\b(?:all|both|each|only)\b)?"
    r"(?: ?\b(?:looks?|shows?|has|have|prints?)\b(?: (?:like|the|this|same|identical|different"
    r"|stacks?|dumps?|traces?)\b)*)?"
    r"(?: ?\b(?:is|are|was|were)\b)?(?: ?\b(?:stuck|waiting|blocked|hanging|hung)\b)?"
    r"(?: ?\b(?:in|at|on)\b)? ?(?P<colon>:|-|—|=>|→)? ?(?P<frame>.*)\Z"
)
_PID = re.compile(r"\bpid[ :=#]{0,3}(\d{1,9})", re.IGNORECASE)
_RANK_WORD = re.compile(
    rf"(?<!local )(?<!local-)(?<!node )(?<!node-)\branks?[ _#:=-]{{0,2}}({_LISTS})", re.IGNORECASE
)
_OF_WORLD = re.compile(r"(\d+) ?/ ?(\d+)\Z")
# A line of nothing but names and values, and a file's name alone.
_FIELDS = re.compile(
    r"(?:(?:(?:global|local|node)[ _-]?)?(?:rank|pid|host|hostname|node|gpu|tid|world[ _]?size)"
    r" ?[=:#] ?[\w.-]+[,;|]? ?){2,8}:?\Z",
    re.IGNORECASE,
)
_RANK_FILE = re.compile(
    r"(?:[\w./-]*[/_.-])?rank[-_]?(\d{1,7})\.(?:txt|out|err|log|dump|stack|pyspy|json):?\Z",
    re.IGNORECASE,
)
# What an outline or a wiki puts before a heading.
_OUTLINE = re.compile(r"(?:\d{1,3}[.)]|h[1-6]\.) (?=\D)")
_NODE_WORD = re.compile(r"\b(?:node|host|hostname)[ :=] ?([A-Za-z0-9][\w.-]*)", re.IGNORECASE)
_FIRST_WORD = re.compile(r"([A-Za-z][\w.-]*\d[\w.-]*)\b")
_TITLE_LABELS = re.compile(r"(?<![A-Za-z])(DP|PP|TP|EP|CP)(\d{1,5})(?![\d.])")
_FILE_PREFIX = re.compile(r"(?:(?:trace|stacks?|dump|py-?spy)[-_.])+(?=.)", re.IGNORECASE)
_RUN = re.compile(r"(\d+)(?: ?(?:-|\.\.|\u2013|to|through) ?(\d+))?")

ThreadStyle = Literal["py-spy", "faulthandler", "pystack", "gdb", "eu-stack", "traceback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHeader:
    """The head of one thread.

    ``frame`` is the text of a frame on the same line, ``number`` a debugger's own number,
    ``ident`` what the interpreter calls the thread; ``current`` the one that failed.
    """

    style: ThreadStyle
    name: str | None = None
    tid: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None
    frame: str = ""
    number: int | None = None
    ident: str | None = None
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a line says of the stacks after it.

    ``count`` is the number of processes that share them where their ranks are not told.
    ``frame`` is the text of a frame on the same line.
    """

    ranks: RankSet = NOBODY
    node: str | None = None
    pid: int | None = None
    labels: tuple[tuple[str, int], ...] = ()
    count: int = 1
    frame: str = ""

    @property
    def is_boundary(self) -> bool:
        """Whether it tells nothing but where another's stacks begin."""
        return self.pid is None and not self.ranks and self.count == 1


def process_header(text: str) -> tuple[int, str] | None:
    """pid and command line of ``Process 12: python train.py``."""
    match = _PROCESS.match(text)
    return None if match is None else (int(match[1]), match[2])


def parent_header(text: str) -> int | None:
    """The parent's pid of ``Parent Process 12: …``."""
    match = _PARENT.match(text)
    return None if match is None else int(match[1])


def python_header(text: str) -> str | None:
    """The version of ``Python v3.12.3 (…)``."""
    match = _PYTHON.match(text)
    return None if match is None else match[1]


def thread_header(text: str) -> ThreadHeader | None:
    """The head of a thread, in any of the known forms."""
    if text.startswith("TID "):
        match = _EU_THREAD.match(text)
        return None if match is None else ThreadHeader(style="eu-stack", tid=int(match["tid"]))
    if ("hread" not in text and not text.startswith("Stack (")) or len(text) > 4 * _MAX_HEADER:
        return None
    match = _FAULT_THREAD.match(text)
    if match is not None:
        return ThreadHeader(
            style="faulthandler",
            name=match["name"] or None,
            ident=match["ident"],
            current=match["current"] != "T",
        )
    match = _PYSTACK_THREAD.match(text)
    if match is not None:
        gil = "Has the GIL" in match["status"]
        return ThreadHeader(style="pystack", tid=int(match["tid"]), owns_gil=gil or None)
    match = _GDB_THREAD.match(text)
    if match is not None:
        number = match["number"] or match["row"]
        return ThreadHeader(
            style="gdb",
            tid=int(match["tid"]),
            frame=match["frame"].strip(),
            number=int(number) if number and len(number) < 10 else None,
        )
    match = _THREAD.match(text)
    if match is None or match.group(1, 2, 3) in ((None,) * 3, ("", None, None)):
        return _recipe_thread(text)
    ident, state, name = match.groups()
    if state is None and name is None and not (ident or "").isdecimal():
        return _recipe_thread(text)
    active = {"idle": False, "idle+gil": False, "active": True, "active+gil": True}.get(state or "")
    owns = {"active": False, "active+gil": True, "gil": True, "idle+gil": True}.get(state or "")
    # A hexadecimal number is the pthread's, not the kernel's.
    tid = int(ident) if ident and ident.isdecimal() and len(ident) < 10 else None
    return ThreadHeader(style="py-spy", name=name or None, tid=tid, active=active, owns_gil=owns)


def _recipe_thread(text: str) -> ThreadHeader | None:
    match = _RECIPE_THREAD.match(text)
    if match is None:
        return None
    return ThreadHeader(style="traceback", name=match["name"] or match["after"])


def group_header(text: str) -> Header | None:
    """Ranks, nodes and pids named above a block; None for any other line."""
    if len(text) > _MAX_HEADER:
        return None
    match = _PROGRAM_MADE.match(text)
    if match is not None:
        return Header(pid=int(match["pid"]), labels=labels_in(match["stamp"]))
    if _TAIL.match(text):
        return _ruled(text.strip("=<> "), "=") or Header()
    dumped = _dumped(text)
    if dumped is not None:
        return dumped
    match = _RULED.match(text)
    if match is not None and (header := _ruled(match["inside"], text[0])) is not None:
        return header
    bare = _OUTLINE.sub("", text.strip("*_# "), count=1).strip("*_ ")
    file = _RANK_FILE.match(bare)
    if file is not None:
        return Header(ranks=parse_ranks(file[1]) or NOBODY)
    if _FIELDS.match(bare) and (header := _ruled(bare, "#")) is not None:
        return header
    match = _RANKS.match(bare)
    if match is not None:
        return _ranked(match)
    match = _COUNT.match(bare)
    if match is not None and _is_frame_or_nothing(match["rest"] or ""):
        return Header(count=int(match["count"]), frame=match["rest"] or "")
    return None


def mentioned(text: str) -> Header | None:
    """The ranks that a sentence names, if it names them once and leads over to a stack."""
    found = _RANK_WORD.findall(text) if len(text) <= _MAX_HEADER else ()
    if len(found) != 1 or _LEADS_OVER.search(text) is None:
        return None
    ranks, pids = _listed("rank", found[0]), _PID.findall(text)
    if ranks is None:
        return None
    return Header(ranks=ranks, pid=int(pids[0]) if len(pids) == 1 else None)


def labels_in(text: str) -> tuple[tuple[str, int], ...]:
    """Coordinates such as ``PP2 TP1`` or ``scheduler_PP2_TP1``."""
    return tuple(
        (axis, int(number)) for axis, number in _TITLE_LABELS.findall(text.replace("_", " "))
    )


def parse_ranks(text: str) -> RankSet | None:
    """``0,3,5,7``, ``3..7``, ``0-2`` or ``0 and 4`` as a set; None where it is no such list."""
    bits = 0
    for first, last in _RUN.findall(text):
        low, high = int(first), int(last or first)
        if not low <= high <= MAX_RANK or high - low + bits.bit_count() >= MAX_LISTED:
            return None
        bits |= ((1 << (high - low + 1)) - 1) << low
    return RankSet.from_bits(bits) if bits else None


def _listed(word: str, text: str) -> RankSet | None:
    """The ranks after a word; ``rank 3/8`` is one of eight, not two of them."""
    of_world = None if word.endswith("s") else _OF_WORLD.match(text)
    if of_world is not None and int(of_world[1]) < int(of_world[2]):
        return parse_ranks(of_world[1])
    return parse_ranks(text)


def _ranked(match: re.Match[str]) -> Header | None:
    """A line that begins with a list of ranks, if all of it is a heading."""
    ranks = _listed(match["word"], match["list"])
    after = _AFTER_RANKS.match(match["rest"].strip("*_ "))
    if ranks is None or after is None:
        return None
    note, frame = after["note"] or "", after["frame"].strip()
    if not _is_frame_or_nothing(frame):
        return None
    if match["word"].lower() in ("pp", "ep") and len(ranks) == 1 and not after["colon"]:
        return None
    pid = _PID.search(note)
    return Header(ranks=ranks, pid=int(pid[1]) if pid else None, frame=frame)


def _dumped(text: str) -> Header | None:
    """The process that a command or a debugger names."""
    debugged = _DEBUGGED.match(text)
    if debugged is not None:
        return Header(pid=int(debugged["pid"] or debugged["eu"] or debugged["core"]))
    if not any(word in text for word in ("stack", "dump", "gdb")):
        return None
    match = _DUMPING.match(text)
    if match is None:
        return None
    pid = _DUMPED_PID.search(match["after"])
    place = _EXEC.search(match["before"])
    prompt = _PROMPT.match(text)
    node = None if prompt is None else prompt["host"]
    node = node if place is None else place["pod"] or place["host"]
    if pid is None and node is None:
        return None
    return Header(pid=int(pid[1]) if pid else None, node=node)


def gathered_header(text: str) -> Header | None:
    """The node that stands between two rules: ``gpu04`` or ``gpu[01-03] (3)``, as clush says it."""
    match = _GATHERED.match(text)
    if match is None or _RANKED_NAME.match(text):
        return None
    return Header(node=match["node"], count=max(1, int(match["count"] or 1)))


def _is_frame_or_nothing(text: str) -> bool:
    return not text or (text.endswith(")") and " (" in text)


def node_of_file(name: str) -> str:
    """The node that a file's name carries: ``trace-gpu31.out`` is gpu31's."""
    stem = name.rsplit("/", 1)[-1]
    for ending in (".txt", ".out", ".log", ".dump"):
        stem = stem.removesuffix(ending)
    return _FILE_PREFIX.sub("", stem)


def _ruled(inside: str, rule: str) -> Header | None:
    """What stands between two rules: ``node-0 PID 11841``, ``rank 3``, or a file's name."""
    pid, rank, node = _PID.search(inside), _RANK_WORD.search(inside), _NODE_WORD.search(inside)
    ranks = None if rank is None else _listed("rank", rank[1])
    first = _FIRST_WORD.match(inside)
    name = node[1] if node is not None else None
    if name is None and first is not None and not _RANK_WORD.match(first[1]):
        alone = inside == first[1] and rule == "="
        name = first[1] if pid is not None or ranks is not None or alone else None
    if pid is None and ranks is None and name is None:
        return None
    return Header(
        ranks=ranks or NOBODY,
        node=None if name is None else node_of_file(name),
        pid=int(pid[1]) if pid else None,
        labels=labels_in(inside),
    )
