"""A malformed event affects no other events: it is repaired, or lost and quarantined."""

from __future__ import annotations

from pathlib import Path

import pytest

import hta_sql
from hta_sql.traces.salvage import rescue

MALFORMED = Path(__file__).parents[2].parent / "shared" / "traces" / "malformed"

GOOD = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b'{"ph":"X","name":"a\xffb"}', '{"ph":"X","name":"a\ufffdb"}'),
        (b'{"ph":"X","name":"a\nb"}', '{"ph":"X","name":"a\\u000ab"}'),
        (b'{"ph":"X","name":"C:\\Users\\x"}', '{"ph":"X","name":"C:\\\\Users\\\\x"}'),
        (b'{"ph":"X","name":"say "hi"","ts":1}', '{"ph":"X","name":"say \\"hi\\"","ts":1}'),
        (b'{"ph":"X","name":"\\ud800"}', '{"ph":"X","name":"\\ufffd"}'),
    ],
)
def test_known_faults_are_repaired(text: bytes, kept: str) -> None:
    """Errors that are known from real profilers are repaired and reported."""
    (span,) = rescue(text)
    assert span.text is not None
    assert span.text.decode() == kept
    assert span.reason


def test_what_cannot_be_repaired_is_lost_alone() -> None:
    """If an event cannot be repaired, the events around it are not affected."""
    spans = list(rescue(GOOD + b', {"ph":"X","args":{"a":1}, ' + GOOD + b", garbage, " + GOOD))
    assert [span.text for span in spans] == [GOOD, None, GOOD, None, GOOD]


def test_a_broken_event_costs_one_event(tmp_path: Path) -> None:
    """Intact events become rows, and a malformed event is quarantined with its byte offset."""
    broken = b'{"ph": "X", "name": oops}'
    trace = tmp_path / "trace.json"
    trace.write_bytes(b'{"traceEvents": [' + b", ".join([GOOD, broken, GOOD]) + b"]}")
    with hta_sql.ingest(str(trace), tmp_path / "store") as store:
        assert store.sql("SELECT event_id FROM cpu_ops ORDER BY event_id").rows() == [(0,), (2,)]
        ((event_id, offset, is_lost),) = store.sql(
            "SELECT event_id, byte_offset, is_lost FROM quarantine"
        ).rows()
        assert (event_id, is_lost) == (1, True)
        assert trace.read_bytes()[offset:].startswith(broken)


def test_strict_refuses(tmp_path: Path) -> None:
    """With ``strict``, a trace with a malformed event is refused, and the error has its offset."""
    trace = tmp_path / "trace.json"
    trace.write_bytes(b'{"traceEvents": [' + GOOD + b', {"ph": oops}]}')
    with pytest.raises(hta_sql.TraceError, match="at byte"):
        hta_sql.ingest(str(trace), tmp_path / "store", strict=True)


@pytest.mark.skipif(not MALFORMED.is_dir(), reason="the malformed traces are not here")
@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("bare_list.json", 2000),
        ("empty_events.json", 0),
        ("nan_inf.json", 1),
        ("trailing_comma.json", 1),
        ("win_backslash_unescaped.json", 1),
        *(
            case
            for case in (
                ("bom_rank1.json", 4720),
                ("gz_named_json_rank1.json", 4720),
                ("invalid_utf8_rank1.json", 4720),
                ("plain_named_gz_rank1.json.gz", 4720),
                ("trunc_plain_rank1.json", 2757),
            )
        ),
    ],
)
def test_malformed_files(name: str, events: int, tmp_path: Path) -> None:
    """Each malformed file yields all of its complete events."""
    with hta_sql.ingest(str(MALFORMED / name), tmp_path / "store") as store:
        assert store.sql("SELECT count(*) FROM events").rows() == [(events,)]


@pytest.mark.skipif(not MALFORMED.is_dir(), reason="the malformed traces are not here")
def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """The error for an empty file says that it is empty."""
    with pytest.raises(hta_sql.TraceError, match="empty"):
        hta_sql.ingest(str(MALFORMED / "empty_file.json"), tmp_path / "store")
