// A store in Node.js: node node_client.mjs STORE      (npm install @duckdb/node-api)
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// Packages are looked for where the command runs, not where this file lies.
const require = createRequire(pathToFileURL(join(process.cwd(), "package.json")));
const { DuckDBInstance, version } = require("@duckdb/node-api");

const here = dirname(fileURLToPath(import.meta.url));
const questions = JSON.parse(readFileSync(join(here, "questions.json"), "utf8"));
const catalog = join(process.argv[2], "catalog.duckdb");
const instance = await DuckDBInstance.create(catalog, { access_mode: "READ_ONLY" });
const connection = await instance.connect();
const answers = {};
for (const [name, query] of Object.entries(questions)) {
  const reader = await connection.runAndReadAll(query);
  answers[name] = reader.getRows().map((row) =>
    row.map((value) => (typeof value === "bigint" ? Number(value) : value)),
  );
}
console.log(JSON.stringify({ version: `@duckdb/node-api, DuckDB ${version()}`, answers }));
