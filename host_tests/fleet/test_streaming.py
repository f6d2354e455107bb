"""What `fleet stream` takes: addresses, folders, and the settings a stream keeps."""

import pytest
from click.testing import CliRunner

from tools.fleet import cli, streaming
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
    assert done.exit_code == 2 and "must not be in" in done.output


def test_settings_when_others_at_the_second_start_then_they_are_refused(tmp_path):
    streaming.keep(streaming.Settings("a", buckets=4), tmp_path)
    streaming.keep(streaming.Settings("a", buckets=4), tmp_path)
    with pytest.raises(BadInput, match="buckets 4"):
        streaming.keep(streaming.Settings("a", buckets=5), tmp_path)


def test_state_that_another_version_wrote_is_refused(tmp_path):
    (tmp_path / "settings.json").write_text('{"source": "a", "ports": "1883", "buckets": 16}')
    with pytest.raises(BadInput, match="state 1"):
        streaming.keep(streaming.Settings("a"), tmp_path)
