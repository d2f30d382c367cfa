-- Comparisons of two runs, whose rows may come from two stores and are passed as relations.

-- name: changes
SELECT $control AS control_run, $test AS test_run, c.*
FROM lib.compared_contents('control_contents', 'test_contents', $renamed) AS c
ORDER BY list_position(['step', 'part', 'row'], c.level), abs(c.diff_ns) DESC, c.part, c.subject;

-- name: causes
SELECT c.*
FROM lib.compared_causes(
    'control_contents', 'test_contents', 'control_idle_rows', 'test_idle_rows', 'control_late_rows', 'test_late_rows'
) AS c
ORDER BY c.position;

-- name: facts
SELECT $control AS control_run, $test AS test_run, f.*
FROM lib.compared_facts('control_facts', 'test_facts', 'contents') AS f
ORDER BY f.position;

-- name: predictions
SELECT $control AS control_run, $test AS test_run, p.*
FROM lib.compared_predictions('control_scenarios', 'test_steps') AS p
ORDER BY p.position;

-- name: operators
SELECT $control AS control_run, $test AS test_run, d.*
FROM lib.ops_difference('control_ops', 'test_ops') AS d
ORDER BY abs(d.diff_sum_ns) DESC, d.side, d.category, d.name, d.shapes;

-- name: scenarios
SELECT s.*
FROM lib.replayed_scenarios([$run]) AS s;

-- name: measured_steps
SELECT s.*
FROM lib.measured_steps([$run]) AS s;

-- name: run_facts
SELECT f.*
FROM lib.run_facts([$run], $ranks) AS f;

-- name: steps_in_scope
SELECT DISTINCT s.step
FROM lib.scoped_steps([$run], $ranks, $steps, $last) AS s
WHERE s.step IS NOT NULL
ORDER BY s.step;

-- name: quantiles
-- Quantiles of Student's t distribution for 1 to 30 degrees of freedom: for a single value, and for one of many.
SELECT lib.student_t(false, f.range) AS one, lib.student_t(true, f.range) AS many
FROM range(1, 31) AS f
ORDER BY f.range;
