"""What conditions are made of: one example for each construct of the grammar."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Construct:
    """An example that parses, and when it is true. ``is_group`` for sets of ranks and the like."""

    example: str
    meaning: str
    is_group: bool = False


def _expr(example: str, meaning: str) -> Construct:
    return Construct(example=example, meaning=meaning)


def _group(example: str, meaning: str) -> Construct:
    return Construct(example=example, meaning=meaning, is_group=True)


CONSTRUCTS = (
    _expr("log.stalled", "the field or definition of that name says yes"),
    _expr('log.stalled and log.phase == "train"', "both sides are true"),
    _expr("log.slow or log.stalled", "one side is true; `or` binds weaker than `and`"),
    _expr("not log.stalled", "it is false; unknown stays unknown"),
    _expr("log.stalled for 2m", "it is true in every sample of a window of that length"),
    _expr("any rank is waiting", "at least one member says yes; `some` is the same word"),
    _expr("all ranks are waiting", "every member says yes and there is one; `every` is the same"),
    _expr("no rank is waiting", "no member says yes; `none of ranks are` is the same"),
    _expr("most ranks are waiting", "more than half say yes"),
    _expr("at least 90% of ranks are waiting", "that many or more: a count, a share or `$name`"),
    _expr("at most 3 ranks are waiting", "that many or fewer"),
    _expr("exactly 1 rank is waiting", "that many"),
    _expr("any rank is not waiting", "the question may be negated"),
    _expr("any rank is (waiting and unreadable)", "or an expression in parentheses"),
    _expr("all ranks agree on top.function", "so many members have the same value"),
    _expr("log.stalled_for >= 5m", "compares values: `==` `!=` `<` `<=` `>` `>=`"),
    _expr("log.stalled_for >= $limit", "a variable of `vars:` stands for its value"),
    _expr("count(odd) >= 1", "how many members a group has"),
    _expr("share(odd) <= 50%", "how many of all members of that kind"),
    _expr("any rank is (top in communication)", "a frame or text is in a list"),
    _expr('any rank is (status in ["exited", "zombie"])', "a text is one of those given"),
    _expr("log.phase not in quiet_phases", "it is in none of them"),
    _expr("any rank is (stack has checkpointing)", "any frame of a stack is in a list"),
    _expr('any rank is (stack has "*.save")', "or matches a glob (`*` crosses dots)"),
    _expr("any rank is (native has /ncclKernel/)", "or a regular expression"),
    _expr("any rank is (proc.wchan matches /nfs|rpc/)", "a text matches a regular expression"),
    _expr("any rank is (stack unchanged for 10s)", "its Python frames are the same in all samples"),
    _expr("any rank is (top is known)", "the field has a value; always yes or no"),
    _expr("any rank is (top is unknown)", "the field has no value"),
    _group("ranks", "all `ranks`, `nodes`, `processes`, `threads` or `children`"),
    _group("ranks that are waiting", "those that say yes"),
    _group("odd", "a set of `sets:`"),
    _group("ranks except odd", "those that are not in another group"),
)
