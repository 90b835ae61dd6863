"""The messages of rules."""

from __future__ import annotations

from whyhang.rules.messages import message_faults, render_message


def test_values_are_filled_in() -> None:
    """A message is a template over what was found."""
    assert render_message("rank {{ ranks }}", {"ranks": "3-5"}) == "rank 3-5"


def test_an_unknown_value_is_said_and_does_no_harm() -> None:
    """A message that cannot be rendered never raises."""
    assert "'nobody' is undefined" in render_message("{{ nobody }}", {})
    assert "could not be rendered" in render_message("{{ 1 / 0 }}", {})
    assert "could not be rendered" in render_message("{{ a", {})


def test_messages_cannot_reach_into_python() -> None:
    """Templates run in a sandbox."""
    assert "could not be rendered" in render_message("{{ ''.__class__.__mro__ }}", {})


def test_messages_are_bounded() -> None:
    """A template that loops does not fill the report."""
    assert len(render_message("{% for i in range(99999) %}xxxx{% endfor %}", {})) == 20_000


def test_faults_have_a_line() -> None:
    """The fault of a template is found before it is needed."""
    assert message_faults("all {{ ranks }}") == ()
    ((_, line),) = message_faults("first\n{% if %}")
    assert line == 2


def test_unknown_names_are_faults() -> None:
    """A message may name what a report fills in, and what it sets itself."""
    assert message_faults("{% set a = ranks %}{{ a }} {{ nodes[0] }}") == ()
    assert message_faults("first\n{{ rank }}\n{{ zebra }}") == (
        ("unknown name `rank`; did you mean `ranks`?", 2),
        (
            "unknown name `zebra`; there is ranks, who, nodes, position, links, verdict, category, "
            "summary",
            3,
        ),
    )
