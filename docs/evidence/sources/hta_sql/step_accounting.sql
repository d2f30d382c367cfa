SELECT * FROM us.step_accounting
