"""Flight Recorder dumps are found and ingested, with and without traces."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest

import hta_sql
from hta_sql.errors import TraceError, TraceNotFoundError
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import redact_store
from hta_sql.ingestion.artifacts.dumps import DUMP_TABLES
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.maintenance.verify import verify_store
from tests.hang_jobs import training, write_json, write_pickles

TRACES = Path(__file__).parents[1] / "traces"
PRIVATE = ("jo/", "train", "/home", "/opt")
RECORDED = TRACES / "recorded" / "hangs"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Write the dumps of a job with four ranks."""
    return write_pickles(training(4, 2, 2), tmp_path / "dumps")


def ranks_of(folder: Path, store: Path) -> list[int]:
    """Ingest a folder and list the ranks that have recorded operations."""
    with hta_sql.ingest(folder, store) as opened:
        rows = opened.sql("SELECT DISTINCT rank FROM fr_entries ORDER BY rank").rows()
    return [rank for (rank,) in rows]


@pytest.mark.parametrize(
    "name", ["nccl_trace_rank_{}", "comm_lib_trace_rank_{}", "fr_trace{}", "job7_dump_{}.pkl"]
)
def test_dumps_are_found_by_the_names_that_torch_and_users_give_them(
    dumps: Path, tmp_path: Path, name: str
) -> None:
    """The rank of a dump is the number in its file name, whoever named the file."""
    for rank in range(4):
        (dumps / f"nccl_trace_rank_{rank}").rename(dumps / name.format(rank))
    assert ranks_of(dumps, tmp_path / "job.store") == [0, 1, 2, 3]


def test_json_pickles_compressed_ones_and_archives_have_the_same_rows(
    dumps: Path, tmp_path: Path
) -> None:
    """A dump has the same rows in all formats, except for stacks, which JSON dumps do not have."""
    as_json, packed, archive = tmp_path / "json", tmp_path / "packed", tmp_path / "dumps.zip"
    as_json.mkdir()
    packed.mkdir()
    write_json(training(4, 2, 2), as_json, "fr")
    for path in sorted(dumps.iterdir()):
        (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in sorted(dumps.iterdir()):
            zipped.write(path, path.name)
    rows = [
        hta_sql.ingest(source, tmp_path / f"{number}.store", run="job")
        .sql("SELECT * EXCLUDE (stack_id) FROM fr_entries ORDER BY rank, record_id")
        .rows()
        for number, source in enumerate((dumps, as_json, packed, archive))
    ]
    assert len(rows[0]) == 32
    assert all(other == rows[0] for other in rows[1:])


def test_traces_and_dumps_of_a_job_are_one_run(tmp_path: Path) -> None:
    """A rank can have a trace and a dump, which does not change the results for the trace."""
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("waits_0.json", "waits_1.json"):
        shutil.copy(TRACES / name, folder / name)
    with hta_sql.ingest(folder, tmp_path / "traces.store", run="job") as store:
        alone = store.run("collective_waits").rows(), store.sql("FROM ranks").rows()
    write_pickles(training(2, 2, 2), folder)
    with hta_sql.ingest(folder, tmp_path / "job.store", run="job") as store:
        assert store.runs() == ["job"]
        assert (store.run("collective_waits").rows(), store.sql("FROM ranks").rows()) == alone
        ((ranks, events),) = store.sql("SELECT rank_count, event_count FROM runs").rows()
        assert (ranks, events) == (2, 19)
        assert store.sql("SELECT count(*) FROM fr_entries").rows() == [(16,)]
        assert store.sql("SELECT count(*) FROM rank_spans").rows() == [(2,)]


def test_dumps_that_the_store_has_are_not_read_again(dumps: Path, tmp_path: Path) -> None:
    """Unchanged dumps are not read again, but changed dumps are."""
    with hta_sql.ingest(dumps, tmp_path / "job.store") as store:
        assert store.ingested
        assert len(store.ingested.results) == 4
    with hta_sql.ingest(dumps, tmp_path / "job.store") as store:
        assert store.ingested
        assert len(store.ingested.unchanged) == 4
    write_pickles(training(4, 2, 3), dumps)
    with hta_sql.ingest(dumps, tmp_path / "job.store") as store:
        assert store.ingested
        assert len(store.ingested.results) == 4
        assert store.sql("SELECT count(*) FROM fr_entries").rows() == [(48,)]


def test_several_dumps_of_a_rank_are_captures(dumps: Path, tmp_path: Path) -> None:
    """Two dumps of one rank become two captures, just like two traces."""
    shutil.copytree(dumps, dumps / "again")
    with hta_sql.ingest(dumps, tmp_path / "job.store", run="job") as store:
        assert store.runs() == ["job", "job-capture2"]


def test_a_lost_file_of_a_dump_is_read_again(dumps: Path, tmp_path: Path) -> None:
    """An ingest restores a lost table file by reading the original dump again."""
    hta_sql.ingest(dumps, tmp_path / "job.store").close()
    lost = next((tmp_path / "job.store" / "tables" / "fr_entries").rglob("*.parquet"))
    lost.unlink()
    with hta_sql.ingest(dumps, tmp_path / "job.store") as store:
        assert store.ingested
        assert len(store.ingested.results) == 1
    assert verify_store(tmp_path / "job.store").faults == []
    with hta_sql.TraceStore(tmp_path / "job.store") as store:
        assert store.sql("SELECT count(*) FROM fr_entries").rows() == [(32,)]


def test_a_hostile_pickle_is_refused_by_its_path_and_the_others_are_read(
    dumps: Path, tmp_path: Path
) -> None:
    """A hostile pickle is refused without running its code, and the other dumps are ingested."""
    path = dumps / "nccl_trace_rank_1"
    path.write_bytes(
        pickle.dumps({"version": "2.10", "pg_config": {}}, 2)[:-1] + b"cos\nsystem\n(S'true'\ntR."
    )
    with pytest.raises(TraceError, match=r"nccl_trace_rank_1' was rejected: opcode GLOBAL"):
        hta_sql.ingest(dumps, tmp_path / "job.store")
    with hta_sql.TraceStore(tmp_path / "job.store") as store:
        assert store.sql("SELECT count(DISTINCT rank) FROM fr_entries").rows() == [(3,)]


def test_a_redacted_store_has_no_name_or_path_of_the_user(dumps: Path, tmp_path: Path) -> None:
    """A redacted store has the same hangs as the original, even with a damaged dump."""
    job = training(4, 2, 2)
    del job.programs[3][4:]
    write_pickles(job, dumps)
    cut = dumps / "nccl_trace_rank_1"
    cut.write_bytes(cut.read_bytes()[:-700])
    hta_sql.ingest(dumps, tmp_path / "job.store").close()
    redact_store(store_folder(tmp_path / "job.store"), tmp_path / "given.store", Redactor("key"))
    query = """
        SELECT kind, collective_seq_id, culprit_ranks, waiting_ranks, undumped_ranks, since_ns, is_root FROM hang ORDER BY ALL
    """
    verdicts = []
    for name in ("job.store", "given.store"):
        with hta_sql.TraceStore(tmp_path / name) as store:
            verdicts.append(store.sql(query).rows())
            texts = repr([store.sql(f"FROM {table}").rows() for table in DUMP_TABLES])
            frames = store.sql("SELECT DISTINCT frame FROM hang WHERE frame IS NOT NULL").rows()
    assert len(verdicts[0]) > 1
    assert verdicts[0] == verdicts[1]
    assert [word for word in PRIVATE if word in texts] == []
    assert frames
    assert not any("torch/" in frame for (frame,) in frames)


def test_other_pickles_in_a_folder_are_left_out(dumps: Path, tmp_path: Path) -> None:
    """A memory snapshot in the folder is not mistaken for a dump."""
    (dumps / "trace_dump_7.pkl").write_bytes(pickle.dumps({"segments": [], "device_traces": []}))
    assert ranks_of(dumps, tmp_path / "job.store") == [0, 1, 2, 3]


def test_a_folder_without_dumps_says_what_was_looked_for(tmp_path: Path) -> None:
    """A folder without traces or dumps is reported as an error."""
    with pytest.raises(TraceNotFoundError, match="No traces in"):
        hta_sql.ingest(tmp_path, tmp_path / "job.store")


def test_versions_without_new_fields_are_read(tmp_path: Path) -> None:
    """A dump of version 2.1 is read, and fields of later versions are NULL."""
    entry = {
        "record_id": 0,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 1,
        "p2p_seq_id": 0,
        "op_id": 1,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1_700_000_000_000_000_000,
        "input_sizes": [[3]],
        "output_sizes": [[3]],
        "state": "completed",
        "retired": True,
        "is_p2p": False,
    }
    dump = {"version": "2.1", "pg_config": {}, "entries": [entry, {"record_id": "none"}]}
    (tmp_path / "fr_0.json").write_text(json.dumps(dump))
    with hta_sql.ingest(tmp_path / "fr_0.json", tmp_path / "job.store") as store:
        assert store.sql(
            "SELECT rank, op, input_sizes, input_types, timeout_ns, is_ended FROM fr_entries"
        ).rows() == [(0, "all_reduce", "[[3]]", None, None, True)]


@pytest.mark.parametrize(
    "job",
    [path.name for path in sorted(RECORDED.iterdir())],
)
def test_recorded_jobs_hang_where_they_were_made_to(job: str, tmp_path: Path) -> None:
    """Every recorded job can be ingested, and a hang is found in each except the healthy one."""
    with hta_sql.ingest(RECORDED / job, tmp_path / "job.store") as store:
        assert bool(store.run("hang").rows()) == (job != "healthy")
