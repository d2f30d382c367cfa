-- What a rank's file holds of the table that is being written, in its order.
SELECT w.*
FROM written AS w
WHERE w.run = $run AND w.rank = $rank
