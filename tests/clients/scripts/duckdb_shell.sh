#!/bin/sh
# A store in DuckDB's shell: sh duckdb_shell.sh STORE
# DUCKDB names the shell; "duckdb" by default (pip install duckdb-cli, or duckdb.org).
set -eu
duckdb=${DUCKDB:-duckdb}
here=$(dirname "$0")
"$duckdb" -version | sed 's/^/# /'
python3 -c 'import json, sys; [print(k + "\t" + v) for k, v in json.load(open(sys.argv[1])).items()]' "$here/questions.json" |
while IFS="$(printf '\t')" read -r name query; do
    printf '%s\t' "$name"
    "$duckdb" -readonly -json "$1/catalog.duckdb" "$query" | tr -d '\n'
    printf '\n'
done
