"""The codes of findings: what each is about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A code of findings, how serious it is, what it is about and what to do."""

    code: str
    severity: str
    about: str


def _code(code: str, about: str, severity: str = "error") -> Code:
    return Code(code=code, severity=severity, about=about)


CODES = (
    _code("H001", "the file is no YAML"),
    _code("H002", "a key that is no plain word"),
    _code("H003", "a YAML tag; tags have no meaning here"),
    _code("H010", "a value that is not of the expected form"),
    _code("H011", "an unknown key"),
    _code("H012", "a key that stands there twice"),
    _code("H013", "a condition over several lines that is no block (`key: |`)", "warning, error"),
    _code("H014", "a key that is missing"),
    _code("H101", "a condition that cannot be read: its grammar"),
    _code("H102", "a condition that is too long or nested too deeply"),
    _code("H201", "a name that does not exist"),
    _code("H202", "a value of another type than is asked for"),
    _code("H203", "a message whose template cannot be read"),
    _code("H204", "a definition, set or rule that leads back to itself"),
    _code("H205", "a question to somebody who cannot answer it, such as a rank's field of the job"),
    _code("H206", "`except` between groups of different kinds"),
    _code("H207", "an amount that is no count or percentage, or is more than all"),
    _code("H208", "a group of the wrong kind, such as processes as suspects"),
    _code("H209", "a name that is a word of the language or a field already"),
    _code("H210", "a text that a field never has"),
    _code("H211", "a regular expression that cannot be read"),
    _code("H301", "a list, definition or set that no rule uses; in packs a note", "warning, info"),
    _code("H302", "a rule that can never fire, or always does", "warning"),
    _code("H303", "a condition that stands there twice", "warning"),
    _code("H304", "a percentage of a group that may be empty, met by nobody", "warning"),
    _code("H305", "`local_hang` without `suspects`", "warning"),
    _code("H306", "a window so short that any two samples fill it", "warning"),
    _code("H307", "a rule that asks for what `collect:` switches off", "warning"),
    _code("H308", "a pattern that matches no known function of torch or nccl", "warning"),
    _code("H309", "two rules that fire together without `refines` or `priority`", "warning"),
    _code("H310", "a negation that an unknown field leaves unanswered", "info"),
    _code("H311", "a suppression without an end in time; in packs an error", "warning, error"),
    _code("H312", "a regular expression that can take for ever, or that a glob can say", "warning"),
    _code("H313", "`all ranks`, which one unread rank leaves undecided", "warning"),
    _code("H314", "a window longer than the samples span", "warning"),
    _code("H401", "an include that cannot be followed, or a version that is not shipped"),
    _code("H402", "a change of something that no included file has"),
    _code("H403", "a name that is there already, in this file or an included one"),
    _code("H405", "files that include each other"),
    _code("H406", "a change without effect", "warning"),
    _code("H407", "a section that has no effect in an included file", "warning"),
    _code("H501", "a test about a rule that does not exist"),
    _code("H502", "a value that a test cannot have"),
    _code("H503", "the rules or the incident that a test needs cannot be read"),
    _code("H504", "two tests of one name"),
    _code("H505", "an accepted mutant that does not exist"),
)
