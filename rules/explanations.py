"""What the codes of findings mean, at length: ``whyhang explain H201``."""

from __future__ import annotations

from collections.abc import Mapping

EXPLANATIONS: Mapping[str, str] = {
    "H001": """H001: the file is not YAML.

Nothing else can be checked before it can be read. Look at the position and at the line above it: a
missing quote, a tab in the indentation or a bracket that is never closed are reported where the
reader gave up, which is often one line later.""",
    "H002": """H002: a key is not a plain word.

Keys of hang.yaml are names such as `rules` or `waiting`. A list or a mapping as a key has no
meaning; most often a colon too many has made a key of what should be a value.""",
    "H003": """H003: a YAML tag has no meaning here.

Tags such as `!!python/object` are never followed: hang.yaml holds data only. Remove the tag. A
condition that starts with an exclamation mark must be written with the word `not`.""",
    "H010": """H010: a value is not allowed here.

Each key accepts one type or one of a list of words; the message names them. A condition that YAML
takes for a boolean or a number (`when: no`) must be written as a block below `when: |`.""",
    "H011": """H011: an unknown key.

Keys are strict, because a misspelt key that is silently ignored is a rule that silently never
fires. The help names the key that was probably meant.""",
    "H012": """H012: a key stands twice in one mapping.

YAML itself would keep the last of the two and drop the first without a word. Give one of them
another name, or put both contents together.""",
    "H013": """H013: errors in this condition cannot be shown where they are.

In a folded text (`>`), a quoted text with escapes or a plain text of several lines, YAML changes
the text on its way, so that positions are lost; and a comment would swallow everything behind it.
Write conditions of several lines as a literal block, `when: |`.""",
    "H014": """H014: a required key is missing.

A rule needs at least `id`, `when` and `verdict`, a suppression `id` and `when`. To change a rule
that an included file brings, write `override: {…}` below its id instead.""",
    "H101": """H101: a condition cannot be parsed.

The caret shows the first word that cannot stand there; the help lists what could. Frequent
reasons: `&&`, `||`, `=` and single quotes of other languages (here: and, or, == and double
quotes), a number without its unit (`60` for `60s`), a predicate of several words without
parentheses: `any rank is (top in dataloader)`.""",
    "H102": """H102: a condition is too long or nested too deeply.

Give parts of it a name under `defs:` and use the names. Nobody reviews a condition that a parser
finds too long.""",
    "H201": """H201: an unknown name.

Fields, defs, sets, lists, variables and rules are all checked when the file is loaded: a name that
nobody defined can never become true, and a rule that never fires looks like a job that never
hangs. `whyhang fields` lists the fields. A def, a set and a list are different things: the message
says if the name exists as another kind.""",
    "H202": """H202: types do not fit.

Durations are compared with durations (`log.stalled_for > 5m`), shares with percentages, counts
with whole numbers, texts with quoted texts. A value that is no yes/no question, such as
`proc.state`, cannot be a condition by itself: compare it.""",
    "H203": """H203: the message is not a template.

`message:` is a Jinja template over the verdict: {{ ranks }} and {{ nodes }} are the suspects,
{{ position }} is where they stand, {{ verdict }}, {{ category }} and {{ summary }} are the rule's.
Nothing else is known. It is rendered in a sandbox; one that fails says so in its place.""",
    "H204": """H204: something is defined by itself.

Definitions may use other definitions, never, on whatever way, themselves; a rule cannot refine
itself. The message shows the circle.""",
    "H205": """H205: a field or group is asked of the wrong subject.

Each field belongs to a rank, process, thread, node or to the whole job. What is asked of a rank
must stand inside a group: `any rank is (proc.state == "D")`. Children are those of one rank, so
they can only be asked about inside a predicate about ranks.""",
    "H206": """H206: `except` between different kinds.

Ranks can be taken out of ranks and nodes out of nodes. To take out the ranks of some nodes, ask
about the ranks themselves.""",
    "H207": """H207: a quantifier has an impossible amount.

`at least`, `at most` and `exactly` take a count such as 3 or a percentage up to 100%.""",
    "H208": """H208: a group of the wrong kind.

Suspects are ranks or nodes, because these are what somebody can be sent to look at; ignored are
processes, threads or children, because a rank that is never counted would hide a hang.""",
    "H209": """H209: the name is taken.

It is a word of the language or a field already, so that a condition could mean either. Choose
another name.""",
    "H210": """H210: the field never has this value.

Fields such as `status`, `proc.kind` and `log.phase` have a fixed list of values. A comparison with
another text is always false.""",
    "H211": """H211: not a regular expression.

Patterns between slashes are Python regular expressions; the message says where this one ends to be
one. In a list, a pattern without slashes is a glob: `*` stands for any text.""",
    "H301": """H301: a list, def or set that nothing uses.

It was probably forgotten when a rule changed; or a rule that should use it misspells its name in a
way that means something else.""",
    "H302": """H302: a rule can never fire, or always does.

Its clauses exclude each other by type or by value, whatever the evidence (or one of them cannot be
false). Such a rule has never been seen to work: write a test for it.""",
    "H303": """H303: the same condition twice.

Either one of them should be another one, or one of two rules is superfluous.""",
    "H304": """H304: a share of a group that may be empty.

A quantifier over nobody decides without any evidence. Ask first whether there is anybody:
`count(GROUP) >= 1 and …`.""",
    "H305": """H305: a local hang without suspects.

A local hang says that some ranks are at fault; a report that does not name them sends people to
look at all of them. Add `suspects:` with a group of ranks or nodes.""",
    "H306": """H306: a window shorter than two sampling intervals.

`for` needs at least two samples that lie the whole duration apart. A shorter duration asks for no
more than two equal samples, whatever it says.""",
    "H307": """H307: a rule needs a source that is not collected.

`collect:` turns that source off, so that the clause will always be unknown and the rule never
fires. Collect it, or drop the rule.""",
    "H308": """H308: a pattern matches no known function.

Among the functions of torch and nccl that whyhang knows there is none of that name, in a list that
otherwise names such functions. It may be a misspelling, or a function of another release.""",
    "H309": """H309: two rules overlap and nothing says which wins.

Whenever one fires the other fires too. Say which is the more special one with `refines:`; today
only their order in the file decides.""",
    "H310": """H310: an unknown value stays unknown, also behind `not`.

`not (proc.state == "D")` is neither true nor false where the state was not read. That is on
purpose: an unread rank is not innocent. To count unknown as no, write
`proc.state is known and …`.""",
    "H311": """H311: a suppression without an upper bound in time.

It would hide a real hang in that phase for ever. Bound it: `and log.stalled_for < 30m`. In packs
this is an error.""",
    "H312": """H312: a regular expression that is not needed, or can take for ever.

Where a glob says the same, it is easier to read. A repetition inside a repetition, such as
`(a+)+`, can take years on a text of forty characters.""",
    "H313": """H313: `all ranks` where one unread rank blocks the answer.

Among thousands of ranks one is always unread; the answer is then unknown for ever. Ask for a
share: `at least 90% of ranks`.""",
    "H314": """H314: a window longer than what is sampled.

The samples that `collect:` and `detect:` plan do not span this duration, so that the clause stays
unknown. Shorten it, or confirm later.""",
    "H401": """H401: an included file cannot be used.

It does not exist, is not pinned to a version, or this release ships another major version of the
pack. Nothing is ever fetched from a network: copy foreign packs into the repository.""",
    "H402": """H402: there is nothing to change.

`append`, `remove`, `replace`, `override` and `disabled` act on an entry that an included file
brings. If the pack has renamed it, the change would silently be lost; so it is an error.""",
    "H403": """H403: the name exists already, or keys stand in the wrong place.

What an included file brings is changed by verbs only, never by repeating its name, so that the
order of files decides nothing. Keys to change stand inside `override: {…}`.""",
    "H405": """H405: files include each other in a circle.""",
    "H406": """H406: a change that changes nothing.

The included file says the same already. Delete it, or it will look as if it mattered.""",
    "H407": """H407: a section without effect.

`job`, `progress`, `detect`, `collect`, `topology`, `on_hang`, `store` and `report` belong to the
job's own file; in an included one nobody reads them.""",
    "H501": """H501: a test names a rule that does not exist.

A test of an unknown rule would pass for ever. The help names the rule that was probably meant.""",
    "H502": """H502: a test says something that has no meaning.

The message names the value and what is expected there.""",
    "H503": """H503: the rules or the incident that a test needs cannot be read.""",
    "H504": """H504: two tests have the same name.

Names are what `-k` selects and what a failure is called by: give each test its own.""",
    "H505": """H505: an accepted mutant does not exist.

The rules have changed since it was accepted. Remove the entry, or name the mutant that took its
place.""",
}
