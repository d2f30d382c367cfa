// A store in Evidence: node evidence_client.mjs STORE, in a copy of docs/evidence after npm install.
//
// Runs the sources and builds the site, as `npm run sources` and `npm run build` do, and reads back the
// Parquet that its pages read. The questions of questions.json go along as sources of their own.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// Packages are looked for where the command runs, not where this file lies.
const require = createRequire(pathToFileURL(join(process.cwd(), "package.json")));
const { DuckDBInstance } = require("@duckdb/node-api");

const here = dirname(fileURLToPath(import.meta.url));
const sources = join(process.cwd(), "sources", "hta_sql");
const questions = JSON.parse(readFileSync(join(here, "questions.json"), "utf8"));
for (const [name, query] of Object.entries(questions)) {
  writeFileSync(join(sources, `${name}.sql`), query);
}
const catalog = join(process.argv[2], "catalog.duckdb");
const env = { ...process.env, EVIDENCE_SOURCE__hta_sql__filename: relative(sources, catalog) };
for (const made of [".evidence", "build"]) rmSync(made, { recursive: true, force: true });
for (const command of ["sources", "build"]) {
  const done = spawnSync("npm", ["run", command], { env, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`npm run ${command}\n${done.stdout}\n${done.stderr}`);
}

const pages = readdirSync("pages").filter((name) => name.endsWith(".md"));
for (const page of pages) {
  const built = page === "index.md" ? "." : page.slice(0, -3);
  if (!existsSync(join("build", built, "index.html"))) throw new Error(`${page} was not built`);
}

const connection = await (await DuckDBInstance.create(":memory:")).connect();
const read = (name) => {
  const file = join("build", "data", "hta_sql", name, `${name}.parquet`);
  return connection.runAndReadAll(`FROM read_parquet('${file}')`);
};
const answers = {};
for (const name of Object.keys(questions)) {
  answers[name] = (await read(name)).getRowsJson();
}
const drawn = {};
for (const name of ["kpis", "step_accounting", "stragglers", "operator_table", "comparison"]) {
  drawn[name] = (await read(name)).getRowObjectsJson();
}
const used = ["evidence", "duckdb"].map((name) => {
  const about = readFileSync(join("node_modules", "@evidence-dev", name, "package.json"), "utf8");
  return `@evidence-dev/${name} ${JSON.parse(about).version}`;
});
console.log(JSON.stringify({ version: used.join(", "), answers, drawn }));
