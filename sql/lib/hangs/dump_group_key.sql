-- Key of a process group in Flight Recorder dumps: its name and its ranks.
--
-- If there are many ranks, the key contains the first ranks and a checksum of all ranks, because each operation
-- carries the key, and the ranks of a large group take kilobytes.
CREATE OR REPLACE MACRO lib.dump_group_key(
    -- Process group name.
    group_name,
    -- Ranks of the group as JSON; NULL if no dump states them.
    ranks_text
) AS
-- Returns: VARCHAR  Name, and ranks in brackets if they are known.
concat(
    coalesce(group_name, ''),
    ' ',
    CASE WHEN len(ranks_text) > 64 THEN concat(substr(ranks_text, 1, 24), ' ', md5(ranks_text)) ELSE ranks_text END
)
