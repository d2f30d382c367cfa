-- Role of every rank of a store; NULL if neither its trace nor the ingest states one.
SELECT r.run, r.rank, r.role
FROM ranks AS r
ORDER BY r.run, r.rank
