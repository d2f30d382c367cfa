-- Name without the parts that change from capture to capture: addresses, compiler hashes and numbers, line numbers
-- and install paths of Python frames, and numbers of steps and modules.
--
-- For example, triton_poi_fused_add_4 in one run is triton_poi_fused_add_5 in another if one more kernel was fused
-- before it. Call it once per distinct name, because it makes nine replacements.
CREATE OR REPLACE MACRO lib.stable_name(
    -- Recorded name, or short name.
    raw_name
) AS
-- Returns: VARCHAR  Name that is the same in every capture.
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
