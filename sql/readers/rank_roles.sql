-- Role of every rank of a store; NULL if neither the rank's trace nor the ingest states a role.
SELECT r.run, r.rank, r.role
FROM ranks AS r
ORDER BY r.run, r.rank
