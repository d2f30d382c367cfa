-- Which of the traces that are read together an event is of: its number stands above the forty bits that
-- positions need.
CREATE OR REPLACE MACRO part_of(id) AS id >> 40
