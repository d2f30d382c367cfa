"""Edits that break a rule of the SQL library, with the error message that each must cause.

Each rule maps to a file, its edits (old and new text), and a part of the expected message.
"""

from __future__ import annotations

ANALYSIS = "analyses/communication/comm_comp_overlap_v1.sql"


Edit = tuple[str, str]


TEXT_RULES: dict[str, tuple[str, list[Edit], str]] = {
    "number without unit": (
        ANALYSIS,
        [("communication_ns  BIGINT [ns]  ", "communication_ns  BIGINT       ")],
        "column communication_ns has no unit: write its unit in brackets after the type",
    ),
    "ratio without unit": (
        ANALYSIS,
        [("DOUBLE [%]   overlapped", "DOUBLE       overlapped")],
        "column overlap_pct has no unit",
    ),
    "unit against the name": (
        ANALYSIS,
        [("overlapped_ns     BIGINT [ns]  ", "overlapped_ns     BIGINT [us]  ")],
        "column overlapped_ns has the unit [us], but its name implies [ns]",
    ),
    "unit that the name hides": (
        ANALYSIS,
        [("overlapped_ns", "overlapped")],
        "column overlapped has the unit [ns]: rename it to overlapped_ns",
    ),
    "unknown unit": (
        ANALYSIS,
        [("DOUBLE [%]   overlapped", "DOUBLE [percent]  overlapped")],
        "column overlap_pct has the unit [percent]; known units:",
    ),
    "text with a unit": (
        ANALYSIS,
        [("run               VARCHAR      ", "run               VARCHAR [1]  ")],
        "column run has type VARCHAR, which has no unit",
    ),
    "column documented twice": (
        ANALYSIS,
        [("--   rank  ", "--   run   ")],
        "column run is documented twice",
    ),
    "share of a time as an integer": (
        ANALYSIS,
        [("100::DOUBLE * t.overlapped_ns", "100 * t.overlapped_ns")],
        "the product 100 * t.overlapped_ns overflows BIGINT for long times; cast its first factor",
    ),
    "square of a time": (
        ANALYSIS,
        [("sum(c.dur) FILTER (c.communicates)", "sum(c.dur * c.dur) FILTER (c.communicates)")],
        "the product c.dur * c.dur overflows BIGINT for long times; cast its first factor to HUGEINT",
    ),
    "no columns": (
        "lib/intervals/gaps.sql",
        [("-- Columns:", "-- Returns:")],
        "the columns are not documented; list them under '-- Columns:'",
    ),
    "a value without words": (
        "lib/scope/is_requested.sql",
        [("-- Returns: BOOLEAN  Whether", "-- Whether")],
        "the return value is not documented; write '-- Returns: TYPE  what' after AS",
    ),
    "a value without unit": (
        "lib/values/exact_std.sql",
        [("DOUBLE [1]", "DOUBLE")],
        "column exact_std has no unit",
    ),
    "an analysis of one value": (
        ANALYSIS,
        [(") AS TABLE\n-- Columns:", ") AS\n-- Columns:")],
        "it returns one value; an analysis returns rows: AS TABLE",
    ),
    "parameter without words": (
        ANALYSIS,
        [("    runs VARCHAR", "    jobs VARCHAR")],
        "parameter jobs is not documented",
    ),
    "parameter without default": (
        ANALYSIS,
        [("ranks INTEGER[] := NULL", "ranks INTEGER[]")],
        "parameter ranks needs a type and a default",
    ),
    "scope of another type": (
        ANALYSIS,
        [("steps BIGINT[] := NULL", "steps INTEGER[] := NULL")],
        "the first parameters must be runs VARCHAR[] := NULL, ranks INTEGER[] := NULL, steps",
    ),
    "scope left out": (
        ANALYSIS,
        [
            ("    steps BIGINT[] := NULL,\n", ""),
            ("(runs, ranks, steps,", "(runs, ranks, NULL,"),
        ],
        "the first parameters must be",
    ),
    "scope of other parameters": (
        ANALYSIS,
        [("-- Needs: GPU activity", "-- Needs: GPU activity\n-- Scope: runs, steps; any")],
        "Scope is 'runs, steps; any'; list the first of runs, ranks, steps",
    ),
    "scope without a reason": (
        ANALYSIS,
        [("-- Needs: GPU activity", "-- Needs: GPU activity\n-- Scope: runs, ranks")],
        "Scope is 'runs, ranks'; list the first of runs, ranks, steps",
    ),
    "parameter that shadows a column of a table": (
        ANALYSIS,
        [
            (
                "BOOLEAN := false\n",
                "BOOLEAN := false,\n    -- Only this stream.\n    stream BIGINT := NULL\n",
            )
        ],
        "parameter stream is also a column of",
    ),
    "parameter that shadows a column of its own": (
        "lib/intervals/gaps.sql",
        [("    spans\n", "    lane\n"), ("query_table(spans)", "query_table(lane)")],
        "parameter lane is also a column of this file",
    ),
    "status": (
        ANALYSIS,
        [("-- Status: stable", "-- Status: done")],
        "Status is 'done'; write stable or experimental",
    ),
    "no status": (
        ANALYSIS,
        [("-- Status: stable\n", "")],
        "the header has no line '-- Status: ...'",
    ),
    "no title": (
        ANALYSIS,
        [("-- Title: Communication overlapped by computation\n", "")],
        "the header has no line '-- Title: ...'",
    ),
    "a long title": (
        ANALYSIS,
        [("-- Title: Comm", f"-- Title: {'Very long ' * 6}comm")],
        "Title has 99 characters; write at most 60",
    ),
    "no since": (ANALYSIS, [("-- Since: 0.1\n", "")], "the header has no line '-- Since: ...'"),
    "since what": (ANALYSIS, [("-- Since: 0.1", "-- Since: May")], "Since is 'May'"),
    "no reference": (
        ANALYSIS,
        [("-- Reference: HTA get_comm_comp_overlap\n", "")],
        "the header has no line '-- Reference: ...'",
    ),
    "no needs": (
        ANALYSIS,
        [("-- Needs: GPU activity\n", "")],
        "the header has no line '-- Needs: ...'",
    ),
    "another name than the file": (
        ANALYSIS,
        [("MACRO comm_comp_overlap_v1(", "MACRO communication_overlap_v1(")],
        "the file creates communication_overlap_v1; rename the file to communication_overlap_v1.sql",
    ),
    "two statements": (
        ANALYSIS,
        [("ORDER BY run, rank", "ORDER BY run, rank;\nSELECT 1")],
        "the file contains 2 statements; it must contain one",
    ),
    "not SQL": (ANALYSIS, [("FROM times AS t", "FROM times AS")], "the engine cannot parse it"),
    "CTE with an underscore in an analysis": (
        ANALYSIS,
        [("times", "_times")],
        "the name of CTE _times starts with _, which is reserved",
    ),
    "CTE without one in lib": (
        "lib/intervals/gaps.sql",
        [("_bounds", "bounds")],
        "CTE bounds could shadow a caller's relation of that name; rename it to _bounds",
    ),
    "another analysis": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, idle_gaps_v1() AS i")],
        "it calls idle_gaps_v1; an analysis may use only tables and lib, not another analysis",
    ),
    "a view of another analysis": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, idle_gaps AS i")],
        "it reads idle_gaps, which is not a table of sql/tables",
    ),
    "what views are made of": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, stored.gpu_ops AS g")],
        "it reads stored.gpu_ops, which is not a table of sql/tables",
    ),
    "a file": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, read_csv('x.csv') AS x")],
        "it calls read_csv; an analysis may use only tables and lib",
    ),
    "a launch name": (
        ANALYSIS,
        [("ORDER BY run, rank", "WHERE 'cudaLaunchKernel' = t.lane.run\nORDER BY run, rank")],
        "it contains the launch name 'cudaLaunchKernel'; find launches by correlation",
    ),
    "no order": (
        ANALYSIS,
        [("\nORDER BY run, rank", "")],
        "the query does not end with an ORDER BY",
    ),
}


ENGINE_RULES: dict[str, tuple[str, list[Edit], str]] = {
    "documents a column that it does not return": (
        ANALYSIS,
        [("-- Columns:\n", "-- Columns:\n--   job               VARCHAR      Job name.\n")],
        "it documents job, which it does not return",
    ),
    "returns a column that it does not document": (
        ANALYSIS,
        [("    t.overlapped_ns,\n", "    t.overlapped_ns,\n    1 AS one,\n")],
        "it returns one INTEGER, which it does not document",
    ),
    "returns another type": (
        ANALYSIS,
        [("overlapped_ns     BIGINT", "overlapped_ns     INTEGER")],
        "column overlapped_ns is BIGINT, but documented as INTEGER",
    ),
    "returns them in another order": (
        ANALYSIS,
        [
            (
                "    t.communication_ns,\n    t.overlapped_ns,\n",
                "    t.overlapped_ns,\n    t.communication_ns,\n",
            )
        ],
        "it returns the columns in the order run, rank, overlapped_ns, communication_ns",
    ),
    "calls what is not there": (
        ANALYSIS,
        [("lib.class_segments('spans')", "lib.class_segments('nothing')")],
        "the engine rejects the statement",
    ),
    "a table with another type": (
        "tables/steps.sql",
        [("is_last   BOOLEAN", "is_last   VARCHAR")],
        "column is_last is BOOLEAN, but documented as VARCHAR",
    ),
    "a macro with another type": (
        "lib/intervals/gaps.sql",
        [("dur   BIGINT [ns]", "dur   DOUBLE [ns]")],
        "column dur is BIGINT, but documented as DOUBLE",
    ),
    "a value of another type": (
        "lib/scope/is_requested.sql",
        [("Returns: BOOLEAN", "Returns: VARCHAR")],
        "column is_requested is BOOLEAN, but documented as VARCHAR",
    ),
    "a value of what is no parameter": (
        "lib/values/exact_std.sql",
        [("sqrt((count(x)", "sqrt((count(step)")],
        "the engine cannot run the analysis: Binder Error: Referenced column",
    ),
    "a macro that returns more than the table it names": (
        "lib/scope/scoped_gpu_ops.sql",
        [("SELECT g.*\n", "SELECT g.*, true AS wanted\n")],
        "it returns wanted BOOLEAN, which it does not document",
    ),
}
