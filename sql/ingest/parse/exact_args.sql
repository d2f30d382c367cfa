-- Arguments for from_json: keys of whole numbers whose value is none become null.
--
-- The engine rounds 1.5 to 2 and takes true for 1 where a BIGINT is wanted. A null leaves the
-- column empty, and the arguments stay in event_args as they were written. `args` is JSON as the
-- engine prints it: compact, numbers as they were written, so that only rows with a point or a
-- negative exponent pay for the regular expression. `whole_keys` are the keys, as alternatives of
-- one. Text that holds a whole number is that number; with a point or an e in it, it stays text.
CREATE OR REPLACE MACRO exact_args(args, whole_keys) AS
    CASE
        WHEN contains(args, '.') OR contains(args, 'e-') OR contains(args, 'E-') OR contains(args, 'true') OR contains(args, 'false')
            THEN regexp_replace(
                args,
                '("(?:' || whole_keys || ')":)(?:true|false'
                -- Beyond 2^53 a fraction has gone through a double.
                || '|-?[0-9]{16,}\.[0-9]*(?:[eE][+-]?[0-9]+)?'
                || '|-?[0-9]+(?:\.[0-9]*[1-9][0-9]*(?:[eE][+-]?[0-9]+)?|(?:\.[0-9]+)?[eE][+-]?[0-9]+)'
                || '|"[^"\\]*[.eE][^"\\]*"'
                || '|\[(?:[^\[\]\\"]|"[^"\\]*")*(?:\.[0-9]*[1-9]|[eE]|"[^"\\]*[.eE][^"\\]*")(?:[^\[\]\\"]|"[^"\\]*")*\])',
                '\1null',
                'g'
            )
        ELSE args
    END
