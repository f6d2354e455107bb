"""What `fleet stream` takes: addresses, folders, and the settings a stream keeps."""

import ast
import hashlib
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tools.fleet import cli, decode, streaming
from tools.fleet.batch import BadInput


@pytest.mark.parametrize(
    ("text", "server", "port", "topics"),
    [
        ("mqtt://broker", "broker", "1883", "#"),
        ("mqtt://broker/", "broker", "1883", "#"),
        ("mqtt://broker:1884/a/#", "broker", "1884", "a/#"),
        ("mqtt://broker/+/reading/#", "broker", "1883", "+/reading/#"),
        ("mqtt://broker//slash?/x", "broker", "1883", "/slash?/x"),
        ("mqtt://[::1]:7/a%20b", "::1", "7", "a b"),
    ],
)
def test_address_of_a_broker_when_read_then_filter_is_all_behind_the_slash(
    text, server, port, topics, tmp_path
):
    options = streaming.source_options(text, tmp_path, False, None)
    assert (options["server"], options["port"], options["filter"]) == (server, port, topics)
    assert 1 <= len(options["clientid"]) <= 23
    assert "user" not in options


def test_client_id_when_stream_starts_again_then_it_is_the_same(tmp_path):
    def name(out):
        return streaming.source_options("mqtt://b", out, False, None)["clientid"]

    assert name(tmp_path) == name(tmp_path) != name(tmp_path / "other")


def test_password_when_given_then_it_comes_from_the_environment_only(tmp_path):
    options = streaming.source_options("mqtt://me%40x@b", tmp_path, False, "secret")
    assert (options["user"], options["password"]) == ("me@x", "secret")
    with pytest.raises(BadInput, match="FLEET_PASSWORD"):
        streaming.source_options("mqtt://me:secret@b", tmp_path, False, None)


@pytest.mark.parametrize(
    ("source", "flags", "said"),
    [
        ("http://b/x", [], "mqtt://host:port/filter"),
        ("mqtt://", [], "mqtt://host:port/filter"),
        ("mqtt://b:99999/", [], "mqtt://host:port/filter"),
        ("mqtt://b:x/", [], "mqtt://host:port/filter"),
        ("mqtt://b/a/#/b", [], "no filter"),
        ("mqtt://b", ["--once"], "leave out --once"),
        ("nowhere", [], "no folder"),
        (".", ["--ports", "0"], "no TCP port"),
    ],
)
def test_stream_when_used_wrongly_then_one_line_says_what_to_do(source, flags, said, tmp_path):
    arguments = ["stream", source, "--out", str(tmp_path / "out"), *flags]
    done = CliRunner().invoke(cli.cli, arguments)
    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output


def test_stream_when_out_is_in_the_captures_then_it_refuses(tmp_path):
    arguments = ["stream", str(tmp_path), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(cli.cli, arguments)
    assert done.exit_code == 2 and "is in the folder with the captures" in done.output


def test_settings_when_others_at_the_second_start_then_they_are_refused(tmp_path):
    streaming.keep(streaming.Settings("a", buckets=4), tmp_path)
    streaming.keep(streaming.Settings("a", buckets=4), tmp_path)
    with pytest.raises(BadInput, match="buckets 4"):
        streaming.keep(streaming.Settings("a", buckets=5), tmp_path)


def test_source_by_another_name_of_the_same_folder_goes_on(tmp_path, monkeypatch):
    (tmp_path / "captures").mkdir()
    monkeypatch.chdir(tmp_path)
    streaming.keep(streaming.Settings("captures"), tmp_path / "state")
    streaming.keep(streaming.Settings(str(tmp_path / "captures") + "/"), tmp_path / "state")
    monkeypatch.chdir(tmp_path / "captures")
    with pytest.raises(BadInput, match="source"):
        streaming.keep(streaming.Settings("captures"), tmp_path / "state")


def test_stream_into_the_folder_of_an_audit_is_refused(tmp_path):
    (tmp_path / "packets").mkdir()
    with pytest.raises(BadInput, match="fleet audit"):
        streaming.check_out(tmp_path)
    (tmp_path / "_stream").mkdir()
    streaming.check_out(tmp_path)


def test_alarm_of_a_stream_is_raised_once_for_what_is_new_and_again_when_it_failed(tmp_path):
    told, path = tmp_path / "told", tmp_path / "told.json"

    def told_of(command, **findings):
        told.write_text("")
        alarm = streaming.Alarm({"violations": 1}, command)
        findings = {name.replace("_", " "): number for name, number in findings.items()}
        streaming.raise_alarm(alarm, findings, path, tmp_path)
        lines = [json.loads(line) for line in told.read_text().splitlines()]
        return [(one["finding"], one["number"]) for one in lines]

    works, fails = "cat >>%s" % told, "cat >>%s; false" % told
    assert told_of(works, violations=1, lost_messages=2) == [("lost messages", 2)]
    assert told_of(works, violations=1, lost_messages=2) == []
    assert told_of(fails, violations=3, lost_messages=2) == [("violations", 3)]
    assert told_of(works, violations=3, lost_messages=2) == [("violations", 3)]
    assert told_of(works, violations=3, lost_messages=5) == [("lost messages", 5)]
    assert told_of(works, violations=1, lost_messages=5) == []
    assert told_of(works, violations=3, lost_messages=5) == [("violations", 3)]


def test_trouble_with_the_broker_is_said_once_and_when_it_is_over(tmp_path):
    path, said = tmp_path / "trouble", io.StringIO()
    path.write_text("of an earlier start")
    trouble = streaming.Trouble(path, Console(file=said, width=200))
    for text in (None, "", "refused [b'x']", "refused [b'x']", ""):
        if text is not None:
            path.write_text(text)
        trouble.look()
    assert said.getvalue().splitlines() == [
        "nothing comes from the broker: refused [b'x']",
        "the broker is there",
    ]


# The attributes of what a stream keeps of open connections, for each form of its state.
_KEPT = {4: "8fbd845afe7aca18"}


def test_state_has_another_number_when_what_is_kept_has_other_attributes():
    """Otherwise a stream that goes on would end in an AttributeError, far from its reason."""
    found = set()
    for path in sorted(Path(decode.__file__).parent.glob("*.py")):
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                if isinstance(one.value, ast.Name) and one.value.id == "self":
                    found.add(f"{path.stem}.{one.attr}")
    digest = hashlib.sha256(" ".join(sorted(found)).encode()).hexdigest()[:16]
    state = streaming.Settings("a").state
    assert _KEPT == {state: digest}, f"raise Settings.state, and write its {digest} here"


def test_state_that_another_version_wrote_is_refused(tmp_path):
    (tmp_path / "settings.json").write_text('{"source": "a", "ports": "1883", "buckets": 16}')
    with pytest.raises(BadInput, match="state 1"):
        streaming.keep(streaming.Settings("a"), tmp_path)
