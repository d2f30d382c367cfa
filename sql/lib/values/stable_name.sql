-- A name without what changes from capture to capture: addresses, hashes and numbers of compilers, line numbers and
-- install folders of Python frames, numbers of steps and of modules.
--
-- triton_poi_fused_add_4 of one run is triton_poi_fused_add_5 of the other as soon as one more kernel was fused
-- before it. Look at each name once: it is nine replacements.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.stable_name(
    -- Name as recorded, or short name.
    raw_name
) AS
-- Returns: VARCHAR  What it is called in every capture.
    regexp_replace(
        regexp_replace(
            regexp_replace(
                regexp_replace(
                    regexp_replace(
                        regexp_replace(
                            regexp_replace(
                                regexp_replace(
                                    regexp_replace(raw_name, '0x[0-9a-fA-F]{4,}', '0x', 'g'),
                                    '^.*/(site|dist)-packages/', ''
                                ),
                                '\.py\(\d+\)', '.py', 'g'
                            ),
                            '(CompiledFxGraph) f[0-9a-z]{20,}', '\1'
                        ),
                        '^(Torch-Compiled Region): [0-9/]+$', '\1'
                    ),
                    '^(ProfilerStep)\s*#\s*\d+$', '\1'
                ),
                '^(triton_[A-Za-z0-9_]*?)_\d+(d\d+[a-z0-9]*)?$', '\1'
            ),
            '(Backward)\d+$', '\1'
        ),
        '^(nn\.Module: .*)_\d+$', '\1'
    )
