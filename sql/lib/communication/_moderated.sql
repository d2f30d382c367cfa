-- Distance in standard errors of a moderated t-test (Smyth 2004), with usual_freedom (lib.judging) more degrees of freedom.
--
-- With few values, their spread says little about the spread of the noise. It is therefore combined with the usual one:
-- usual_noise_share of a block, with usual_freedom degrees of freedom (lib.judging).
CREATE OR REPLACE MACRO lib._moderated(
    -- Distance [ns], scaled like the spread.
    distance,
    -- Measured spread [ns].
    spread,
    -- Degrees of freedom of the measured spread.
    freedom,
    -- Mean length of a block [ns].
    block_ns
) AS
-- Returns: DOUBLE [1]  Standard errors.
distance / sqrt((lib.judging().usual_freedom * (lib.judging().usual_noise_share * block_ns) ** 2 + freedom * spread ** 2) / (lib.judging().usual_freedom + freedom))
