-- Whether a lost part of a trace extends to the end of its file.
CREATE OR REPLACE MACRO lib.is_rest_of_file(
    -- event_id of the quarantined row.
    lost_event,
    -- Reason in the quarantined row.
    quarantine_reason
) AS
-- Returns: BOOLEAN  Whether nothing behind the part was read.
lost_event IS NULL
AND NOT lib.is_of_artifact(quarantine_reason)
AND regexp_matches(quarantine_reason, 'the file is cut off|breaks off|the compressed file is damaged|follows the compressed data|the rest of the file')
