-- Whether a reason in the table quarantine is about a dump, snapshot or execution trace, not about a trace.
CREATE OR REPLACE MACRO lib.is_of_artifact(
    -- Reason in the table quarantine.
    quarantine_reason
) AS
-- Returns: BOOLEAN  Whether the row is about a file that is not a trace.
regexp_matches(quarantine_reason, '^(Flight Recorder dump|Memory snapshot|Execution trace)( values)?: ')
