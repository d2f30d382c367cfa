-- An event's id within its own trace, as it is stored.
CREATE OR REPLACE MACRO own_id(id) AS id & 1_099_511_627_775
