SELECT run, rank_count, step_count, device_names, captured_at, framework, git_sha, tags FROM runs ORDER BY run
