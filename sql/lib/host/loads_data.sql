-- Whether an annotation marks data loading: torch's own annotation of a loader, or a common user-defined name.
CREATE OR REPLACE MACRO lib.loads_data(
    -- Name of an annotation.
    annotation_name
) AS
-- Returns: BOOLEAN  Whether the annotation marks data loading.
regexp_matches(annotation_name, 'data_?(loader|pipe|load)|## ?data', 'i')
