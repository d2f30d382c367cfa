-- Rules that assign memory to categories by the frames of the stack that allocated it.
--
-- A built-in table, the same for every store: sql/tables/snapshot_categories.csv. The category comes from the innermost
-- frame that matches a rule; if it matches several rules, the rule with the lowest priority applies. The category of
-- stacks without a matching rule is unknown.
CREATE OR REPLACE VIEW snapshot_categories AS
-- Columns:
--   priority  INTEGER [1]  Priority of the rule; if several rules match, the lowest applies.
--   part      VARCHAR      Part of a frame in which the pattern is searched: file, function or file:function.
--   pattern   VARCHAR      Regular expression.
--   category  VARCHAR      parameters, gradients, activations, optimizer, sharding or communication.
--   source    VARCHAR      Source of the rule.
SELECT x.*
FROM stored.snapshot_categories AS x
