"""Puts a ``hang.yaml`` and all it includes together: names first, texts unparsed.

What an included file brings can only be changed by a verb (``append``, ``remove``, ``replace``,
``override``, ``disabled``), never by repeating its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from whyhang.rules.document import Document, Path, read_document
from whyhang.rules.findings import Finding
from whyhang.rules.place import Place
from whyhang.rules.sources import DEFAULT, NotIncluded, Source, included
from whyhang.rules.suggest import closest, did_you_mean
from whyhang.rules.valid_texts import HANG_SCHEMA, remember_valid, was_valid
from whyhang.schemas.evidence import Span

# Sections that only the job's own file has a say in.
_OWN_SECTIONS = ("job", "progress", "detect", "collect", "topology", "on_hang", "store", "report")
_LIST_VERBS = ("append", "remove", "replace")
_NOT_FIELDS = ("id", "override", "disabled", "tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One value of a document, found by its path."""

    document: Document
    path: Path

    @property
    def value(self) -> object:
        """The value as data."""
        found: object = self.document.data
        for step in self.path:
            found = found[step]  # type: ignore[index]
        return found

    @property
    def text(self) -> str:
        """The scalar as written; the empty text where it is none."""
        return self.document.texts.get(self.path, "")

    @property
    def place(self) -> Place:
        """Where the text stands; a text that cannot be mapped stands at its key."""
        place = self.document.places[self.path]
        if place.exact:
            return place
        return replace(place, whole=self.document.key_span(self.path))

    @property
    def span(self) -> Span:
        """Where the value stands."""
        return self.document.span(self.path)

    @property
    def key_span(self) -> Span:
        """Where its key stands."""
        return self.document.key_span(self.path)

    def child(self, *steps: str | int) -> Item:
        """A value inside this one."""
        return Item(document=self.document, path=(*self.path, *steps))

    def mapping(self) -> dict[str, Item]:
        """Its values by key; empty where it is no mapping."""
        value = self.value
        return {key: self.child(key) for key in value} if isinstance(value, dict) else {}

    def sequence(self) -> list[Item]:
        """Its items; a single text counts as a list of one."""
        value = self.value
        if isinstance(value, list):
            return [self.child(number) for number in range(len(value))]
        return [self] if isinstance(value, str) else []


@dataclass(slots=True, kw_only=True)
class RawList:
    """A list whose patterns are known; ``file`` is where it comes from."""

    patterns: list[Item]
    why: str
    span: Span


@dataclass(slots=True, kw_only=True)
class RawRule:
    """A rule or suppression whose texts are not parsed; ``prefix`` is its pack's."""

    id: str
    prefix: str
    span: Span
    fields: dict[str, Item]
    disabled: bool = False


@dataclass(slots=True, kw_only=True)
class Assembly:
    """Everything that the files say, after all verbs.

    ``incomplete`` says that an included file could not be read, so that names may be missing.
    """

    documents: list[Document] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    incomplete: bool = False
    vars: dict[str, Item] = field(default_factory=dict)
    lists: dict[str, RawList] = field(default_factory=dict)
    defs: dict[str, Item] = field(default_factory=dict)
    sets: dict[str, Item] = field(default_factory=dict)
    ignore: list[Item] = field(default_factory=list)
    suppress: dict[str, RawRule] = field(default_factory=dict)
    rules: dict[str, RawRule] = field(default_factory=dict)

    def fault(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Note an error."""
        self.findings.append(Finding(code=code, message=message, span=span, help=help))

    def warn(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Note a warning."""
        self.findings.append(
            Finding(code=code, message=message, span=span, help=help, severity="warning")
        )


def assemble(source: Source) -> Assembly:
    """Read a source and all it includes."""
    assembly = Assembly()
    _Reader(assembly).add(source, Span(file=source.name, line=1, column=1), ())
    return assembly


class _Reader:
    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.seen: dict[str, str] = {}

    def add(self, source: Source, asked: Span, trail: tuple[str, ...]) -> None:
        if source.name in trail:
            way = " -> ".join([*trail[trail.index(source.name) :], source.name])
            self.assembly.fault("H405", f"files include each other: {way}", asked)
            return
        if source.name in self.seen:
            return
        document = read_document(source.text, source.name)
        self.assembly.documents.append(document)
        self.assembly.findings.extend(document.findings)
        self.seen[source.name] = source.text
        broken = document.data is None and document.findings
        if broken:
            self.assembly.incomplete = True
        # Packs that ship with whyhang are validated by its tests.
        elif not source.is_builtin and not was_valid(source.text, HANG_SCHEMA):
            self.validate(document, source)
        root = Item(document=document, path=())
        top = root.mapping()
        if trail:
            self.own_sections(top)
        self.pinned(source, top, asked)
        self.includes(source, top, asked, (*trail, source.name), broken=bool(broken))
        _Merger(self.assembly, self.prefix(top)).merge(top)

    def validate(self, document: Document, source: Source) -> None:
        from whyhang.rules.validate import validate  # jsonschema takes a while to import

        found = list(validate(document))
        self.assembly.findings.extend(found)
        if not found and not document.findings:
            remember_valid(source.text, HANG_SCHEMA)

    def own_sections(self, top: Mapping[str, Item]) -> None:
        for name in _OWN_SECTIONS:
            if name in top:
                self.assembly.warn(
                    "H407", f"`{name}` has no effect in an included file", top[name].key_span
                )

    def prefix(self, top: Mapping[str, Item]) -> str:
        name = top["pack"].mapping().get("name") if "pack" in top else None
        return f"{name.text}/" if name is not None and name.text else ""

    def pinned(self, source: Source, top: Mapping[str, Item], asked: Span) -> None:
        if source.major is None or "pack" not in top:
            return
        version = top["pack"].mapping().get("version")
        if version is not None and version.text.split(".")[0] != source.major:
            self.assembly.fault(
                "H401",
                f"`{source.name}`: this whyhang ships version {version.text}",
                asked,
                f"pin `@{version.text.split('.')[0]}` after reading what changed",
            )

    def includes(
        self,
        source: Source,
        top: Mapping[str, Item],
        asked: Span,
        trail: tuple[str, ...],
        *,
        broken: bool,
    ) -> None:
        if "include" in top:
            for item in top["include"].sequence():
                self.include(item.text, source, item.span, trail)
        elif "pack" not in top and not broken:
            # The smallest hang.yaml names no pack: it gets the one for PyTorch.
            self.include(DEFAULT, source, asked, trail)

    def include(self, text: str, source: Source, span: Span, trail: tuple[str, ...]) -> None:
        try:
            found = included(text, source.directory)
        except NotIncluded as error:
            self.assembly.fault("H401", error.message, span, error.help)
            self.assembly.incomplete = True
            return
        self.add(found, span, trail)


class _Merger:
    """Adds one document's items to the assembly."""

    def __init__(self, assembly: Assembly, prefix: str) -> None:
        self.assembly = assembly
        self.prefix = prefix

    def merge(self, top: Mapping[str, Item]) -> None:
        for name, item in self.section(top, "vars"):
            self.named(self.assembly.vars, "variable", name, item)
        for name, item in self.section(top, "lists"):
            self.list_(name, item)
        for name, item in self.section(top, "defs"):
            self.named(self.assembly.defs, "def", name, item)
        for name, item in self.section(top, "sets"):
            self.named(self.assembly.sets, "set", name, item)
        if "ignore" in top:
            self.assembly.ignore.extend(
                item for item in top["ignore"].sequence() if isinstance(item.value, str)
            )
        for what, known in (("suppress", self.assembly.suppress), ("rules", self.assembly.rules)):
            if what in top:
                for item in top[what].sequence():
                    self.rule(known, "rule" if what == "rules" else "suppression", item)

    def section(self, top: Mapping[str, Item], name: str) -> Iterable[tuple[str, Item]]:
        return top[name].mapping().items() if name in top else ()

    def named(self, known: dict[str, Item], what: str, name: str, item: Item) -> None:
        verbs = item.mapping()
        if not verbs:
            if name in known:
                self.repeated(what, name, known[name].document.file, item.key_span, "replace: …")
            else:
                known[name] = item
        elif "replace" in verbs and self.exists(known, what, name, item.key_span):
            if known[name].text == verbs["replace"].text:
                self.no_effect(verbs["replace"])
            known[name] = verbs["replace"]

    def list_(self, name: str, item: Item) -> None:
        known = self.assembly.lists
        parts = item.mapping()
        verbs = [verb for verb in _LIST_VERBS if verb in parts]
        if not verbs:
            patterns = parts["patterns"].sequence() if "patterns" in parts else item.sequence()
            why = parts["why"].text if "why" in parts else ""
            if name in known:
                file = known[name].span.file
                self.repeated("list", name, file, item.key_span, "{append: […]}")
            else:
                known[name] = RawList(patterns=patterns, why=why, span=item.key_span)
            return
        if not self.exists(known, "list", name, item.key_span):
            return
        target = known[name]
        if "why" in parts:
            target.why = parts["why"].text
        if "replace" in parts:
            target.patterns = parts["replace"].sequence()
        if "remove" in parts:
            for pattern in parts["remove"].sequence():
                self.remove(target, name, pattern)
        if "append" in parts:
            for pattern in parts["append"].sequence():
                if any(one.text == pattern.text for one in target.patterns):
                    self.no_effect(pattern)
                else:
                    target.patterns = [*target.patterns, pattern]

    def remove(self, target: RawList, name: str, pattern: Item) -> None:
        left = [one for one in target.patterns if one.text != pattern.text]
        if len(left) == len(target.patterns):
            self.assembly.fault(
                "H402",
                f"list `{name}` has no pattern `{pattern.text}` to remove",
                pattern.span,
                did_you_mean(pattern.text, (one.text for one in target.patterns)),
            )
        target.patterns = left

    def rule(self, known: dict[str, RawRule], what: str, item: Item) -> None:
        fields = item.mapping()
        if "id" not in fields or not fields["id"].text:
            return
        id = fields["id"].text
        disabled = fields.get("disabled")
        switched_off = disabled is not None and disabled.value is True
        own = {name: value for name, value in fields.items() if name not in _NOT_FIELDS}
        if "override" in fields or (switched_off and not own):
            self.change(known, what, id, fields, switched_off)
            for value in own.values():
                self.assembly.fault(
                    "H403",
                    f"`{value.path[-1]}` stands beside `override`",
                    value.key_span,
                    "put it inside `override: {…}`",
                )
            return
        full = self.prefix + id
        if id in known or full in known:
            other = known.get(full) or known[id]
            self.repeated(what, id, other.span.file, fields["id"].span, "override: {…}")
            return
        for name in ("when", "verdict") if what == "rule" else ("when",):
            if name not in fields and not any(closest(given, [name]) for given in fields):
                self.assembly.fault(
                    "H014",
                    f"{what} `{id}` has no `{name}`",
                    fields["id"].span,
                    did_you_mean(full, known) if name == "when" else "",
                )
        known[full] = RawRule(
            id=full,
            prefix=self.prefix,
            span=fields["id"].span,
            fields=own,
            disabled=switched_off,
        )

    def change(
        self,
        known: dict[str, RawRule],
        what: str,
        id: str,
        fields: Mapping[str, Item],
        switched_off: bool,
    ) -> None:
        if not self.exists(known, what, id, fields["id"].span):
            return
        target = known[id]
        if "disabled" in fields:
            if target.disabled == switched_off:
                self.no_effect(fields["disabled"])
            target.disabled = switched_off
        changes = fields["override"].mapping() if "override" in fields else {}
        for name, value in changes.items():
            before = target.fields.get(name)
            if before is not None and before.value == value.value:
                self.no_effect(value)
            target.fields[name] = value

    def exists(self, known: Mapping[str, object], what: str, name: str, span: Span) -> bool:
        if name in known:
            return True
        self.assembly.fault(
            "H402",
            f"no included file has a {what} `{name}` to change",
            span,
            did_you_mean(name, known),
        )
        return False

    def repeated(self, what: str, name: str, file: str, span: Span, verb: str) -> None:
        change = "" if file == span.file else f", or change the included one with `{verb}`"
        self.assembly.fault(
            "H403",
            f"{what} `{name}` is in `{file}` already",
            span,
            f"choose another name{change}",
        )

    def no_effect(self, item: Item) -> None:
        self.assembly.warn("H406", f"`{item.text or item.path[-1]}` changes nothing", item.span)
