-- Arguments for from_json: whole-number keys whose value is none become null.
--
-- The engine rounds 1.5 to 2 and takes true for 1 where a BIGINT is wanted. A null leaves the
-- column empty, and the argument stays in event_args as it was written. `args` is JSON as the
-- engine prints it: compact, and every fraction with a point or an exponent; the regular
-- expression is only paid by those. `whole_keys` are the keys, as alternatives of one. Text that
-- holds a whole number is that number.
CREATE OR REPLACE TEMP MACRO exact_args(args, whole_keys) AS
    CASE
        WHEN contains(args, '.') OR contains(args, 'e-') OR contains(args, 'E-') OR contains(args, 'true') OR contains(args, 'false')
            THEN regexp_replace(
                args,
                '("(?:' || whole_keys || ')":)(?:true|false|"?-?[0-9]*(?:\.(?:[0-9]*[1-9])|\.?[0-9]*[eE][+-]?[0-9]+)[^,}\]]*|\[[^\]]*(?:\.[0-9]*[1-9]|[eE]|true|false)[^\]]*\])',
                '\1null',
                'g'
            )
        ELSE args
    END
