SELECT * FROM us.stragglers
