SELECT * FROM us.kpis
