"""Every statement has its test, and every id exists."""

from host_tests import conformance


def requirement(requirement_id, side="client"):
    return conformance.Requirement(requirement_id, "X §1", side, "Something is so.")


def test_every_client_and_codec_statement_has_a_test_and_every_id_exists():
    faults = conformance.find_faults(conformance.read_requirements(), conformance.find_tests())
    assert not faults, "\n".join(faults)


def test_statement_without_test_is_a_fault_of_client_and_codec_only():
    rows = [requirement(f"RT-{side.upper()}", side) for side in ("client", "codec", "audit")]
    faults = conformance.find_faults(rows, {})
    assert [fault.partition(":")[0] for fault in faults] == ["RT-CLIENT", "RT-CODEC"]


def test_page_counts_statements_by_level_and_side():
    rows = [requirement(name) for name in ("31-1-A", "311-1.1-1", "MQTT-1.1-1", "RT-A")]
    text = conformance.render(rows, {"MQTT-1.1-1": [conformance.Test("a.py", "test_a")]})
    for line in (
        "| 3: MQTT 3.1 | client | 1 | 0 |",
        "| 4: MQTT 3.1.1 | client | 1 | 0 |",
        "| 5: MQTT 5 | client | 1 | 1 |",
        "| all | client | 1 | 0 |",
    ):
        assert line in text.splitlines()


def test_unknown_id_is_a_fault_that_names_the_test(tmp_path):
    (tmp_path / "test_x.py").write_text('def test_a():\n    """31-9.9-NONE, RT-SEQ."""\n')
    tests = conformance.find_tests(tmp_path)
    assert sorted(tests) == ["31-9.9-NONE", "RT-SEQ"]
    faults = conformance.find_faults([requirement("RT-SEQ")], tests)
    assert len(faults) == 1 and "31-9.9-NONE" in faults[0] and "test_x.py::test_a" in faults[0]


def test_ids_count_in_docstring_and_comment_above_and_nowhere_else(tmp_path):
    (tmp_path / "test_x.py").write_text(
        '"""31-2.1-LEN of the module."""\n\n'
        "# MQTT-4.3.3-10, SIB-NOEXC, 311-4.3.3-1:\n"
        "# 31-A-HASH.\n"
        "@mark\n"
        "def test_a():\n"
        '    """RT-AWAITREL-T and START-UP are told apart."""\n'
        '    name = "RT-SEQ"  # 31-2.1-DUP\n'
    )
    found = conformance.find_tests(tmp_path)
    assert sorted(found) == [
        "31-A-HASH",
        "311-4.3.3-1",
        "MQTT-4.3.3-10",
        "RT-AWAITREL-T",
        "SIB-NOEXC",
    ]


def test_ids_count_in_the_comments_of_a_script(tmp_path):
    folder = tmp_path / "client" / "dialogues" / "sending"
    folder.mkdir(parents=True)
    (folder / "retry.txt").write_text(
        "# RT-SEQ of the file\n\n"
        "c2b_a level 3\n    # 31-2.1-LEN,\n    # MQTT-4.3.3-10.\n    publish\n\n"
        'c2b_b\n    publish "RT-AWAITREL-T"\n'
    )
    found = conformance.find_tests(tmp_path)
    assert sorted(found) == ["31-2.1-LEN", "MQTT-4.3.3-10"]
    test = conformance.Test("client/dialogues/sending/retry.txt", "c2b_a")
    assert found["31-2.1-LEN"] == [test]
