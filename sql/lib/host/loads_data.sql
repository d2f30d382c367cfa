-- Whether an annotation says that it loads data: torch's own around a loader, and what people write.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.loads_data(
    -- Name of an annotation.
    annotation_name
) AS
-- Returns: BOOLEAN  Whether it does.
regexp_matches(annotation_name, 'data_?(loader|pipe|load)|## ?data', 'i')
