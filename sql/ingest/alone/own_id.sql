-- The id within the only trace, as it is stored.
CREATE OR REPLACE MACRO own_id(id) AS id
